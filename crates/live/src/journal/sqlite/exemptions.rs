//! Pauses, allowed calls and the number of hook calls.

use deloop_store::StoreError;
use deloop_types::Millis;
use rusqlite::params;

use super::SqliteJournal;
use crate::HookCalls;

impl SqliteJournal {
    pub(super) fn note_call(&self, agent: &str, now: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO hooks VALUES(?1, ?2, 1)
                     ON CONFLICT(agent) DO UPDATE SET last_called_ms = ?2, calls = calls + 1",
                )?
                .execute(params![agent, now.0])?;
            Ok(())
        })
    }

    /// Returns how often each agent's hook was called.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn calls(&self) -> Result<Vec<HookCalls>, StoreError> {
        self.see(|connection| {
            let mut select =
                connection.prepare("SELECT agent, last_called_ms, calls FROM hooks ORDER BY agent")?;
            let rows = select.query_map([], |row| {
                let calls: i64 = row.get(2)?;
                Ok(HookCalls {
                    agent: row.get(0)?,
                    last: Millis(row.get(1)?),
                    calls: u64::try_from(calls).unwrap_or(0),
                })
            })?;
            rows.collect()
        })
    }

    /// Pauses a session until this time; `None` pauses all sessions.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn pause(&self, session: Option<&str>, until: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO pauses VALUES(?1, ?2)",
                params![session.unwrap_or_default(), until.0],
            )?;
            Ok(())
        })
    }

    /// Ends the pause of a session, or all pauses. Returns the number of pauses ended.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn resume(&self, session: Option<&str>) -> Result<usize, StoreError> {
        self.change(|connection| {
            let sql = "DELETE FROM pauses WHERE ?1 IS NULL OR session = ?1";
            connection.execute(sql, [session])
        })
    }

    pub(super) fn paused_until(&self, session: &str, now: Millis) -> Result<Option<Millis>, StoreError> {
        self.see(|connection| {
            let until: Option<i64> = connection
                .prepare_cached(
                    "SELECT max(until_ms) FROM pauses WHERE session IN ('', ?1) AND until_ms > ?2",
                )?
                .query_row(params![session, now.0], |row| row.get(0))?;
            Ok(until.map(Millis))
        })
    }

    /// Returns the current pauses: the session (`None` for all) and the end time.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn pauses(&self, now: Millis) -> Result<Vec<(Option<String>, Millis)>, StoreError> {
        self.see(|connection| {
            let sql = "SELECT session, until_ms FROM pauses WHERE until_ms > ?1 ORDER BY session";
            let mut select = connection.prepare(sql)?;
            let rows = select.query_map([now.0], |row| {
                let session: String = row.get(0)?;
                Ok((Some(session).filter(|s| !s.is_empty()), Millis(row.get(1)?)))
            })?;
            rows.collect()
        })
    }

    /// Ignores calls that match this pattern from now on.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn allow(&self, pattern: &str, now: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("INSERT OR IGNORE INTO allows VALUES(?1, ?2)", params![pattern, now.0])?;
            Ok(())
        })
    }

    /// Stops ignoring calls that match this pattern. Returns `false` if they weren't ignored.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn disallow(&self, pattern: &str) -> Result<bool, StoreError> {
        self.change(|connection| {
            Ok(connection.execute("DELETE FROM allows WHERE pattern = ?1", [pattern])? > 0)
        })
    }

    pub(super) fn allowed_patterns(&self) -> Result<Vec<String>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare_cached("SELECT pattern FROM allows ORDER BY since_ms")?;
            let rows = select.query_map([], |row| row.get(0))?;
            rows.collect()
        })
    }
}
