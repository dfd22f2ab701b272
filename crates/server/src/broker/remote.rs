//! The sessions and swarms of several servers, in Redis. A request reads all of its sessions, decides, and stores them
//! again: two round trips, whatever the number of steps.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deloop_detect::{FailureNote, KnownFailures, Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_engine::Session;
use deloop_store::{
    Codec, RedisStore, SessionStored, SessionWrite, Store, StoreError, SwarmTurn, VersionedSession,
};
use deloop_types::{Millis, SessionId};

use super::state_notices::StateNotices;
use super::stored_session::StoredSession;

/// Sessions and swarms of one project during one request.
pub(crate) struct RemoteView {
    store: RedisStore,
    notices: Arc<StateNotices>,
    now: Millis,
    /// How long the request may still wait for Redis.
    left: Mutex<Duration>,
    state: Mutex<ViewState>,
}

#[derive(Default)]
struct ViewState {
    sessions: BTreeMap<SessionId, LoadedSession>,
    /// The counts that swarms returned for the turns of each session, in order.
    tallied: HashMap<SessionId, VecDeque<Vec<SwarmCount>>>,
    /// The only session that is changed, when its steps are decided about again.
    again: Option<SessionId>,
}

struct LoadedSession {
    version: String,
    ts: Option<Millis>,
    state: Option<StoredSession>,
    changed: bool,
}

impl LoadedSession {
    fn of(
        name: &SessionId,
        stored: VersionedSession,
        codec: &dyn Codec<Session>,
        notices: &StateNotices,
    ) -> Result<Self, StoreError> {
        let state = stored.state.map(|text| StoredSession::thaw(&text, codec)).transpose();
        let state = state.inspect_err(|error| notices.unreadable("session", name.as_str(), error))?;
        Ok(Self { version: stored.version, ts: stored.ts, state, changed: false })
    }
}

impl RemoteView {
    /// Creates a view of the project that `store` holds.
    pub(super) fn new(store: RedisStore, notices: Arc<StateNotices>, now: Millis) -> Self {
        Self { now, left: Mutex::new(store.deadline()), store, notices, state: Mutex::default() }
    }

    /// Waits for Redis, for as long as the request still may.
    #[expect(clippy::disallowed_methods, reason = "measures how long the request has waited")]
    fn ask<R>(&self, question: impl FnOnce(&RedisStore) -> R) -> R {
        let (left, begun) = (*self.left(), Instant::now());
        let answer = question(&self.store.within(left));
        *self.left() = left.saturating_sub(begun.elapsed());
        answer
    }

    fn left(&self) -> MutexGuard<'_, Duration> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, ViewState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads sessions in one round trip.
    pub(super) fn preload<'s>(
        &self,
        codec: &dyn Codec<Session>,
        sessions: impl Iterator<Item = &'s SessionId>,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        let mut wanted: Vec<&SessionId> = sessions.filter(|s| !state.sessions.contains_key(s)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let wanted: Vec<(&SessionId, Option<Millis>)> =
            wanted.into_iter().map(|session| (session, Some(self.now))).collect();
        for ((session, _), loaded) in wanted.iter().zip(self.ask(|store| store.load_many(&wanted))) {
            let loaded = LoadedSession::of(session, loaded?, codec, &self.notices)?;
            state.sessions.insert((*session).clone(), loaded);
        }
        Ok(())
    }

    fn with_session<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        work: impl FnOnce(&mut LoadedSession) -> R,
    ) -> Result<R, StoreError> {
        self.preload(codec, std::iter::once(session))?;
        let mut state = self.state();
        let is_only = state.again.as_ref().is_none_or(|again| again == session);
        let loaded = state.sessions.get_mut(session);
        let loaded = loaded.ok_or_else(|| StoreError::decode("the session vanished from memory"))?;
        let done = work(loaded);
        loaded.changed &= is_only;
        Ok(done)
    }

    pub(super) fn change<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        change: impl Fn(&mut StoredSession) -> R,
    ) -> Result<R, StoreError> {
        self.with_session(codec, session, |loaded| {
            loaded.changed = true;
            loaded.ts = loaded.ts.max(Some(self.now));
            let fresh = || StoredSession { session: codec.fresh(), ..StoredSession::default() };
            change(loaded.state.get_or_insert_with(fresh))
        })
    }

    pub(super) fn see<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        see: impl FnOnce(&StoredSession) -> R,
    ) -> Result<Option<R>, StoreError> {
        self.with_session(codec, session, |loaded| loaded.state.as_ref().map(see))
    }

    pub(super) fn has_agent(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        agent: Option<&str>,
    ) -> Result<bool, StoreError> {
        Ok(self.see(codec, session, |state| state.session.has_agent(agent))?.unwrap_or(false))
    }

    /// Stores what changed. Returns a view for each session that another server changed in between: it has the newer state,
    /// and only changes this session.
    pub(super) fn commit(
        &self,
        codec: &dyn Codec<Session>,
    ) -> Result<Vec<(SessionId, RemoteView)>, StoreError> {
        let mut state = self.state();
        let ViewState { sessions, tallied, .. } = &mut *state;
        let changed = || sessions.iter().filter(|(_, loaded)| loaded.changed);
        for (session, _) in changed().filter(|(_, loaded)| loaded.state.is_none()) {
            self.ask(|store| Store::<Session>::forget(store, session))?;
        }
        let mut writes = Vec::new();
        for (session, loaded) in changed() {
            if let Some(stored) = &loaded.state {
                writes.push((session, &loaded.version, loaded.ts, stored.freeze(codec)?));
            }
        }
        let writes: Vec<SessionWrite<'_>> = writes
            .iter()
            .map(|(session, version, ts, state)| SessionWrite { session, version, ts: *ts, state })
            .collect();
        let mut conflicts = Vec::new();
        for (write, stored) in writes.iter().zip(self.ask(|store| store.store_many(&writes))) {
            match stored {
                SessionStored::Stored(_) => {}
                SessionStored::Newer(newer) => conflicts.push((write.session.clone(), newer)),
                SessionStored::Failed(error) => return Err(error),
            }
        }
        let again = |(session, newer): (SessionId, VersionedSession)| {
            // If a later release changed it meanwhile, it is that server's session now.
            let newer = LoadedSession::of(&session, newer, codec, &self.notices).ok()?;
            let state = ViewState {
                tallied: tallied
                    .remove(&session)
                    .map(|counts| (session.clone(), counts))
                    .into_iter()
                    .collect(),
                sessions: BTreeMap::from([(session.clone(), newer)]),
                again: Some(session.clone()),
            };
            let left = Mutex::new(*self.left());
            let (store, notices, now) = (self.store.clone(), Arc::clone(&self.notices), self.now);
            Some((session, RemoteView { store, notices, now, left, state: Mutex::new(state) }))
        };
        Ok(conflicts.into_iter().filter_map(again).collect())
    }

    /// Returns what the stored text of a session that can't be read still tells for sure.
    pub(super) fn salvage(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
    ) -> Result<Option<Session>, StoreError> {
        let loaded = self.ask(|store| store.load_many(&[(session, Some(self.now))])).pop().transpose()?;
        Ok(loaded.and_then(|loaded| StoredSession::salvage(&loaded.state?, codec)))
    }

    /// Lets the calls of a swarm that can't be read be uncounted.
    fn counted<R: Default>(&self, swarm: &str, counted: Result<R, StoreError>) -> Result<R, StoreError> {
        match counted {
            Err(error) if error.is_unreadable() => {
                self.notices.unreadable("swarm", swarm, &error);
                Ok(R::default())
            }
            counted => counted,
        }
    }

    pub(super) fn sessions_after(
        &self,
        after: Option<&str>,
        limit: u64,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.ask(|store| store.sessions_after(after, limit))
    }
}

