//! The journal in the SQLite file that also stores the sessions, so that both change in one transaction.

mod activity;
mod day_usage;
mod decisions;
mod embeddings;
mod exemptions;
mod runs;
mod schema;
mod sessions;
#[cfg(test)]
mod tests;
mod weeks;

use std::path::Path;
use std::sync::Arc;

use deloop_detect::UsageAmounts;
use deloop_store::{Bounds, SqliteStore, StoreError};
use deloop_types::{Decision, Millis};
use rusqlite::Connection;

use super::{DecisionOrigin, Journal, Pardon, SessionSource};
use crate::DayUsage;
use crate::live::subagent_swarm;
pub use activity::{RunActivity, STALLED};
pub use weeks::WatchedSession;

/// What [`SqliteJournal::purge`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgeOutcome {
    /// Number of sessions deleted.
    pub sessions: usize,
    /// Whether the file was rewritten. If not, another process reads it, and deleted data stays in the file for now.
    pub is_rewritten: bool,
}

/// A journal in an SQLite file, with the store in the same file.
pub struct SqliteJournal {
    store: Arc<SqliteStore>,
    bounds: Bounds,
}

impl SqliteJournal {
    /// Opens a file, and creates it if it doesn't exist; see [`SqliteStore::open`].
    ///
    /// # Errors
    /// When the file can't be created, read or written, or was written by a later release.
    pub fn open(path: &Path, bounds: Bounds) -> Result<Self, StoreError> {
        let store = Arc::new(SqliteStore::open(path, bounds)?);
        if !store.see(schema::is_current)? {
            store.change(schema::migrate)?;
        } else if let Some((found, known)) = store.see(schema::later)? {
            let message = format!(
                "a later release wrote this file (journal {found}, this release reads {known}): update deloop"
            );
            return Err(StoreError::database(path, message));
        }
        Ok(Self { store, bounds })
    }

    /// Returns the store of the same file.
    #[must_use]
    pub fn store(&self) -> &SqliteStore {
        &self.store
    }

    /// Returns the store of the same file, to be shared with other threads.
    #[must_use]
    pub fn shared_store(&self) -> Arc<SqliteStore> {
        Arc::clone(&self.store)
    }

    /// Returns the tables that the file should have and doesn't.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn missing_tables(&self) -> Result<Vec<String>, StoreError> {
        self.store.missing_tables(schema::migrate)
    }

    fn change<R>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        self.store.change(work)
    }

    fn see<R>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        self.store.see(work)
    }

    /// Deletes a session with its decisions and the swarm of its subagents, or everything but the allowed patterns.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn purge(&self, session: Option<&str>) -> Result<PurgeOutcome, StoreError> {
        let gone = self.change(|connection| {
            for table in ["decisions", "pauses", "sources", "pardons", "session_state"] {
                let sql = format!("DELETE FROM {table} WHERE ?1 IS NULL OR session = ?1");
                connection.execute(&sql, [session])?;
            }
            // A hand-off describes the session before it.
            connection
                .execute("DELETE FROM runs WHERE ?1 IS NULL OR session = ?1 OR after = ?1", [session])?;
            if session.is_none() {
                connection.execute_batch(
                    "DELETE FROM embeddings; DELETE FROM embedding_failures; DELETE FROM day_usage",
                )?;
            }
            let swarm = session.map(|session| subagent_swarm(&session.into()));
            connection.execute("DELETE FROM swarms WHERE ?1 IS NULL OR swarm = ?1", [swarm])?;
            connection.execute("DELETE FROM projects WHERE ?1 IS NULL", [session])?;
            connection.execute("DELETE FROM sessions WHERE ?1 IS NULL OR session = ?1", [session])
        })?;
        self.store.forget_unreadable(session)?;
        if let Some(session) = session {
            self.store.forget_failures_of(&session.into())?;
        }
        // Deleted rows stay in the file and its log until those are rewritten.
        let is_read = self.see(|connection| {
            connection.execute_batch("VACUUM")?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))
        })?;
        Ok(PurgeOutcome { sessions: gone, is_rewritten: !is_read })
    }
}

impl Journal for SqliteJournal {
    fn atomically<R>(&self, work: impl FnOnce() -> Result<R, StoreError>) -> Result<R, StoreError> {
        self.store.batch(|_| work())
    }

    fn called(&self, agent: &str, now: Millis) -> Result<(), StoreError> {
        self.note_call(agent, now)
    }

    fn note_source(&self, source: &SessionSource, now: Millis) -> Result<(), StoreError> {
        self.keep_source(source, now)
    }

    fn session_state(&self, session: &str, now: Millis) -> Result<Option<String>, StoreError> {
        self.read_state(session, now)
    }

    fn set_session_state(&self, session: &str, now: Millis, state: &str) -> Result<(), StoreError> {
        self.keep_state(session, now, state)
    }

    fn keep_unreadable(&self, session: &str, state: &str, error: &StoreError) -> Result<(), StoreError> {
        self.store.keep_unreadable(("delivery state of", session), state, error)
    }

    fn record(&self, decision: &Decision, origin: &DecisionOrigin<'_>) -> Result<(), StoreError> {
        self.insert(decision, origin)
    }

    fn delivered(&self, id: &str, event: &str) -> Result<(), StoreError> {
        self.set("delivered", id, event)
    }

    fn came_of(&self, id: &str, outcome: &str) -> Result<(), StoreError> {
        self.set("outcome", id, outcome)
    }

    fn paused(&self, session: &str, now: Millis) -> Result<Option<Millis>, StoreError> {
        self.paused_until(session, now)
    }

    fn pardons(&self, session: &str) -> Result<Vec<Pardon>, StoreError> {
        self.pardons_of(session)
    }

    fn pardons_known(&self, session: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("UPDATE pardons SET known = 1 WHERE session = ?1", [session]).map(drop)
        })
    }

    fn allowed(&self) -> Result<Vec<String>, StoreError> {
        self.allowed_patterns()
    }

    fn add_usage(&self, project: &str, day: i64, used: &UsageAmounts) -> Result<DayUsage, StoreError> {
        self.add_day_usage(project, day, used)
    }

    fn raise_day(&self, project: &str, day: i64) -> Result<(), StoreError> {
        self.raise_limits(project, day)
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
