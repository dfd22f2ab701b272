//! Stores everything in one SQLite file, which many processes can use at the same time and people can open.

mod batch;
mod failures;
mod file;
mod listing;
mod lock_wait;
mod record_tables;
mod records;
mod schema;
mod set_aside;
mod write_back;

use std::path::{Path, PathBuf};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};

use deloop_detect::{FailureNote, KnownFailures, Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_types::{Millis, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{Codec, Store, StoreError};
use batch::SharedConnection;
pub use file::set_aside_files;
pub use records::SqliteRecords;
use set_aside::UnreadableNotes;
pub use write_back::{StateChange, StoredState};

/// An error inside a change.
enum Fault {
    Database(rusqlite::Error),
    State(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::State(error)
    }
}

/// Limits of a database file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of sessions. The least recently used are dropped first.
    pub sessions: u64,
    /// Sessions without a step for this many milliseconds, by the steps' own times, are dropped.
    pub idle: u64,
    /// Maximum number of swarms.
    pub swarms: u64,
    /// Maximum number of projects whose failures are remembered, at most 8 KiB each.
    pub projects: u64,
    /// Maximum number of decisions in the journal. The oldest are dropped first.
    pub decisions: u64,
    /// Maximum size in bytes. In a larger file, the older half of the sessions is dropped.
    pub bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        let week = 7 * 24 * 3_600_000;
        Self { sessions: 5_000, idle: week, swarms: 500, projects: 200, decisions: 10_000, bytes: 256 << 20 }
    }
}

/// Stores everything in one SQLite file.
///
/// Every change is its own transaction (`BEGIN IMMEDIATE`): processes that write at the same time wait for each other,
/// for two seconds, or up to ten while others write. Old sessions are dropped only when a new one starts, so ordinary steps don't pay for it.
pub struct SqliteStore {
    connection: SharedConnection,
    path: PathBuf,
    bounds: Bounds,
    damaged: AtomicBool,
    unreadable: UnreadableNotes,
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        file::shorten_log(&self.lock(), &self.path);
        if self.damaged.load(Ordering::Relaxed) {
            // The next process that opens the file starts a new one.
            let _ = file::replace_if_damaged(&self.path);
        }
    }
}

impl SqliteStore {
    /// Opens a file; creates it and its folder if they don't exist (mode 0600 and 0700). A file that isn't a
    /// database, or is damaged, is renamed to `NAME.corrupt-N` and replaced by a new one.
    ///
    /// # Errors
    /// When the file can't be created, read or written, or was written by a later release.
    pub fn open(path: &Path, bounds: Bounds) -> Result<Self, StoreError> {
        let connection = file::open(path)?;
        let damaged = AtomicBool::new(false);
        Ok(Self {
            connection: SharedConnection::new(connection),
            path: path.to_owned(),
            bounds,
            damaged,
            unreadable: UnreadableNotes::default(),
        })
    }

    /// Makes several changes as one: all of them are stored or, if `work` fails, none. Other threads that use the store
    /// wait meanwhile, so `work` must not wait for one of them.
    ///
    /// # Errors
    /// The error of `work`, or an error when the file can't be written.
    pub fn batch<R, E: From<StoreError>>(&self, work: impl FnOnce(&Self) -> Result<R, E>) -> Result<R, E> {
        let run = |sql| self.lock().execute_batch(sql).map_err(|e| self.failed(e));
        let _batch = self.connection.open_batch();
        run("BEGIN IMMEDIATE")?;
        let done = work(self);
        let ended = run(if done.is_ok() { "COMMIT" } else { "ROLLBACK" });
        let done = done?;
        ended?;
        Ok(done)
    }

    /// Returns the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }

    fn failed(&self, error: rusqlite::Error) -> StoreError {
        self.damaged.fetch_or(file::is_damage(&error), Ordering::Relaxed);
        StoreError::database(&self.path, error)
    }

