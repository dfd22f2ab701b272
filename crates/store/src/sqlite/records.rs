//! What is kept beside the sessions: how often hooks were called, what a hook wants to know, pauses and allowances.

use deloop_types::{Millis, SessionId};
use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use crate::StoreError;

/// How often a program's hook was called, and when last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCalls {
    /// Which program.
    pub agent: String,
    /// When last.
    pub last: Millis,
    /// How often.
    pub calls: u64,
}

impl SqliteStore {
    /// Notes that a program's hook was called.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn called(&self, agent: &str, now: Millis) -> Result<(), StoreError> {
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

    /// How often each program's hook was called.
    ///
    /// # Errors
    /// When the file cannot be read.
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
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// What a hook keeps for itself beside a session's state.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn desk(&self, session: &SessionId) -> Result<Option<String>, StoreError> {
        self.see(|connection| {
            let row = connection
                .prepare_cached("SELECT desk FROM sessions WHERE session = ?1")?
                .query_row([session.as_str()], |row| row.get(0))
                .optional()?;
            Ok(row.flatten())
        })
    }

    /// Keeps what a hook wants to know at the session's next event; whether it is kept: a session without a step has
    /// no place for it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_desk(&self, session: &SessionId, desk: &str) -> Result<bool, StoreError> {
        self.change(|connection| {
            let rows = connection
                .prepare_cached("UPDATE sessions SET desk = ?2 WHERE session = ?1")?
                .execute([session.as_str(), desk])?;
            Ok(rows > 0)
        })
    }

    /// Leaves a session alone until then; `None` is every session.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn pause(&self, session: Option<&str>, until: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute(
                "INSERT OR REPLACE INTO pauses VALUES(?1, ?2)",
                params![session.unwrap_or_default(), until.0],
            )?;
            Ok(())
        })
    }

    /// Ends the pause of a session, or all pauses; how many there were.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn resume(&self, session: Option<&str>) -> Result<usize, StoreError> {
        self.change(|connection| {
            let sql = "DELETE FROM pauses WHERE ?1 IS NULL OR session = ?1";
            Ok(connection.execute(sql, [session])?)
        })
    }

    /// Until when a session is left alone, if it is.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn paused(&self, session: &str, now: Millis) -> Result<Option<Millis>, StoreError> {
        self.see(|connection| {
            let until: Option<i64> = connection
                .prepare_cached(
                    "SELECT max(until_ms) FROM pauses WHERE session IN ('', ?1) AND until_ms > ?2",
                )?
                .query_row(params![session, now.0], |row| row.get(0))?;
            Ok(until.map(Millis))
        })
    }

    /// The pauses that last: of which session (`None` is every session), and until when.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn pauses(&self, now: Millis) -> Result<Vec<(Option<String>, Millis)>, StoreError> {
        self.see(|connection| {
            let sql = "SELECT session, until_ms FROM pauses WHERE until_ms > ?1 ORDER BY session";
            let mut select = connection.prepare(sql)?;
            let rows = select.query_map([now.0], |row| {
                let session: String = row.get(0)?;
                Ok((Some(session).filter(|s| !s.is_empty()), Millis(row.get(1)?)))
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Never looks at calls of this pattern again.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn allow(&self, pattern: &str, now: Millis) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("INSERT OR IGNORE INTO allows VALUES(?1, ?2)", params![pattern, now.0])?;
            Ok(())
        })
    }

    /// Looks at calls of this pattern again; `false` when they were not allowed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn disallow(&self, pattern: &str) -> Result<bool, StoreError> {
        self.change(|connection| {
            Ok(connection.execute("DELETE FROM allows WHERE pattern = ?1", [pattern])? > 0)
        })
    }

    /// The patterns of calls that are not looked at.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn allowed(&self) -> Result<Vec<String>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare_cached("SELECT pattern FROM allows ORDER BY since_ms")?;
            let rows = select.query_map([], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Forgets a session with its decisions, or everything but the allowances; how many sessions that were.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn purge(&self, session: Option<&str>) -> Result<usize, StoreError> {
        let gone = self.change(|connection| {
            for table in ["decisions", "pauses", "sources", "pardons"] {
                let sql = format!("DELETE FROM {table} WHERE ?1 IS NULL OR session = ?1");
                connection.execute(&sql, [session])?;
            }
            if session.is_none() {
                connection.execute("DELETE FROM swarms", [])?;
            }
            Ok(connection.execute("DELETE FROM sessions WHERE ?1 IS NULL OR session = ?1", [session])?)
        })?;
        // What was deleted is still in the file and its log until they are written anew.
        self.see(|connection| Ok(connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?))?;
        Ok(gone)
    }
}
