use deloop_detect::{FailureNote, KnownFailures, Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_engine::Session;
use deloop_store::{Codec, Store, StoreError};
use deloop_types::{Millis, SessionId};

use super::local_view::LocalView;
use super::remote::RemoteView;
use super::stored_session::StoredSession;

/// The sessions and swarms of one project, for one request.
pub(crate) enum ProjectView<'a> {
    Local(LocalView<'a>),
    Remote(RemoteView),
}

/// Calls the same method of either view.
macro_rules! either {
    ($self:expr, $view:ident => $call:expr) => {
        match $self {
            ProjectView::Local($view) => $call,
            ProjectView::Remote($view) => $call,
        }
    };
}

impl ProjectView<'_> {
    /// Loads sessions, so that their steps needn't wait for them one by one.
    pub(super) fn preload<'s>(
        &self,
        codec: &dyn Codec<Session>,
        sessions: impl Iterator<Item = &'s SessionId>,
    ) -> Result<(), StoreError> {
        either!(self, view => view.preload(codec, sessions))
    }

    /// Changes a session, after creating it if it is new. `change` may run more than once.
    pub(super) fn change<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        change: impl Fn(&mut StoredSession) -> R,
    ) -> Result<R, StoreError> {
        either!(self, view => view.change(codec, session, change))
    }

    /// Reads a session, if there is one.
    pub(super) fn see<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        see: impl FnOnce(&StoredSession) -> R,
    ) -> Result<Option<R>, StoreError> {
        either!(self, view => view.see(codec, session, see))
    }

    /// Returns what the stored text of a session that can't be read still tells for sure.
    pub(super) fn salvage(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
    ) -> Result<Option<Session>, StoreError> {
        either!(self, view => view.salvage(codec, session))
    }

    /// Returns whether a session is stored and has this agent. It is in memory afterwards, until it is
    /// [dropped](Self::drop_unknown) or changed.
    pub(super) fn has_agent(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        agent: Option<&str>,
    ) -> Result<bool, StoreError> {
        either!(self, view => view.has_agent(codec, session, agent))
    }

    /// Drops what memory has of a session that isn't stored.
    pub(super) fn drop_unknown(&self, session: &SessionId) {
        // What Redis doesn't have is dropped with the view.
        if let Self::Local(view) = self {
            view.drop_unknown(session);
        }
    }

    /// Returns the names of sessions after `after`, in order.
    pub(super) fn sessions_after(
        &self,
        after: Option<&str>,
        limit: u64,
    ) -> Result<Vec<SessionId>, StoreError> {
        either!(self, view => view.sessions_after(after, limit))
    }
}

impl Store<Session> for ProjectView<'_> {
    fn update<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        ts: Option<Millis>,
        change: impl Fn(&mut Session) -> R,
    ) -> Result<R, StoreError> {
        either!(self, view => view.update(codec, session, ts, change))
    }

    fn look<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        see: impl FnOnce(&Session) -> R,
    ) -> Result<Option<R>, StoreError> {
        either!(self, view => view.look(codec, session, see))
    }

    fn tally(
        &self,
        swarm: &str,
        worker: SwarmWorker<'_>,
        calls: &[SwarmCall<'_>],
    ) -> Result<Vec<SwarmCount>, StoreError> {
        either!(self, view => view.tally(swarm, worker, calls))
    }

    fn tally_in_vain(&self, swarm: &str, worker: SwarmWorker<'_>, signature: u64) -> Result<(), StoreError> {
        either!(self, view => view.tally_in_vain(swarm, worker, signature))
    }

    fn look_swarm<R>(&self, swarm: &str, see: impl FnOnce(&Swarm) -> R) -> Result<Option<R>, StoreError> {
        either!(self, view => view.look_swarm(swarm, see))
    }

    fn failures(&self, project: &str) -> Result<KnownFailures, StoreError> {
        either!(self, view => view.failures(project))
    }

    fn note_failure(&self, project: &str, note: &FailureNote) -> Result<(), StoreError> {
        either!(self, view => view.note_failure(project, note))
    }

    fn forget_project(&self, project: &str) -> Result<(), StoreError> {
        either!(self, view => view.forget_project(project))
    }

    fn projects(&self) -> Result<Vec<String>, StoreError> {
        either!(self, view => view.projects())
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        either!(self, view => view.forget(session))
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        either!(self, view => view.forget_swarm(swarm))
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        either!(self, view => view.sessions())
    }

    fn swarms(&self) -> Result<Vec<String>, StoreError> {
        either!(self, view => view.swarms())
    }
}
