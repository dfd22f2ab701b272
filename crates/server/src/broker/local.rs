//! The sessions and swarms of one server: in memory while they are used, and in SQLite. What changed since the last write
//! to SQLite is in the log of steps.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_detect::Swarm;
use deloop_engine::Session;
use deloop_store::{Bounds, Codec, SqliteRecords, SqliteStore, StateChange, StoreError, StoredState};
use deloop_types::Millis;

use super::local_view::LocalView;
use super::step_log::StepLog;
use super::stored_session::StoredSession;
use crate::money::{BudgetLimits, Money};
use crate::project::Project;

/// The log of the database is moved into the file once it has this many pages of 4 KiB.
const LOG_PAGES: u32 = 4_000;
/// Changes are written to the database once the log of steps is this long, in bytes.
const LONGEST_LOG: u64 = 8 << 20;
/// Changes are written to the database once this many sessions and swarms have changed.
const CHANGED: usize = 2_000;
/// How many sessions and swarms are kept in memory. After a write to the database, the least recently used are dropped.
const IN_MEMORY: usize = 10_000;

/// Stores sessions and swarms for one server.
pub(crate) struct LocalStore {
    pub(super) sqlite: Arc<SqliteStore>,
    money: Money,
    folder: PathBuf,
    pub(super) entries: Mutex<CachedStates>,
    /// Whoever holds it decides about steps: they are decided about in the order in which they are logged.
    log: Mutex<StepLog>,
    /// Locked while the server runs.
    _lock: File,
}

#[derive(Default)]
pub(super) struct CachedStates {
    pub(super) sessions: HashMap<String, CachedState<StoredSession>>,
    swarms: HashMap<String, CachedState<Swarm>>,
    clock: u64,
    pub(super) changed: usize,
    /// How long the log was, and how much had changed, when the last write to the database failed.
    failed_at: (u64, usize),
}

/// A state in memory. `None` is one that doesn't exist, which the database may not know yet.
pub(super) struct CachedState<T> {
    pub(super) state: Option<T>,
    pub(super) updated: Millis,
    /// Whether the database has a state of it.
    pub(super) stored: bool,
    pub(super) changed: bool,
    pub(super) used: u64,
}

