//! Stores everything in Redis, so that many machines can share sessions and swarms.

mod address;
mod failures;
mod keys;
mod link;
mod listing;
mod memory_policy;
mod nodes;
mod options;
mod record_scripts;
mod records;
mod scripts;
mod sessions;
mod slots;
mod swarm;
mod unique;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deloop_detect::{FailureNote, KnownFailures, Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_types::{Millis, SessionId};

use crate::{Codec, Store, StoreError};
use keys::RedisKeys;
use link::RedisLink;
use listing::RecentlyListed;
pub use memory_policy::RedisMemory;
pub use options::{RedisOptions, RedisSecret, RedisTls};
pub use records::RedisRecords;
use scripts::{DELETE_SESSION, READ_SWARM, eval};
pub use sessions::{SessionStored, SessionWrite, VersionedSession};
pub use swarm::SwarmTurn;
use unique::UniqueTexts;

/// Redis rejects times to live that are too long. Ten years, in milliseconds.
const LONGEST: u128 = 10 * 365 * 24 * 3_600_000;

/// Stores everything in Redis 5 or later: one server, or a cluster, which is recognized.
///
/// A session is changed optimistically: it is read, changed here, and stored if nobody else stored it in between. Swarms
/// are counted in the server. Every key has a time to live, and all keys of one session or swarm share a hash tag.
///
/// Every operation returns within the deadline. When it fails with [`StoreError::Unavailable`], the change may have been
/// made: the server may have been too late only with its answer. Sending the step again is safe if its calls have ids. A
/// swarm counts such a call once, for up to a minute.
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<RedisLink>,
    keys: RedisKeys,
    options: Arc<RedisOptions>,
    unique: Arc<UniqueTexts>,
    listed: Arc<RecentlyListed>,
    lost_takes: Arc<Mutex<HashMap<String, String>>>,
    deadline: Duration,
}

impl RedisStore {
    /// Prepares a store at `redis://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE]`, or `rediss://` for an
    /// encrypted connection. Name several nodes of a cluster, so that it is found when one is down. Connects when it is
    /// first used, so a server that can't be reached is reported then.
    ///
    /// # Errors
    /// When `url` isn't the URL of a Redis server, a certificate can't be read, or no thread can be started.
    pub fn open(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let link = Arc::new(RedisLink::open(url, &options)?);
        let keys = RedisKeys::new(&options.prefix);
        let (unique, deadline) = (Arc::new(UniqueTexts::new()), options.deadline);
        Ok(Self {
            link,
            keys,
            options: Arc::new(options),
            unique,
            listed: Arc::default(),
            lost_takes: Arc::default(),
            deadline,
        })
    }

    /// Returns a store for the sessions and swarms of one project, over the same connections. It shares no session and no
    /// swarm with the stores of other projects or with this one.
    #[must_use]
    pub fn scoped(&self, project: &str) -> Self {
        Self { keys: RedisKeys::new(&self.options.prefix).scoped(project), ..self.clone() }
    }

    /// Returns the time that an operation may take.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Returns the same store with another deadline for each operation.
    #[must_use]
    pub fn within(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    fn until(&self) -> Instant {
        Instant::now() + self.deadline
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis().clamp(1, LONGEST)).unwrap_or(u64::MAX)
}

impl<T: Send> Store<T> for RedisStore {
    fn update<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        ts: Option<Millis>,
        change: impl Fn(&mut T) -> R,
    ) -> Result<R, StoreError> {
        let mut done = self.update_many(codec, &[(session, ts)], |_, state| change(state));
        done.pop().unwrap_or_else(|| Err(StoreError::encode("the session was neither stored nor refused")))
    }

    fn look<R>(
        &self,
        codec: &dyn Codec<T>,
        session: &SessionId,
        see: impl FnOnce(&T) -> R,
    ) -> Result<Option<R>, StoreError> {
        let mut read = redis::cmd("HGET");
        read.arg(self.keys.session(session.as_str())).arg("state");
        let text: Option<Vec<u8>> = self.link.run(read, self.until())?;
        let text = text.map(|text| String::from_utf8(text).map_err(StoreError::decode)).transpose()?;
        let state = text.map(|text| codec.thaw(&text)).transpose()?;
        Ok(state.map(|state| see(&state)))
    }

    fn tally(
        &self,
        swarm: &str,
        worker: SwarmWorker<'_>,
        calls: &[SwarmCall<'_>],
    ) -> Result<Vec<SwarmCount>, StoreError> {
        let turn = SwarmTurn { swarm, worker, calls, version: None, turn: 0 };
        self.tally_many(&[turn]).pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    fn tally_in_vain(&self, swarm: &str, worker: SwarmWorker<'_>, signature: u64) -> Result<(), StoreError> {
        let mut command = self.tally_with(swarm, worker, "in_vain");
        command.arg(self.unique.next()).arg(format!("{signature:016x}"));
        let key = self.keys.first('w', swarm);
        let list = self.list_command('w', &[swarm]).filter(|_| !self.listed.is_recent(&key));
        let is_listed = list.is_some();
        let mut answers = self.link.run_all(list.into_iter().chain([command]).collect(), self.until());
        let tallied = answers.pop().unwrap_or(Ok(()));
        if is_listed && answers.iter().all(Result::is_ok) {
            self.listed.note([key]);
        }
        tallied
    }

    fn look_swarm<R>(&self, swarm: &str, see: impl FnOnce(&Swarm) -> R) -> Result<Option<R>, StoreError> {
        let parts = self.link.run(eval(READ_SWARM, &self.keys.swarm(swarm)), self.until())?;
        Ok(swarm::assemble(parts)?.map(|swarm| see(&swarm)))
    }

    fn failures(&self, project: &str) -> Result<KnownFailures, StoreError> {
        Ok(failures::read(&self.failures_text(project, self.until())?))
    }

    fn note_failure(&self, project: &str, note: &FailureNote) -> Result<(), StoreError> {
        self.enter_failure(project, note)
    }

    fn forget_project(&self, project: &str) -> Result<(), StoreError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(self.keys.first('f', project));
        let commands = vec![delete, self.unlist_command('f', project)];
        self.link.run_all::<()>(commands, self.until()).into_iter().collect()
    }

    fn projects(&self) -> Result<Vec<String>, StoreError> {
        self.names('f')
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        let session = session.as_str();
        let mut delete = eval(DELETE_SESSION, &[self.keys.session(session), self.keys.deleted(session)]);
        delete.arg(self.seen());
        self.listed.forget(&self.keys.session(session));
        let commands = vec![delete, self.unlist_command('s', session)];
        self.link.run_all::<()>(commands, self.until()).into_iter().collect()
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(&self.keys.swarm(swarm));
        self.listed.forget(&self.keys.first('w', swarm));
        let commands = vec![delete, self.unlist_command('w', swarm)];
        self.link.run_all::<()>(commands, self.until()).into_iter().collect()
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        self.sessions_after(None, u64::MAX)
    }

    fn swarms(&self) -> Result<Vec<String>, StoreError> {
        self.names('w')
    }
}
