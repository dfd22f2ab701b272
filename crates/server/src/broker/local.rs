//! The sessions and swarms of one server: in memory while they are used, and in SQLite. What changed since the last write
//! to SQLite is in the log of steps.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_detect::{Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_engine::Session;
use deloop_store::{Bounds, Codec, SqliteRecords, SqliteStore, StateChange, Store, StoreError, StoredState};
use deloop_types::{Millis, SessionId};

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
    sqlite: Arc<SqliteStore>,
    money: Money,
    folder: PathBuf,
    entries: Mutex<Entries>,
    /// Whoever holds it decides about steps: they are decided about in the order in which they are logged.
    log: Mutex<StepLog>,
    /// Locked while the server runs.
    _lock: File,
}

#[derive(Default)]
struct Entries {
    sessions: HashMap<String, Entry<StoredSession>>,
    swarms: HashMap<String, Entry<Swarm>>,
    clock: u64,
    changed: usize,
}

/// A state in memory. `None` is one that doesn't exist, which the database may not know yet.
struct Entry<T> {
    state: Option<T>,
    updated: Millis,
    /// Whether the database has a state of it.
    stored: bool,
    changed: bool,
    used: u64,
}

impl Entries {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl<T> Entry<T> {
    /// Deletes the state. Returns whether it wasn't marked as changed.
    fn delete(&mut self, now: Millis) -> ((), usize) {
        self.state = None;
        ((), self.touch(now))
    }

    fn written(&mut self) {
        (self.stored, self.changed) = (self.state.is_some(), false);
    }

    /// Marks it as changed. Returns whether it wasn't.
    fn touch(&mut self, now: Millis) -> usize {
        self.updated = now;
        usize::from(!std::mem::replace(&mut self.changed, true))
    }
}

/// Locks a file beside the database, because the sessions in memory are one server's alone.
fn lock_file(database: &Path) -> Result<File, StoreError> {
    let failed = |error| StoreError::database(database, error);
    let file = File::create(database.with_extension("lock")).map_err(failed)?;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
        codec: &dyn Codec<Session>,
        now: Millis,
        replay: impl FnOnce(&Self, &[u8]),
    ) -> Result<Self, StoreError> {
        let sqlite = Arc::new(SqliteStore::open(file, bounds)?);
        let _lock = lock_file(file)?;
        sqlite.keep_log_short(LOG_PAGES)?;
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let failed = |error| StoreError::database(&folder, error);
        let mark = sqlite.last_mark()?;
        let steps = StepLog::read(&folder, mark).map_err(failed)?;
        let log = StepLog::start(&folder, mark + 1).map_err(failed)?;
        let money = Money::new(Arc::new(SqliteRecords::new(Arc::clone(&sqlite))?), budgets, now);
        let (entries, log) = (Mutex::default(), Mutex::new(log));
        let store = Self { sqlite, money, folder: folder.clone(), entries, log, _lock };
        replay(&store, &steps);
        // Until this is done, the steps are still in the log that was read.
        store.write_back(&mut store.turn(), codec, now)?;
        StepLog::remove(&folder, mark);
        Ok(store)
    }

    /// Returns a view of one project.
    pub(crate) fn view<'a>(&'a self, project: &'a Project, now: Millis) -> LocalView<'a> {
        LocalView { store: self, project, now }
    }

    /// Returns what sessions spend.
    pub(crate) fn money(&self) -> &Money {
        &self.money
    }

    /// Returns the error for a log that can't be written.
    pub(super) fn log_failed(&self, error: std::io::Error) -> StoreError {
        StoreError::database(&self.folder, error)
    }