    /// Runs `work` in a transaction: the batch's if there is one, else its own. For tables that another crate keeps in
    /// the same file.
    ///
    /// # Errors
    /// When `work` fails or the file can't be written.
    pub fn change<R>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        self.change_with(|connection| Ok(work(connection)?))
    }

    fn change_with<R>(&self, work: impl FnOnce(&Connection) -> Result<R, Fault>) -> Result<R, StoreError> {
        let connection = self.lock();
        let done = if connection.is_autocommit() {
            let begin =
                rusqlite::Transaction::new_unchecked(&connection, rusqlite::TransactionBehavior::Immediate);
            begin.map_err(Fault::from).and_then(|transaction| {
                let done = work(&transaction)?;
                transaction.commit()?;
                Ok(done)
            })
        } else {
            work(&connection)
        };
        done.map_err(|fault| match fault {
            Fault::Database(error) => self.failed(error),
            Fault::State(error) => error,
        })
    }

    /// Runs `work`, which must only read.
    ///
    /// # Errors
    /// When `work` fails.
    pub fn see<R>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        work(&self.lock()).map_err(|error| self.failed(error))
    }

    /// Returns the tables that the file should have and doesn't. `create` creates those that another crate keeps in it.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn missing_tables(
        &self,
        create: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> Result<Vec<String>, StoreError> {
        let names = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
            let mut select = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
            select.query_map([], |row| row.get(0))?.collect()
        };
        self.see(|connection| {
            let whole = Connection::open_in_memory()?;
            schema::create(&whole)?;
            create(&whole)?;
            let there = names(connection)?;
            Ok(names(&whole)?.into_iter().filter(|name| !there.contains(name)).collect())
        })
    }

    fn change_swarm<R>(&self, name: &str, change: impl FnOnce(&mut Swarm) -> R) -> Result<R, StoreError> {
        self.change_with(|connection| {
            let text: Option<String> = connection
                .query_row("SELECT state FROM swarms WHERE swarm = ?1", [name], |row| row.get(0))
                .optional()?;
            let mut state = match text.map(|text| (crate::read_swarm(&text), text)) {
                None => Swarm::default(),
                Some((Ok(state), _)) => state,
                Some((Err(error), text)) => {
                    self.set_aside(connection, ("swarm", name), &text, &error)?;
                    Swarm::default()
                }
            };
            let done = change(&mut state);
            let text = serde_json::to_string(&state).map_err(StoreError::encode)?;
            connection.execute(
                "INSERT OR REPLACE INTO swarms VALUES(?1, (SELECT coalesce(max(touched), 0) + 1 FROM swarms), ?2)",
                [name, &text],
            )?;
            connection.execute(
                "DELETE FROM swarms WHERE touched <= (SELECT max(touched) FROM swarms) - ?1",
                [signed(self.bounds.swarms.max(1))],
            )?;
            Ok(done)
        })
    }

    fn make_room(&self, connection: &Connection, now: i64) -> rusqlite::Result<()> {
        let oldest = now.saturating_sub_unsigned(self.bounds.idle);
        connection
            .prepare_cached("DELETE FROM sessions WHERE updated_ms < ?1 AND updated_ms > 0")?
            .execute([oldest])?;
        connection
            .prepare_cached(
                "DELETE FROM sessions WHERE session IN
                 (SELECT session FROM sessions ORDER BY updated_ms DESC LIMIT -1 OFFSET ?1)",
            )?
            .execute([signed(self.bounds.sessions.saturating_sub(1))])?;
        let pragma = |name: &str| -> rusqlite::Result<i64> {
            connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
        };
        let used = (pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?;
        if used > signed(self.bounds.bytes) {
            connection.execute(
                "DELETE FROM sessions WHERE session IN (SELECT session FROM sessions ORDER BY updated_ms
                 LIMIT (SELECT (count(*) + 1) / 2 FROM sessions))",
                [],
            )?;
        }
        Ok(())
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

impl<T: Send> Store<T> for SqliteStore {
    fn update<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        ts: Option<Millis>,
        change: impl Fn(&mut T) -> R,
    ) -> Result<R, StoreError> {
        self.change_with(|connection| {
            let kept: Option<(String, i64)> = connection
                .prepare_cached("SELECT state, updated_ms FROM sessions WHERE session = ?1")?
                .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let before = kept.as_ref().map_or(0, |(_, updated)| *updated);
            let idle = ts.is_some_and(|now| before > 0 && now.since(Millis(before)) > self.bounds.idle);
            let kept = kept.filter(|_| !idle);
            let is_new = kept.is_none();
            let mut state = match kept.map(|(text, _)| (codec.thaw(&text), text)) {
                None => codec.fresh(),
                Some((Ok(state), _)) => state,
                // A guard must not stop the work it guards, so the session starts afresh; but a stop stands.
                Some((Err(error), text)) => {
                    self.set_aside(connection, ("session", session.as_str()), &text, &error)?;
                    codec.salvage(&text).unwrap_or_else(|| codec.fresh())
                }
            };
            let now = ts.map_or(0, |ts| ts.0).max(if idle { 0 } else { before });
            if is_new {
                self.make_room(connection, now)?;
            }
            let done = change(&mut state);
            let text = codec.freeze(&state)?;
            connection
                .prepare_cached(
                    "INSERT INTO sessions(session, updated_ms, steps, state) VALUES(?1, ?2, 1, ?3)
                     ON CONFLICT(session) DO UPDATE SET updated_ms = ?2, state = ?3,
                     steps = CASE WHEN ?4 THEN 1 ELSE steps + 1 END",
                )?
                .execute(params![session.as_str(), now, text, idle])?;
            Ok(done)
        })
    }

    fn look<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        see: impl FnOnce(&T) -> R,
    ) -> Result<Option<R>, StoreError> {
        let text: Option<String> = self.see(|connection| {
            connection
                .prepare_cached("SELECT state FROM sessions WHERE session = ?1")?
                .query_row([session.as_str()], |row| row.get(0))
                .optional()
        })?;
        let state = text.map(|text| codec.thaw(&text)).transpose()?;
        Ok(state.map(|state| see(&state)))
    }

    fn tally(
        &self,
        swarm: &str,
        worker: SwarmWorker<'_>,
        calls: &[SwarmCall<'_>],
    ) -> Result<Vec<SwarmCount>, StoreError> {
        self.change_swarm(swarm, |swarm| swarm.tally(worker, calls))
    }

    fn tally_in_vain(&self, swarm: &str, worker: SwarmWorker<'_>, signature: u64) -> Result<(), StoreError> {
        self.change_swarm(swarm, |swarm| swarm.push_in_vain(signature, worker))
    }

    fn look_swarm<R>(&self, swarm: &str, see: impl FnOnce(&Swarm) -> R) -> Result<Option<R>, StoreError> {
        let text: Option<String> = self.see(|connection| {
            let sql = "SELECT state FROM swarms WHERE swarm = ?1";
            connection.query_row(sql, [swarm], |row| row.get(0)).optional()
        })?;
        let state = text.as_deref().map(crate::read_swarm).transpose()?;
        Ok(state.map(|state| see(&state)))
    }

    fn failures(&self, project: &str) -> Result<KnownFailures, StoreError> {
        self.see(|connection| failures::read(connection, project))
    }

    fn note_failure(&self, project: &str, note: &FailureNote) -> Result<(), StoreError> {
        self.change_with(|connection| failures::enter(self, connection, project, note))
    }

    fn forget_project(&self, project: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("DELETE FROM projects WHERE project = ?1", [project]).map(drop)
        })
    }

    fn projects(&self) -> Result<Vec<String>, StoreError> {
        self.see(failures::projects)
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("DELETE FROM sessions WHERE session = ?1", [session.as_str()])?;
            Ok(())
        })
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        self.change(|connection| {
            connection.execute("DELETE FROM swarms WHERE swarm = ?1", [swarm])?;
            Ok(())
        })
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare_cached("SELECT session FROM sessions")?;
            let names = select.query_map([], |row| row.get::<_, String>(0))?;
            names.map(|name| name.map(SessionId::from)).collect()
        })
    }

    fn swarms(&self) -> Result<Vec<String>, StoreError> {
        self.see(|connection| {
            let mut select = connection.prepare_cached("SELECT swarm FROM swarms")?;
            let names = select.query_map([], |row| row.get(0))?;
            names.collect()
        })
    }
}

#[cfg(test)]
mod tests;
