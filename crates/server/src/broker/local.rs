//! The sessions and swarms of one server: in memory while they are used, and in SQLite. What changed since the last write
//! to SQLite is in the log of steps.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_detect::Swarm;
use deloop_engine::Session;
use deloop_store::{Bounds, Codec, SqliteRecords, SqliteStore, StoreError, read_swarm, set_aside_files};
use deloop_types::{Millis, SessionId};

use super::local_view::LocalView;
use super::state_cache::{CachedState, StateCache};
use super::state_notices::StateNotices;
use super::step_log::{LogMark, LoggedStep, ResumedLog, StepLog};
use super::step_turns::{StepTurn, StepTurns};
use super::stored_session::StoredSession;
use crate::money::{BudgetLimits, Money, SpendAddition};
use crate::project::Project;
use crate::shared::TellFn;

/// The log of the database is moved into the file once it has this many pages of 4 KiB.
const LOG_PAGES: u32 = 4_000;
/// Changes are written to the database once the log of steps is this long, in bytes.
const LONGEST_LOG: u64 = 32 << 20;
/// How often a lock that is held is tried before the thread sleeps: a few microseconds.
const SPINS: usize = 500;
/// Changes are written to the database once this many sessions and swarms have changed.
const CHANGED: usize = 2_000;
/// A step waits for a write to the database once there is this many times as much to write: it can't keep up.
pub(super) const BEHIND: u64 = 5;

/// Stores sessions and swarms for one server.
pub(crate) struct LocalStore {
    pub(super) sqlite: Arc<SqliteStore>,
    pub(super) notices: Arc<StateNotices>,
    /// A connection of its own, so that a session can be loaded while others are written.
    pub(super) reader: SqliteStore,
    money: Money,
    folder: PathBuf,
    pub(super) sessions: StateCache<StoredSession>,
    pub(super) swarms: StateCache<Swarm>,
    turns: StepTurns,
    /// Held during a write to the database.
    writing: Mutex<()>,
    log: Mutex<StepLog>,
    /// How many bytes of steps the database doesn't have.
    logged: AtomicU64,
    failed_at: FailedWrite,
    /// Locked while the server runs.
    _lock: File,
}

/// How much was logged and had changed when the last write to the database failed; 0 if it succeeded.
#[derive(Default)]
struct FailedWrite {
    logged: AtomicU64,
    changed: AtomicUsize,
}

impl FailedWrite {
    fn set(&self, logged: u64, changed: usize) {
        self.logged.store(logged, Ordering::Relaxed);
        self.changed.store(changed, Ordering::Relaxed);
    }
}

/// The turn of all, while nothing is being written to the database.
pub(super) struct WriteTurn<'a> {
    _turn: StepTurn<'a>,
    _writing: MutexGuard<'a, ()>,
}