    /// Waits until no other request decides about steps.
    pub(super) fn turn(&self) -> MutexGuard<'_, StepLog> {
        lock(&self.log)
    }

    /// Writes changes to the database if there are many.
    pub(super) fn write_back_if_due(
        &self,
        log: &mut StepLog,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let due = log.len() >= LONGEST_LOG || lock(&self.entries).changed >= CHANGED;
        if due { self.write_back(log, codec, now) } else { Ok(()) }
    }

    /// Writes all changes to the database and starts a new log.
    pub(super) fn write_back(
        &self,
        log: &mut StepLog,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let mut entries = lock(&self.entries);
        let Entries { sessions, swarms, .. } = &mut *entries;
        let sessions_changed = changes(sessions, |state| state.freeze(codec))?;
        let swarms_changed =
            changes(swarms, |swarm| serde_json::to_string(swarm).map_err(StoreError::encode))?;
        let spent = self.money.to_send();
        // In one transaction, so that a step that is replayed isn't charged twice.
        let added = self.sqlite.batch(|sqlite| {
            sqlite.write_back(&sessions_changed, &swarms_changed, now, log.generation() + 1)?;
            self.money.add_all(&spent, now)
        })?;
        self.money.added(&spent, &added);
        sessions.values_mut().for_each(Entry::written);
        swarms.values_mut().for_each(Entry::written);
        forget_unused(sessions);
        forget_unused(swarms);
        entries.changed = 0;
        log.next().map_err(|error| StoreError::database(&self.folder, error))
    }

    /// Returns the number of sessions of all projects.
    pub(super) fn session_count(&self) -> Result<u64, StoreError> {
        let entries = lock(&self.entries);
        let new = entries.sessions.values().filter(|entry| entry.state.is_some() && !entry.stored).count();
        let gone = entries.sessions.values().filter(|entry| entry.state.is_none() && entry.stored).count();
        Ok((self.sqlite.session_count()? + new as u64).saturating_sub(gone as u64))
    }

    fn with_session<R>(
        &self,
        name: String,
        codec: &dyn Codec<Session>,
        now: Millis,
        work: impl FnOnce(&mut Entry<StoredSession>) -> (R, usize),
    ) -> Result<R, StoreError> {
        let mut entries = lock(&self.entries);
        let used = entries.tick();
        if !entries.sessions.contains_key(&name) {
            let stored = self.sqlite.stored_session(&name, now)?;
            let (updated, is_stored) = (stored.as_ref().map_or(Millis(0), |s| s.updated), stored.is_some());
            // As in a file, state written by another release or profile is discarded.
            let state = stored.and_then(|stored| StoredSession::thaw(&stored.text, codec).ok());
            let entry = Entry { state, updated, stored: is_stored, changed: false, used };
            entries.sessions.insert(name.clone(), entry);
        }
        let Some(entry) = entries.sessions.get_mut(&name) else {
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

    fn with_swarm<R>(
        &self,
        name: String,
        work: impl FnOnce(&mut Entry<Swarm>) -> (R, usize),
    ) -> Result<R, StoreError> {
        let mut entries = lock(&self.entries);
        let used = entries.tick();
        if !entries.swarms.contains_key(&name) {
            let stored = self.sqlite.stored_swarm(&name)?;
            let state = stored.map(|text| serde_json::from_str(&text).unwrap_or_default());
            let entry = Entry { stored: state.is_some(), state, updated: Millis(0), changed: false, used };
            entries.swarms.insert(name.clone(), entry);
        }
        let Some(entry) = entries.swarms.get_mut(&name) else {
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
    entries: &HashMap<String, Entry<T>>,
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
fn forget_unused<T>(entries: &mut HashMap<String, Entry<T>>) {
    if entries.len() <= IN_MEMORY {
        return;
    }
    let mut used: Vec<u64> = entries.values().map(|entry| entry.used).collect();
    let at = used.len() - IN_MEMORY * 3 / 4;
    let (_, oldest, _) = used.select_nth_unstable(at);
    let oldest = *oldest;
    entries.retain(|_, entry| entry.used >= oldest);
}

/// The sessions and swarms of one project, at one time.
pub(crate) struct LocalView<'a> {
    store: &'a LocalStore,
    project: &'a Project,
    now: Millis,
}

impl LocalView<'_> {
    pub(super) fn project(&self) -> &Project {
        self.project
    }

    pub(super) fn money(&self) -> &Money {
        &self.store.money
    }

    fn name(&self, name: &str) -> String {
        // A project's name has no slash.
        format!("{}/{name}", self.project)
    }

    /// Loads a session into memory, so that its next change doesn't need the database.
    pub(super) fn preload(&self, codec: &dyn Codec<Session>, session: &SessionId) -> Result<(), StoreError> {
        self.store.with_session(self.name(session.as_str()), codec, self.now, |_| ((), 0))
    }

    pub(super) fn change<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        change: impl Fn(&mut StoredSession) -> R,
    ) -> Result<R, StoreError> {
        self.store.with_session(self.name(session.as_str()), codec, self.now, |entry| {
            let state = entry
                .state
                .get_or_insert_with(|| StoredSession { session: codec.fresh(), ..StoredSession::default() });
            (change(state), entry.touch(self.now))
        })
    }

    pub(super) fn see<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        see: impl FnOnce(&StoredSession) -> R,
    ) -> Result<Option<R>, StoreError> {
        let name = self.name(session.as_str());
        self.store.with_session(name, codec, self.now, |entry| (entry.state.as_ref().map(see), 0))
    }

    fn change_swarm<R>(&self, swarm: &str, change: impl FnOnce(&mut Swarm) -> R) -> Result<R, StoreError> {
        self.store.with_swarm(self.name(swarm), |entry| {
            (change(entry.state.get_or_insert_default()), entry.touch(self.now))
        })
    }

    /// Returns the names of stored sessions after `after`. Write changes back first.
    pub(super) fn sessions_after(
        &self,
        after: Option<&str>,
        limit: u64,
    ) -> Result<Vec<SessionId>, StoreError> {
        let prefix = self.name("");
        let after = after.map_or_else(|| prefix.clone(), |after| self.name(after));
        let found = self.store.sqlite.sessions_after(Some(&after), limit)?;
        let of_project = |name: SessionId| name.as_str().strip_prefix(&prefix).map(SessionId::from);
        Ok(found.into_iter().map_while(of_project).collect())
    }
}

impl Store<Session> for LocalView<'_> {
    fn update<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        _: Option<Millis>,
        change: impl Fn(&mut Session) -> R,
    ) -> Result<R, StoreError> {
        self.change(codec, session, |state| change(&mut state.session))
    }

    fn look<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        see: impl FnOnce(&Session) -> R,
    ) -> Result<Option<R>, StoreError> {
        self.see(codec, session, |state| see(&state.session))
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
        self.store.with_swarm(self.name(swarm), |entry| (entry.state.as_ref().map(see), 0))
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        let name = self.name(session.as_str());
        let mut entries = lock(&self.store.entries);
        if let Some(entry) = entries.sessions.get_mut(&name) {
            let ((), changed) = entry.delete(self.now);
            entries.changed += changed;
            return Ok(());
        }
        // Whether the database has it doesn't matter: deleting what isn't there changes nothing.
        let used = entries.tick();
        entries
            .sessions
            .insert(name, Entry { state: None, updated: self.now, stored: true, changed: true, used });
        entries.changed += 1;
        Ok(())
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        self.store.with_swarm(self.name(swarm), |entry| entry.delete(self.now))
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        self.sessions_after(None, u64::MAX)
    }

    fn swarms(&self) -> Result<Vec<String>, StoreError> {
        let prefix = self.name("");
        let stored: Vec<String> = Store::<Session>::swarms(&*self.store.sqlite)?;
        Ok(stored.into_iter().filter_map(|name| name.strip_prefix(&prefix).map(str::to_owned)).collect())
    }
}
