//! Embeddings that were computed before, by model and text. Texts are stored as fingerprints only.

use deloop_detect::Fingerprint;
use deloop_store::StoreError;
use deloop_types::Millis;
use rusqlite::{OptionalExtension, params};

use super::SqliteJournal;

/// Number of embeddings that are kept. The oldest are dropped first.
const MOST: i64 = 20_000;

impl SqliteJournal {
    /// Returns the embedding of a text by a model, if it was stored.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn embedding(&self, model: &str, text: Fingerprint) -> Result<Option<Vec<f32>>, StoreError> {
        let sql = "SELECT vector FROM embeddings WHERE model = ?1 AND text = ?2";
        let bytes: Option<Vec<u8>> = self.see(|connection| {
            let mut select = connection.prepare_cached(sql)?;
            select.query_row(params![model, text.to_string()], |row| row.get(0)).optional()
        })?;
        let read = |bytes: Vec<u8>| bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        Ok(bytes.map(read))
    }

    /// Stores the embedding of a text by a model.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn keep_embedding(
        &self,
        model: &str,
        text: Fingerprint,
        vector: &[f32],
        now: Millis,
    ) -> Result<(), StoreError> {
        let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.change(|connection| {
            let insert = "INSERT OR REPLACE INTO embeddings VALUES(?1, ?2, ?3, ?4)";
            connection.execute(insert, params![model, text.to_string(), bytes, now.0])?;
            let delete = "DELETE FROM embeddings WHERE rowid IN
                          (SELECT rowid FROM embeddings ORDER BY stored_ms DESC LIMIT -1 OFFSET ?1)";
            connection.execute(delete, [MOST]).map(drop)
        })
    }

    /// Returns when a model last failed, if it hasn't worked since.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn embedding_failure(&self, model: &str) -> Result<Option<Millis>, StoreError> {
        let sql = "SELECT failed_ms FROM embedding_failures WHERE model = ?1";
        self.see(|connection| {
            let mut select = connection.prepare_cached(sql)?;
            select.query_row([model], |row| row.get(0).map(Millis)).optional()
        })
    }

    /// Records that a model failed, or that it works.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn set_embedding_failure(&self, model: &str, failed: Option<Millis>) -> Result<(), StoreError> {
        self.change(|connection| match failed {
            Some(now) => {
                let sql = "INSERT OR REPLACE INTO embedding_failures VALUES(?1, ?2)";
                connection.execute(sql, params![model, now.0]).map(drop)
            }
            None => connection.execute("DELETE FROM embedding_failures WHERE model = ?1", [model]).map(drop),
        })
    }
}