/// What a write to the database has to add to what sessions spent, and up to where it has the log of steps.
struct WriteCut {
    spent: Vec<SpendAddition>,
    mark: LogMark,
    logged: u64,
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

/// Locks what others hold for microseconds only: sleeping and waking up again would take longer.
pub(super) fn lock_soon<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for _ in 0..SPINS {
        if let Ok(guard) = mutex.try_lock() {
            return guard;
        }
        std::hint::spin_loop();
    }
    lock(mutex)
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
        tell: TellFn,
        replay: impl FnOnce(&Self, &[u8]),
    ) -> Result<Self, StoreError> {
        let sqlite = Arc::new(SqliteStore::open(file, bounds)?);
        let _lock = lock_file(file)?;
        let notices = Arc::new(StateNotices::new(tell, set_aside_files(file)));
        sqlite.keep_log_short(LOG_PAGES)?;
        let reader = SqliteStore::open(file, bounds)?;
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let failed = |error| StoreError::database(&folder, error);
        let mark = LogMark::from_stored(sqlite.last_mark()?);
        let ResumedLog { log, steps, lost } = StepLog::resume(&folder, mark).map_err(failed)?;
        lost.into_iter().for_each(|lost| notices.lost_log(lost));
        let money = Money::new(Arc::new(SqliteRecords::new(Arc::clone(&sqlite))?), budgets, now);
        let store = Self {
            sqlite,
            notices,
            reader,
            money,
            folder,
            sessions: StateCache::default(),
            swarms: StateCache::default(),
            turns: StepTurns::default(),
            writing: Mutex::default(),
            logged: AtomicU64::new(steps.len() as u64),
            log: Mutex::new(log),
            failed_at: FailedWrite::default(),
            _lock,
        };
        replay(&store, &steps);
        Ok(store)
    }

    /// Returns a view of one project.
    pub(crate) fn view<'a>(&'a self, project: &'a Project, now: Millis) -> LocalView<'a> {
        LocalView { store: self, project, now }
    }

    #[cfg(test)]
    pub(super) fn turns(&self) -> &StepTurns {
        &self.turns
    }

    /// Waits until no other request decides about steps of these sessions.
    pub(super) fn turn_of<'s>(&self, sessions: impl Iterator<Item = &'s SessionId>) -> StepTurn<'_> {
        self.turns.of(sessions)
    }

    /// Waits until no other request decides about steps.
    pub(super) fn turn(&self) -> StepTurn<'_> {
        self.turns.all()
    }

    /// Waits until no other request decides about steps, and nothing is written to the database.
    pub(super) fn write_turn(&self) -> WriteTurn<'_> {
        // In this order everywhere.
        let _writing = lock(&self.writing);
        WriteTurn { _turn: self.turn(), _writing }
    }

    /// Adds steps to the log: all of them or, if this fails, none.
    pub(super) fn append<'s>(&self, steps: impl Iterator<Item = LoggedStep<'s>>) -> Result<(), StoreError> {
        let mut log = lock_soon(&self.log);
        let appended = log.append(steps);
        drop(log);
        let appended = appended.map_err(|error| self.log_failed(error))?;
        self.logged.fetch_add(appended, Ordering::Relaxed);
        Ok(())
    }

    fn log_failed(&self, error: std::io::Error) -> StoreError {
        StoreError::database(&self.folder, error)
    }

    fn changed(&self) -> usize {
        self.sessions.changed() + self.swarms.changed()
    }

    /// Returns whether there is this many times as much to write as makes it due.
    fn is_due(&self, times: u64) -> bool {
        let FailedWrite { logged, changed } = &self.failed_at;
        self.changed() as u64 >= changed.load(Ordering::Relaxed) as u64 + times * CHANGED as u64
            || self.logged.load(Ordering::Relaxed) >= logged.load(Ordering::Relaxed) + times * LONGEST_LOG
    }

    /// Writes changes to the database if there are many. After a failure it waits for as many more: the steps are safe in
    /// the log.
    pub(super) fn write_back_if_due(
        &self,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        if !self.is_due(1) {
            return Ok(());
        }
        let written = self.write_back(codec, now);
        if written.is_err() {
            self.failed_at.set(self.logged.load(Ordering::Relaxed), self.changed());
        }
        written
    }

    /// Waits until the database has most changes, if there are this many times as many as make a write due.
    pub(super) fn keep_up(
        &self,
        codec: &dyn Codec<Session>,
        behind: u64,
        now: Millis,
    ) -> Result<(), StoreError> {
        if !self.is_due(behind) {
            return Ok(());
        }
        // Most likely it is being written.
        drop(lock(&self.writing));
        if self.is_due(behind) { self.write_back_if_due(codec, now) } else { Ok(()) }
    }

    /// Drops what changed since the last write to the database.
    pub(super) fn undo(&self, _turn: &WriteTurn<'_>) {
        self.sessions.undo();
        self.swarms.undo();
    }

    /// Writes all changes so far to the database. Steps wait only while the log of the next ones is started.
    pub(super) fn write_back(&self, codec: &dyn Codec<Session>, now: Millis) -> Result<(), StoreError> {
        let _writing = lock(&self.writing);
        let turn = self.turn();
        let cut = self.cut()?;
        drop(turn);
        self.write(&cut, codec, now)
    }

    /// Writes all changes to the database, if there are any. No step is decided about before the turn ends.
    pub(super) fn write_back_in(
        &self,
        _turn: &WriteTurn<'_>,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        if self.changed() > 0 { self.write(&self.cut()?, codec, now) } else { Ok(()) }
    }

    /// Starts a write to the database, in the turn of all: what changes from now on belongs to the next one.
    fn cut(&self) -> Result<WriteCut, StoreError> {
        let mark = lock(&self.log).mark().map_err(|error| self.log_failed(error))?;
        self.sessions.cut();
        self.swarms.cut();
        let logged = self.logged.load(Ordering::Relaxed);
        Ok(WriteCut { spent: self.money.to_send_all(), mark, logged })
    }

    /// Writes what had changed at the cut, and deletes the log up to there.
    fn write(&self, cut: &WriteCut, codec: &dyn Codec<Session>, now: Millis) -> Result<(), StoreError> {
        let written = self.write_changes(cut, codec, now);
        self.sessions.end_write(written.is_ok());
        self.swarms.end_write(written.is_ok());
        if written.is_ok() {
            self.failed_at.set(0, 0);
            lock(&self.log).delete_before(cut.mark);
            self.logged.fetch_sub(cut.logged, Ordering::Relaxed);
        }
        written
    }

    fn write_changes(
        &self,
        cut: &WriteCut,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let sessions = self.sessions.changes(|state| state.freeze(codec))?;
        let swarms = self.swarms.changes(freeze_swarm)?;
        // In one transaction, so that a step that is replayed isn't charged twice.
        let added = self.sqlite.batch(|sqlite| {
            sqlite.write_back(&sessions, &swarms, now, cut.mark.to_stored())?;
            self.money.add_all(&cut.spent, now)
        })?;
        self.money.added(&cut.spent, &added);
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
        let (new, gone) = self.sessions.unsaved();
        Ok((self.sqlite.session_count()? + new).saturating_sub(gone))
    }

    fn load_session(
        &self,
        name: &str,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<CachedState<StoredSession>, StoreError> {
        let stored = self.reader.stored_session(name, now)?;
        let (updated, is_stored) = (stored.as_ref().map_or(Millis(0), |s| s.updated), stored.is_some());
        let state = stored.map(|stored| StoredSession::thaw(&stored.text, codec)).transpose();
        let state = state.inspect_err(|error| self.notices.unreadable("session", name, error))?;
        Ok(CachedState::stored(state, updated, is_stored))
    }

    /// Returns what the stored text of a session that can't be read still tells for sure.
    pub(super) fn salvage(
        &self,
        name: &str,
        codec: &dyn Codec<Session>,
        now: Millis,
    ) -> Result<Option<Session>, StoreError> {
        let stored = self.reader.stored_session(name, now)?;
        Ok(stored.and_then(|stored| StoredSession::salvage(&stored.text, codec)))
    }

    /// Shows a session; `None` if there is none.
    pub(super) fn see_session<R>(
        &self,
        name: &str,
        codec: &dyn Codec<Session>,
        now: Millis,
        see: impl FnOnce(Option<&StoredSession>) -> R,
    ) -> Result<R, StoreError> {
        let load = || self.load_session(name, codec, now);
        self.sessions.with(name, load, |entry| {
            see(entry.state.as_ref().filter(|_| !self.sqlite.is_idle(entry.updated, now)))
        })
    }

    /// Changes a session, in the turn of its steps. There may be none.
    pub(super) fn change_session<R>(
        &self,
        name: &str,
        codec: &dyn Codec<Session>,
        now: Millis,
        change: impl FnOnce(&mut Option<StoredSession>) -> R,
    ) -> Result<R, StoreError> {
        let load = || self.load_session(name, codec, now);
        let freeze = |state: &StoredSession| state.freeze(codec);
        self.sessions.change(name, now, load, freeze, |entry| {
            if self.sqlite.is_idle(entry.updated, now) {
                entry.state = None;
            }
            change(&mut entry.state)
        })
    }

    fn load_swarm(&self, name: &str) -> Result<CachedState<Swarm>, StoreError> {
        let stored = self.reader.stored_swarm(name)?;
        let state = stored.as_deref().map(read_swarm).transpose();
        let state = state.inspect_err(|error| self.notices.unreadable("swarm", name, error))?;
        let is_stored = state.is_some();
        Ok(CachedState::stored(state, Millis(0), is_stored))
    }

    /// Shows a swarm; `None` if there is none.
    pub(super) fn see_swarm<R>(
        &self,
        name: &str,
        see: impl FnOnce(Option<&Swarm>) -> R,
    ) -> Result<R, StoreError> {
        self.swarms.with(name, || self.load_swarm(name), |entry| see(entry.state.as_ref()))
    }

    /// Changes a swarm, in the turn of all. There may be none.
    pub(super) fn change_swarm<R>(
        &self,
        name: &str,
        now: Millis,
        change: impl FnOnce(&mut Option<Swarm>) -> R,
    ) -> Result<R, StoreError> {
        let load = || self.load_swarm(name);
        self.swarms.change(name, now, load, freeze_swarm, |entry| change(&mut entry.state))
    }
}

