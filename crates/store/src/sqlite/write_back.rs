//! Reads and writes states as text, many at a time, for a process that keeps them in memory.

use deloop_types::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use super::{SqliteStore, signed};
use crate::StoreError;

/// A state as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredState {
    /// When it was last changed.
    pub updated: Millis,
    /// Its text.
    pub text: String,
}

/// A change of one stored state.
#[derive(Debug, Clone)]
pub struct StateChange {
    /// The session or swarm.
    pub name: String,
    /// The new state; `None` deletes it.
    pub state: Option<StoredState>,
}

impl SqliteStore {
    /// Returns the state of a session, if it is stored and wasn't idle for too long.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn stored_session(&self, session: &str, now: Millis) -> Result<Option<StoredState>, StoreError> {
        let stored = self.see(|connection| {
            connection
                .prepare_cached("SELECT updated_ms, state FROM sessions WHERE session = ?1")?
                .query_row([session], |row| {
                    Ok(StoredState { updated: Millis(row.get(0)?), text: row.get(1)? })
                })
                .optional()
        })?;
        Ok(stored.filter(|state| !self.is_idle(state.updated, now)))
    }

    /// Returns whether a session that was last changed then counts as idle now.
    #[must_use]
    pub fn is_idle(&self, updated: Millis, now: Millis) -> bool {
        updated.0 > 0 && now.since(updated) > self.bounds.idle
    }

    /// Returns the state of a swarm, if it is stored.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn stored_swarm(&self, swarm: &str) -> Result<Option<String>, StoreError> {
        self.see(|connection| {
            connection
                .prepare_cached("SELECT state FROM swarms WHERE swarm = ?1")?
                .query_row([swarm], |row| row.get(0))
                .optional()
        })
    }

    /// Makes all changes in one transaction, drops what is too old or too much, and remembers `mark`.
    ///
    /// # Errors
    /// When the file can't be written. Nothing is changed then.
    pub fn write_back(
        &self,
        sessions: &[StateChange],
        swarms: &[StateChange],
        now: Millis,
        mark: i64,
    ) -> Result<(), StoreError> {
        self.change(|connection| {
            for change in sessions {
                write_session(connection, change)?;
            }
            // Looked up once: a look per swarm would make the cost grow with the square of their number.
            let mut last: i64 =
                connection.query_row("SELECT coalesce(max(touched), 0) FROM swarms", [], |row| row.get(0))?;
            for change in swarms {
                last += 1;
                write_swarm(connection, change, last)?;
            }
            connection.execute(
                "DELETE FROM swarms WHERE touched <= (SELECT max(touched) FROM swarms) - ?1",
                [signed(self.bounds.swarms.max(1))],
            )?;
            self.drop_old(connection, now)?;
            connection.execute_batch(
                "CREATE TABLE IF NOT EXISTS write_back(id INTEGER PRIMARY KEY CHECK (id = 1), mark INTEGER NOT NULL)",
            )?;
            connection.execute("INSERT OR REPLACE INTO write_back VALUES(1, ?1)", [mark]).map(drop)
        })
    }

    /// Returns the mark of the last [`SqliteStore::write_back`]; 0 if there was none.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn last_mark(&self) -> Result<i64, StoreError> {
        self.see(|connection| {
            let table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'write_back'";
            if !connection.prepare(table)?.exists([])? {
                return Ok(0);
            }
            let mark = connection.query_row("SELECT mark FROM write_back", [], |row| row.get(0));
            Ok(mark.optional()?.unwrap_or(0))
        })
    }

    /// Drops idle sessions, and the least recently used ones beyond the limits.
    fn drop_old(&self, connection: &Connection, now: Millis) -> rusqlite::Result<()> {
        let oldest = now.0.saturating_sub_unsigned(self.bounds.idle);
        connection
            .prepare_cached("DELETE FROM sessions WHERE updated_ms < ?1 AND updated_ms > 0")?
            .execute([oldest])?;
        // The largest rowid is at least the number of rows and is known without counting them.
        let rows: Option<i64> =
            connection.prepare_cached("SELECT max(rowid) FROM sessions")?.query_row([], |row| row.get(0))?;
        if rows.unwrap_or(0) > signed(self.bounds.sessions) {
            let count: i64 = connection
                .prepare_cached("SELECT count(*) FROM sessions")?
                .query_row([], |row| row.get(0))?;
            drop_oldest(connection, count - signed(self.bounds.sessions))?;
        }
        let pragma = |name: &str| -> rusqlite::Result<i64> {
            connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
        };
        let used = (pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?;
        if used > signed(self.bounds.bytes) {
            let count: i64 = connection.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))?;
            drop_oldest(connection, (count + 1) / 2)?;
        }
        Ok(())
    }
}

fn drop_oldest(connection: &Connection, count: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM sessions WHERE session IN (SELECT session FROM sessions ORDER BY updated_ms LIMIT ?1)",
        )?
        .execute([count.max(0)])
        .map(drop)
}

fn write_session(connection: &Connection, change: &StateChange) -> rusqlite::Result<()> {
    let Some(state) = &change.state else {
        let mut delete = connection.prepare_cached("DELETE FROM sessions WHERE session = ?1")?;
        return delete.execute([&change.name]).map(drop);
    };
    connection
        .prepare_cached(
            "INSERT INTO sessions(session, updated_ms, steps, state) VALUES(?1, ?2, 1, ?3)
             ON CONFLICT(session) DO UPDATE SET updated_ms = ?2, state = ?3",
        )?
        .execute(params![change.name, state.updated.0, state.text])
        .map(drop)
}

fn write_swarm(connection: &Connection, change: &StateChange, touched: i64) -> rusqlite::Result<()> {
    let Some(state) = &change.state else {
        let mut delete = connection.prepare_cached("DELETE FROM swarms WHERE swarm = ?1")?;
        return delete.execute([&change.name]).map(drop);
    };
    connection
        .prepare_cached("INSERT OR REPLACE INTO swarms VALUES(?1, ?2, ?3)")?
        .execute(params![change.name, touched, state.text])
        .map(drop)
}
