use deloop_detect::{FailureNote, KnownFailures, Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_engine::Session;
use deloop_store::{Codec, Store, StoreError};
use deloop_types::{Millis, SessionId};

use super::local::LocalStore;
use super::stored_session::StoredSession;
use crate::project::Project;

/// The sessions and swarms of one project, at one time.
pub(crate) struct LocalView<'a> {
    pub(super) store: &'a LocalStore,
    pub(super) project: &'a Project,
    pub(super) now: Millis,
}

impl LocalView<'_> {
    fn name(&self, name: &str) -> String {
        // A project's name has no slash.
        [self.project.as_str(), "/", name].concat()
    }

    /// Loads sessions into memory, so that their next changes don't need the database.
    pub(super) fn preload<'s>(
        &self,
        codec: &dyn Codec<Session>,
        mut sessions: impl Iterator<Item = &'s SessionId>,
    ) -> Result<(), StoreError> {
        sessions.try_for_each(|session| {
            self.store.see_session(&self.name(session.as_str()), codec, self.now, |_| ())
        })
    }

    pub(super) fn change<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        change: impl Fn(&mut StoredSession) -> R,
    ) -> Result<R, StoreError> {
        let fresh = || StoredSession { session: codec.fresh(), ..StoredSession::default() };
        self.store.change_session(&self.name(session.as_str()), codec, self.now, |state| {
            change(state.get_or_insert_with(fresh))
        })
    }

    pub(super) fn see<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        see: impl FnOnce(&StoredSession) -> R,
    ) -> Result<Option<R>, StoreError> {
        let name = self.name(session.as_str());
        let seen = self.store.see_session(&name, codec, self.now, |state| state.map(see))?;
        if seen.is_none() {
            self.store.sessions.drop_unknown(&name);
        }
        Ok(seen)
    }

    /// Changes a swarm. One that can't be read stays as it is, and its calls aren't counted.
    fn change_swarm<R: Default>(
        &self,
        swarm: &str,
        change: impl FnOnce(&mut Swarm) -> R,
    ) -> Result<R, StoreError> {
        let change = |state: &mut Option<Swarm>| change(state.get_or_insert_default());
        match self.store.change_swarm(&self.name(swarm), self.now, change) {
            Err(error) if error.is_unreadable() => Ok(R::default()),
            changed => changed,
        }
    }

    /// Returns what the stored text of a session that can't be read still tells for sure.
    pub(super) fn salvage(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
    ) -> Result<Option<Session>, StoreError> {
        self.store.salvage(&self.name(session.as_str()), codec, self.now)
    }

    pub(super) fn has_agent(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        agent: Option<&str>,
    ) -> Result<bool, StoreError> {
        let has = |state: Option<&StoredSession>| state.is_some_and(|state| state.session.has_agent(agent));
        self.store.see_session(&self.name(session.as_str()), codec, self.now, has)
    }

    pub(super) fn drop_unknown(&self, session: &SessionId) {
        self.store.sessions.drop_unknown(&self.name(session.as_str()));
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
        let name = self.name(swarm);
        let seen = self.store.see_swarm(&name, |state| state.map(see))?;
        if seen.is_none() {
            self.store.swarms.drop_unknown(&name);
        }
        Ok(seen)
    }

    // The failures of a project change rarely, and entering one twice does no harm, so they aren't kept in memory.
    fn failures(&self, project: &str) -> Result<KnownFailures, StoreError> {
        // From the connection that doesn't wait for a write to the database.
        Store::<Session>::failures(&self.store.reader, &self.name(project))
    }

    fn note_failure(&self, project: &str, note: &FailureNote) -> Result<(), StoreError> {
        Store::<Session>::note_failure(&*self.store.sqlite, &self.name(project), note)
    }

    fn forget_project(&self, project: &str) -> Result<(), StoreError> {
        Store::<Session>::forget_project(&*self.store.sqlite, &self.name(project))
    }

    fn projects(&self) -> Result<Vec<String>, StoreError> {
        let prefix = self.name("");
        let stored: Vec<String> = Store::<Session>::projects(&*self.store.sqlite)?;
        Ok(stored.into_iter().filter_map(|name| name.strip_prefix(&prefix).map(str::to_owned)).collect())
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        self.store.sessions.delete(&self.name(session.as_str()), self.now)
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        self.store.swarms.delete(&self.name(swarm), self.now)
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
