//! Lists the sessions of a file without reading their states.

use deloop_types::SessionId;
use rusqlite::params;

use super::{SqliteStore, signed};
use crate::StoreError;

impl SqliteStore {
    /// Returns at most `limit` sessions whose names come after `after`, in the order of the bytes of their names.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn sessions_after(&self, after: Option<&str>, limit: u64) -> Result<Vec<SessionId>, StoreError> {
        self.see(|connection| {
            // Two conditions, each of which the index answers without reading what comes before.
            let mut select = connection.prepare_cached(match after {
                Some(_) => "SELECT session FROM sessions WHERE session > ?1 ORDER BY session LIMIT ?2",
                None => "SELECT session FROM sessions WHERE session >= ?1 ORDER BY session LIMIT ?2",
            })?;
            let first = params![after.unwrap_or_default(), signed(limit)];
            let names = select.query_map(first, |row| row.get::<_, String>(0))?;
            names.map(|name| name.map(SessionId::from)).collect()
        })
    }

    /// Returns whether a session is stored.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn has_session(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare_cached("SELECT 1 FROM sessions WHERE session = ?1")?;
            select.exists([session.as_str()])
        })
    }

    /// Returns the number of stored sessions.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn session_count(&self) -> Result<u64, StoreError> {
        let count: i64 = self.see(|connection| {
            connection.prepare_cached("SELECT count(*) FROM sessions")?.query_row([], |row| row.get(0))
        })?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// Moves the log into the file during writes, once it is longer than this many pages. For a process that keeps the
    /// file open: otherwise this happens only when the file is closed.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn keep_log_short(&self, pages: u32) -> Result<(), StoreError> {
        self.see(|connection| connection.execute_batch(&format!("PRAGMA wal_autocheckpoint = {pages}")))
    }

    /// Undoes a transaction that a panic left open, so that later changes don't become part of it.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn abandon_batch(&self) -> Result<(), StoreError> {
        self.see(|connection| match connection.is_autocommit() {
            true => Ok(()),
            false => connection.execute_batch("ROLLBACK"),
        })
    }
}