fn freeze_swarm(swarm: &Swarm) -> Result<String, StoreError> {
    serde_json::to_string(swarm).map_err(StoreError::encode)
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
        let (limits, tell): (_, TellFn) = (BudgetLimits::default(), Arc::new(|_| ()));
        let store = LocalStore::open(&file, bounds, limits, Millis(0), tell, |_, _| {}).unwrap();
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
        let due = || store.write_back_if_due(&engine, Millis(1));
        change(0);
        let other = rusqlite::Connection::open(folder.path().join("server.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        due().unwrap_err();
        due().unwrap();
        other.execute_batch("ROLLBACK").unwrap();
        due().unwrap();
        assert_eq!(store.changed(), CHANGED, "it isn't tried again yet");
        change(CHANGED);
        due().unwrap();
        assert_eq!(store.session_count().unwrap(), 2 * CHANGED as u64);
        assert_eq!(store.changed(), 0, "it is tried again");
        change(0);
        due().unwrap();
        assert_eq!(store.changed(), 0, "and then as before");
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
        let kept = |store: &LocalStore| (store.sessions.len(), store.swarms.len());
        assert_eq!(kept(&store), (0, 0));
        view.change(&engine, &"a".into(), |_| ()).unwrap();
        assert!(view.see(&engine, &"a".into(), |_| ()).unwrap().is_some());
        assert_eq!(kept(&store), (1, 0));
    }
}
