use deloop_detect::{Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_engine::Session;
use deloop_store::{Codec, SqliteStore, Store, StoreError};
use deloop_types::{Millis, SessionId};

/// A store whose sessions become idle by the server's clock. By the clock of the steps, one client with a wrong clock
/// could make the sessions of all others expire.
pub(crate) struct ServerTime<'a> {
    pub(crate) store: &'a SqliteStore,
    pub(crate) now: Millis,
}

impl ServerTime<'_> {
    fn store(&self) -> &impl Store<Session> {
        self.store
    }
}

impl Store<Session> for ServerTime<'_> {
    fn update<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        _: Option<Millis>,
        change: impl Fn(&mut Session) -> R,
    ) -> Result<R, StoreError> {
        self.store().update(codec, session, Some(self.now), change)
    }

    fn look<R>(
        &self,
        codec: &dyn Codec<Session>,
        session: &SessionId,
        see: impl FnOnce(&Session) -> R,
    ) -> Result<Option<R>, StoreError> {
        self.store().look(codec, session, see)
    }

    fn tally(
        &self,
        swarm: &str,
        worker: SwarmWorker<'_>,
        calls: &[SwarmCall<'_>],
    ) -> Result<Vec<SwarmCount>, StoreError> {
        self.store().tally(swarm, worker, calls)
    }

    fn tally_in_vain(&self, swarm: &str, worker: SwarmWorker<'_>, signature: u64) -> Result<(), StoreError> {
        self.store().tally_in_vain(swarm, worker, signature)
    }

    fn look_swarm<R>(&self, swarm: &str, see: impl FnOnce(&Swarm) -> R) -> Result<Option<R>, StoreError> {
        self.store().look_swarm(swarm, see)
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        self.store().forget(session)
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        self.store().forget_swarm(swarm)
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        self.store().sessions()
    }

    fn swarms(&self) -> Result<Vec<String>, StoreError> {
        self.store().swarms()
    }
}
