//! States that this release can't read. They are moved to a table of their own before anything else takes their place, and
//! whoever uses the store learns of them.

use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, params};

use super::SqliteStore;
use crate::StoreError;

/// How many states are kept aside. The oldest are dropped first.
const KEPT: i64 = 1_000;
/// How many notes wait for whoever uses the store.
const NOTES: usize = 100;

/// The table is created when it is needed: a file without it is one that every release opens.
const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS unreadable_states(
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        reason TEXT NOT NULL,
        state TEXT NOT NULL
    )";

/// What happened to states since the notes were last taken.
#[derive(Default)]
pub(super) struct UnreadableNotes(Mutex<Vec<String>>);

impl SqliteStore {
    /// Keeps a state that can't be read, before another takes its place.
    pub(super) fn set_aside(
        &self,
        connection: &Connection,
        (kind, name): (&str, &str),
        state: &str,
        error: &StoreError,
    ) -> rusqlite::Result<()> {
        connection.execute_batch(TABLE)?;
        connection.execute(
            "INSERT INTO unreadable_states(kind, name, reason, state) VALUES(?1, ?2, ?3, ?4)",
            params![kind, name, error.to_string(), state],
        )?;
        connection.execute(
            "DELETE FROM unreadable_states WHERE id <= (SELECT max(id) FROM unreadable_states) - ?1",
            [KEPT],
        )?;
        let mut notes = self.unreadable.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES {
            notes.push(format!(
                "the {kind} `{name}` starts afresh; if it was stopped, it stays so: {error}. What was stored is in the \
                 table unreadable_states of {}",
                self.path.display()
            ));
        }
        Ok(())
    }

    /// Keeps a state that another crate stores in the same file and can't read, before another takes its place.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn keep_unreadable(
        &self,
        about: (&str, &str),
        state: &str,
        error: &StoreError,
    ) -> Result<(), StoreError> {
        self.change(|connection| self.set_aside(connection, about, state, error))
    }

    /// Returns what people should know of states that couldn't be read since this was last called.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.unreadable.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns how many states are kept aside because they couldn't be read.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn unreadable_states(&self) -> Result<u64, StoreError> {
        self.see(|connection| {
            if !has_table(connection)? {
                return Ok(0);
            }
            let sql = "SELECT count(*) FROM unreadable_states";
            let count: i64 = connection.query_row(sql, [], |row| row.get(0))?;
            Ok(count.unsigned_abs())
        })
    }

    /// Deletes the states of a session that are kept aside, or all of them.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn forget_unreadable(&self, session: Option<&str>) -> Result<(), StoreError> {
        self.change(|connection| {
            if !has_table(connection)? {
                return Ok(());
            }
            let sql = "DELETE FROM unreadable_states WHERE ?1 IS NULL OR (kind != 'swarm' AND name = ?1)";
            connection.execute(sql, [session]).map(drop)
        })
    }
}

fn has_table(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'unreadable_states'";
    connection.prepare(sql)?.exists([])
}