impl Store<Session> for RemoteView {
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
        let session = SessionId::from(worker.session);
        if self.state().again.is_some() {
            // Its calls were counted the first time.
            let counts = self.state().tallied.get_mut(&session).and_then(VecDeque::pop_front);
            if let Some(counts) = counts.filter(|counts| counts.len() == calls.len()) {
                return Ok(counts);
            }
        }
        let (version, turn) = {
            let state = self.state();
            let version = state.sessions.get(&session).map(|loaded| loaded.version.clone());
            (version, state.tallied.get(&session).map_or(0, VecDeque::len))
        };
        let turn = SwarmTurn { swarm, worker, calls, version: version.as_deref(), turn };
        let counts = self.ask(|store| store.tally_many(&[turn])).pop().unwrap_or_else(|| Ok(Vec::new()));
        let counts = self.counted(swarm, counts)?;
        self.state().tallied.entry(session).or_default().push_back(counts.clone());
        Ok(counts)
    }

    fn tally_in_vain(&self, swarm: &str, worker: SwarmWorker<'_>, signature: u64) -> Result<(), StoreError> {
        if self.state().again.is_some() {
            return Ok(());
        }
        let counted = self.ask(|store| Store::<Session>::tally_in_vain(store, swarm, worker, signature));
        self.counted(swarm, counted)
    }

    fn look_swarm<R>(&self, swarm: &str, see: impl FnOnce(&Swarm) -> R) -> Result<Option<R>, StoreError> {
        self.ask(|store| Store::<Session>::look_swarm(store, swarm, see))
    }

    fn failures(&self, project: &str) -> Result<KnownFailures, StoreError> {
        self.ask(|store| Store::<Session>::failures(store, project))
    }

    fn note_failure(&self, project: &str, note: &FailureNote) -> Result<(), StoreError> {
        self.ask(|store| Store::<Session>::note_failure(store, project, note))
    }

    fn forget_project(&self, project: &str) -> Result<(), StoreError> {
        self.ask(|store| Store::<Session>::forget_project(store, project))
    }

    fn projects(&self) -> Result<Vec<String>, StoreError> {
        self.ask(Store::<Session>::projects)
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        let mut state = self.state();
        match state.sessions.get_mut(session) {
            Some(loaded) => {
                (loaded.state, loaded.changed) = (None, true);
                Ok(())
            }
            None => self.ask(|store| Store::<Session>::forget(store, session)),
        }
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        self.ask(|store| Store::<Session>::forget_swarm(store, swarm))
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        self.ask(Store::<Session>::sessions)
    }

    fn swarms(&self) -> Result<Vec<String>, StoreError> {
        self.ask(Store::<Session>::swarms)
    }
}