impl CachedStates {
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl<T> CachedState<T> {
    /// Deletes the state. Returns whether it wasn't marked as changed.
    pub(super) fn delete(&mut self, now: Millis) -> ((), usize) {
        self.state = None;
        ((), self.touch(now))
    }

    /// Returns whether neither memory nor the database has a state of it.
    fn is_unknown(&self) -> bool {
        self.state.is_none() && !self.stored && !self.changed
    }

    fn written(&mut self) {
        (self.stored, self.changed) = (self.state.is_some(), false);
    }

    /// Marks it as changed. Returns whether it wasn't.
    pub(super) fn touch(&mut self, now: Millis) -> usize {
        // A clock that was wrong for a while must not make a session look idle when it is right again.
        self.updated = self.updated.max(now);
        usize::from(!std::mem::replace(&mut self.changed, true))
    }
}

/// Locks a file beside the database, because the sessions in memory are one server's alone.
fn lock_file(database: &Path) -> Result<File, StoreError> {
    let failed = |error| StoreError::database(database, error);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(database.with_extension("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(failed(error)),
        Err(TryLockError::WouldBlock) => {
            let message = "another `deloop serve` uses it; stop that one, or give this one a folder of its own \
                           with --state";
            Err(StoreError::database(database, message))
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves at worst one step half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LocalStore {
    /// Opens the database file; creates it if it doesn't exist. `replay` gets the log of steps that the database doesn't
    /// have yet.
    ///
    /// # Errors
    /// When a file can't be read or written, or another server uses it.
    pub(super) fn open(
        file: &Path,
        bounds: Bounds,
        budgets: BudgetLimits,
        now: Millis,
        replay: impl FnOnce(&Self, &[u8]),
    ) -> Result<Self, StoreError> {
        let sqlite = Arc::new(SqliteStore::open(file, bounds)?);
        let _lock = lock_file(file)?;
        sqlite.keep_log_short(LOG_PAGES)?;
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let failed = |error| StoreError::database(&folder, error);
        let mark = sqlite.last_mark()?;
        let (log, steps) = StepLog::resume(&folder, mark).map_err(failed)?;
        let money = Money::new(Arc::new(SqliteRecords::new(Arc::clone(&sqlite))?), budgets, now);
        let (entries, log) = (Mutex::default(), Mutex::new(log));
        let store = Self { sqlite, money, folder, entries, log, _lock };
        replay(&store, &steps);
        Ok(store)
    }

    /// Returns a view of one project.
    pub(crate) fn view<'a>(&'a self, project: &'a Project, now: Millis) -> LocalView<'a> {
        LocalView { store: self, project, now }
    }

    /// Returns the error for a log that can't be written.
    pub(super) fn log_failed(&self, error: std::io::Error) -> StoreError {
        StoreError::database(&self.folder, error)
    }

    /// Waits until no other request decides about steps.
    pub(super) fn turn(&self) -> MutexGuard<'_, StepLog> {
        lock(&self.log)
    }

    /// Writes changes to the database if there are many. After a failure it waits for as many more: a database that is locked
    /// makes one step wait, and the steps are safe in the log.
    pub(super) fn write_back_if_due(
        &self,
        log: &mut StepLog,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let (changed, (length, before)) = {
            let entries = lock(&self.entries);
            (entries.changed, entries.failed_at)
        };
        if log.len() < length + LONGEST_LOG && changed < before + CHANGED {
            return Ok(());
        }
        let written = self.write_back(log, codec, now);
        if written.is_err() {
            lock(&self.entries).failed_at = (log.len(), changed);
        }
        written
    }

    /// Writes changes to the database if there are any.
    pub(super) fn write_back_if_changed(
        &self,
        log: &mut StepLog,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        if lock(&self.entries).changed > 0 { self.write_back(log, codec, now) } else { Ok(()) }
    }

    /// Drops what changed since the last write to the database.
    pub(super) fn undo(&self) {
        let mut entries = lock(&self.entries);
        entries.sessions.retain(|_, entry| !entry.changed);
        entries.swarms.retain(|_, entry| !entry.changed);
        entries.changed = 0;
    }

    /// Writes all changes to the database and starts a new log.
    pub(super) fn write_back(
        &self,
        log: &mut StepLog,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        // Before the database names it: steps in a log that it doesn't name would be lost.
        let next = log.following().map_err(|error| self.log_failed(error))?;
        let mut entries = lock(&self.entries);
        let CachedStates { sessions, swarms, .. } = &mut *entries;
        let sessions_changed = changes(sessions, |state| state.freeze(codec))?;
        let swarms_changed =
            changes(swarms, |swarm| serde_json::to_string(swarm).map_err(StoreError::encode))?;
        let spent = self.money.to_send();
        // In one transaction, so that a step that is replayed isn't charged twice.
        let added = self.sqlite.batch(|sqlite| {
            sqlite.write_back(&sessions_changed, &swarms_changed, now, next.generation())?;
            self.money.add_all(&spent, now)
        })?;
        self.money.added(&spent, &added);
        sessions.values_mut().for_each(CachedState::written);
        swarms.values_mut().for_each(CachedState::written);
        forget_unused(sessions);
        forget_unused(swarms);
        (entries.changed, entries.failed_at) = (0, (0, 0));
        log.continue_in(next);
        Ok(())
    }

    /// Returns what sessions spend.
    pub(super) fn money(&self) -> &Money {
        &self.money
    }

    /// Returns the database.
    pub(super) fn sqlite(&self) -> &Arc<SqliteStore> {
        &self.sqlite
    }

    /// Returns the number of sessions of all projects.
    pub(super) fn session_count(&self) -> Result<u64, StoreError> {
        let entries = lock(&self.entries);
        let new = entries.sessions.values().filter(|entry| entry.state.is_some() && !entry.stored).count();
        let gone = entries.sessions.values().filter(|entry| entry.state.is_none() && entry.stored).count();
        Ok((self.sqlite.session_count()? + new as u64).saturating_sub(gone as u64))
    }

    pub(super) fn with_session<R>(
        &self,
        name: &str,
        codec: &dyn Codec<Session>,
        now: Millis,
        work: impl FnOnce(&mut CachedState<StoredSession>) -> (R, usize),
    ) -> Result<R, StoreError> {
        let mut entries = lock(&self.entries);
        let used = entries.tick();
        if !entries.sessions.contains_key(name) {
            let stored = self.sqlite.stored_session(name, now)?;
            let (updated, is_stored) = (stored.as_ref().map_or(Millis(0), |s| s.updated), stored.is_some());
            // As in a file, state written by another release or profile is discarded.
            let state = stored.and_then(|stored| StoredSession::thaw(&stored.text, codec).ok());
            let entry = CachedState { state, updated, stored: is_stored, changed: false, used };
            entries.sessions.insert(name.to_owned(), entry);
        }
        let Some(entry) = entries.sessions.get_mut(name) else {
            return Err(StoreError::decode("the session vanished from memory"));
        };
        entry.used = used;
        if self.sqlite.is_idle(entry.updated, now) {
            entry.state = None;
        }
        let (done, changed) = work(entry);
        entries.changed += changed;
        Ok(done)
    }

    /// Drops what memory has of a session that doesn't exist, so that asking for unknown names doesn't fill it.
    pub(super) fn drop_unknown_session(&self, name: &str) {
        let mut entries = lock(&self.entries);
        if entries.sessions.get(name).is_some_and(CachedState::is_unknown) {
            entries.sessions.remove(name);
        }
    }

    /// Drops what memory has of a swarm that doesn't exist.
    pub(super) fn drop_unknown_swarm(&self, name: &str) {
        let mut entries = lock(&self.entries);
        if entries.swarms.get(name).is_some_and(CachedState::is_unknown) {
            entries.swarms.remove(name);
        }
    }

    pub(super) fn with_swarm<R>(
        &self,
        name: &str,
        work: impl FnOnce(&mut CachedState<Swarm>) -> (R, usize),
    ) -> Result<R, StoreError> {
        let mut entries = lock(&self.entries);
        let used = entries.tick();
        if !entries.swarms.contains_key(name) {
            let stored = self.sqlite.stored_swarm(name)?;
            let state = stored.map(|text| serde_json::from_str(&text).unwrap_or_default());
            let entry =
                CachedState { stored: state.is_some(), state, updated: Millis(0), changed: false, used };
            entries.swarms.insert(name.to_owned(), entry);
        }
        let Some(entry) = entries.swarms.get_mut(name) else {
            return Err(StoreError::decode("the swarm vanished from memory"));
        };
        entry.used = used;
        let (done, changed) = work(entry);
        entries.changed += changed;
        Ok(done)
    }
}

/// Returns the changed states as text.
fn changes<T>(
    entries: &HashMap<String, CachedState<T>>,
    freeze: impl Fn(&T) -> Result<String, StoreError>,
) -> Result<Vec<StateChange>, StoreError> {
    let changed = entries.iter().filter(|(_, entry)| entry.changed);
    changed
        .map(|(name, entry)| {
            let text = entry.state.as_ref().map(&freeze).transpose()?;
            let state = text.map(|text| StoredState { updated: entry.updated, text });
            Ok(StateChange { name: name.clone(), state })
        })
        .collect()
}

/// Drops the least recently used quarter of the states if there are too many.
fn forget_unused<T>(entries: &mut HashMap<String, CachedState<T>>) {
    if entries.len() <= IN_MEMORY {
        return;
    }
    let mut used: Vec<u64> = entries.values().map(|entry| entry.used).collect();
    let at = used.len() - IN_MEMORY * 3 / 4;
    let (_, oldest, _) = used.select_nth_unstable(at);
    let oldest = *oldest;
    entries.retain(|_, entry| entry.used >= oldest);
}

#[cfg(test)]
mod tests {
    use deloop_engine::{Engine, Options};
    use deloop_policy::Profile;
    use deloop_store::Store;

    use super::*;

    fn open(folder: &Path) -> (LocalStore, Engine, Project) {
        let bounds =
            Bounds { sessions: 9_000, idle: 9, swarms: 9, projects: 9, decisions: 0, bytes: 1 << 30 };
        let file = folder.join("server.db");
        let store = LocalStore::open(&file, bounds, BudgetLimits::default(), Millis(0), |_, _| {}).unwrap();
        let engine = Engine::new(Profile::named("default").unwrap(), Options::default());
        (store, engine, Project::default())
    }

    /// Each attempt waits for the lock, and every step would wait with it.
    #[test]
    fn a_locked_database_makes_one_step_wait_and_not_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (store, engine, project) = open(folder.path());
        let view = store.view(&project, Millis(1));
        let change = |from: usize| {
            for n in from..from + CHANGED {
                view.change(&engine, &format!("s{n}").as_str().into(), |_| ()).unwrap();
            }
        };
        let due = || store.write_back_if_due(&mut store.turn(), &engine, Millis(1));
        change(0);
        let other = rusqlite::Connection::open(folder.path().join("server.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        due().unwrap_err();
        due().unwrap();
        other.execute_batch("ROLLBACK").unwrap();
        due().unwrap();
        assert_eq!(lock(&store.entries).changed, CHANGED, "it isn't tried again yet");
        change(CHANGED);
        due().unwrap();
        assert_eq!(store.session_count().unwrap(), 2 * CHANGED as u64);
        assert_eq!(lock(&store.entries).changed, 0, "it is tried again");
        change(0);
        due().unwrap();
        assert_eq!(lock(&store.entries).changed, 0, "and then as before");
    }

    /// Anybody may ask for names, as many as they like.
    #[test]
    fn unknown_names_that_are_asked_for_are_not_kept_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let (store, engine, project) = open(folder.path());
        let view = store.view(&project, Millis(1));
        for name in ["a", "b"] {
            assert!(view.see(&engine, &name.into(), |_| ()).unwrap().is_none());
            assert!(view.look_swarm(name, |_| ()).unwrap().is_none());
        }
        let kept = |store: &LocalStore| {
            let entries = lock(&store.entries);
            (entries.sessions.len(), entries.swarms.len())
        };
        assert_eq!(kept(&store), (0, 0));
        view.change(&engine, &"a".into(), |_| ()).unwrap();
        assert!(view.see(&engine, &"a".into(), |_| ()).unwrap().is_some());
        assert_eq!(kept(&store), (1, 0));
    }
}
