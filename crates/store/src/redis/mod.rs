//! Stores everything in Redis, so that many machines can share sessions and swarms.

mod keys;
mod link;
mod record_scripts;
mod records;
mod scripts;
mod swarm;
mod unique;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deloop_detect::{Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_types::{Millis, SessionId};

use crate::{Codec, Store, StoreError};
use keys::RedisKeys;
use link::RedisLink;
pub use records::RedisRecords;
use scripts::{DELETE_SESSION, READ_SWARM, SESSION_VERSION, STORE_SESSION, TALLY, eval};
use unique::UniqueTexts;

/// How long a call that was tallied is recognized when it is tallied again, in milliseconds.
const SEEN: u64 = 60_000;
/// Redis rejects times to live that are too long. Ten years, in milliseconds.
const LONGEST: u128 = 10 * 365 * 24 * 3_600_000;

/// Settings of a [`RedisStore`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// What the names of all keys start with. Stores with different prefixes share nothing. Default: `deloop`.
    pub prefix: String,
    /// How long an operation may take, connecting and retries included. Listing sessions or swarms may take this long
    /// per 1,000 keys of the server. Default: 300 ms.
    pub deadline: Duration,
    /// A session is dropped when it had no step for this long, by Redis's clock or by the steps' own times. Default:
    /// 7 days.
    pub session_ttl: Duration,
    /// A swarm is dropped when it had no call for this long. Default: 1 day.
    pub swarm_ttl: Duration,
    /// Maximum number of connections, each in a thread of its own. Default: 4.
    pub connections: usize,
}

impl Default for RedisOptions {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self {
            prefix: "deloop".to_owned(),
            deadline: Duration::from_millis(300),
            session_ttl: 7 * day,
            swarm_ttl: day,
            connections: 4,
        }
    }
}

/// Stores everything in Redis 5 or later.
///
/// A session is changed optimistically: it is read, changed here, and stored if nobody else stored it in between. Swarms
/// are counted in the server. Every key has a time to live, and all keys of one session or swarm share a hash tag.
///
/// Every operation returns within the deadline. When it fails with [`StoreError::Unavailable`], the change may have been
/// made: the server may have been too late only with its answer. Sending the step again is safe if its calls have ids. A
/// swarm counts such a call once, for up to a minute.
pub struct RedisStore {
    link: Arc<RedisLink>,
    keys: RedisKeys,
    options: RedisOptions,
    unique: Arc<UniqueTexts>,
}

/// A session as Redis holds it.
#[derive(Default)]
struct VersionedSession {
    version: String,
    ts: i64,
    state: Option<String>,
}

impl VersionedSession {
    /// Reads the answer to `HMGET`; fields that nobody could have written count as missing.
    fn of(fields: Vec<Option<Vec<u8>>>) -> Self {
        let mut fields = fields.into_iter().map(|field| String::from_utf8(field?).ok());
        let mut next = || fields.next().flatten();
        let (version, ts, state) = (next(), next(), next());
        Self {
            version: version.unwrap_or_default(),
            ts: ts.and_then(|ts| ts.parse().ok()).unwrap_or(0),
            state,
        }
    }
}

impl RedisStore {
    /// Prepares a store at `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`. Connects when it is first used, so a
    /// server that can't be reached is reported then.
    ///
    /// # Errors
    /// When `url` isn't the URL of a Redis server, or no thread can be started.
    pub fn open(url: &str, options: RedisOptions) -> Result<Self, StoreError> {
        let link = Arc::new(RedisLink::open(url, options.connections)?);
        let keys = RedisKeys::new(&options.prefix);
        Ok(Self { link, keys, options, unique: Arc::new(UniqueTexts::new()) })
    }

    fn until(&self) -> Instant {
        Instant::now() + self.options.deadline
    }

    /// Waits before another attempt: longer after each, and not as long as the others who wait.
    fn pause(attempt: u32, until: Instant) {
        let longest = 50_u64 << attempt.min(7);
        let pause = RandomState::new().hash_one(attempt) % longest;
        let left = until.saturating_duration_since(Instant::now());
        std::thread::sleep(Duration::from_micros(pause).min(left));
    }

    fn tally_with(&self, swarm: &str, worker: SwarmWorker<'_>, task: &str) -> redis::Cmd {
        let mut command = eval(TALLY, &self.keys.swarm(swarm));
        command.arg(task).arg(millis(self.options.swarm_ttl)).arg(self.seen());
        command.arg(Swarm::LEAST).arg(Swarm::PER_WORKER).arg(Swarm::MOST_WORKERS).arg(Swarm::LISTED);
        command.arg(format!("{:016x}", worker.id())).arg(worker.name());
        command
    }

    fn seen(&self) -> u64 {
        millis(self.options.swarm_ttl).min(SEEN)
    }

    fn names(&self, kind: char) -> Result<Vec<String>, StoreError> {
        let (mut names, mut cursor) = (std::collections::BTreeSet::new(), 0_u64);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(self.keys.pattern(kind)).arg("COUNT").arg(1000);
            let (next, found): (u64, Vec<Vec<u8>>) = self.link.run(scan, self.until())?;
            let found = found.into_iter().filter_map(|key| String::from_utf8(key).ok());
            names.extend(found.filter_map(|key| self.keys.name(&key, kind)));
            if next == 0 {
                return Ok(names.into_iter().collect());
            }
            cursor = next;
        }
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
        let until = self.until();
        let keys = [self.keys.session(session.as_str())];
        let mut read = redis::cmd("HMGET");
        read.arg(&keys).arg(&["version", "ts", "state"]);
        let mut stored = VersionedSession::of(self.link.run(read, until)?);
        let mut attempt = 0;
        loop {
            let VersionedSession { version, ts: before, state } = stored;
            let longest = millis(self.options.session_ttl);
            let idle = ts.is_some_and(|now| before > 0 && now.since(Millis(before)) > longest);
            // As in a file, state written by another release or profile is discarded.
            let state = state.filter(|_| !idle).and_then(|text| codec.thaw(&text).ok());
            let mut state = state.unwrap_or_else(|| codec.fresh());
            let now = ts.map_or(0, |ts| ts.0).max(if idle { 0 } else { before });
            let done = change(&mut state);
            let mut store = eval(STORE_SESSION, &keys);
            store.arg(version).arg(self.unique.next()).arg(now).arg(codec.freeze(&state)?).arg(longest);
            let newer: Vec<Option<Vec<u8>>> = self.link.run(store, until)?;
            if newer.is_empty() {
                return Ok(done);
            }
            stored = VersionedSession::of(newer);
            Self::pause(attempt, until);
            attempt += 1;
        }
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
        let until = self.until();
        // A step that is sent again because its update failed finds the same version. Ids alone don't identify calls:
        // some agents number the calls of each turn anew.
        let session = [self.keys.session(worker.session), self.keys.deleted(worker.session)];
        let version: String = self.link.run(eval(SESSION_VERSION, &session), until)?;
        let mut command = self.tally_with(swarm, worker, "calls");
        for (at, call) in calls.iter().enumerate() {
            let mark = match &call.call.id {
                Some(id) => {
                    let id = deloop_detect::short_hash(id.as_bytes());
                    format!("{:016x}{version}:{at}:{id:016x}{:016x}", worker.id(), call.signature)
                }
                None => self.unique.next(),
            };
            let short = serde_json::to_string(&call.short()).map_err(StoreError::encode)?;
            command.arg(mark).arg(format!("{:016x}", call.target)).arg(format!("{:016x}", call.signature));
            command.arg(short);
        }
        let counts: Vec<u64> = self.link.run(command, until)?;
        let count = |count: &[u64]| match *count {
            [calls, workers, in_vain, in_vain_workers] => {
                SwarmCount { calls, workers, in_vain, in_vain_workers }
            }
            _ => SwarmCount::default(),
        };
        Ok(counts.chunks(4).map(count).collect())
    }

    fn tally_in_vain(&self, swarm: &str, worker: SwarmWorker<'_>, signature: u64) -> Result<(), StoreError> {
        let mut command = self.tally_with(swarm, worker, "in_vain");
        command.arg(self.unique.next()).arg(format!("{signature:016x}"));
        self.link.run(command, self.until())
    }

    fn look_swarm<R>(&self, swarm: &str, see: impl FnOnce(&Swarm) -> R) -> Result<Option<R>, StoreError> {
        let parts = self.link.run(eval(READ_SWARM, &self.keys.swarm(swarm)), self.until())?;
        Ok(swarm::assemble(parts).map(|swarm| see(&swarm)))
    }

    fn forget(&self, session: &SessionId) -> Result<(), StoreError> {
        let keys = [self.keys.session(session.as_str()), self.keys.deleted(session.as_str())];
        let mut command = eval(DELETE_SESSION, &keys);
        command.arg(self.seen());
        self.link.run(command, self.until())
    }

    fn forget_swarm(&self, swarm: &str) -> Result<(), StoreError> {
        let mut delete = redis::cmd("DEL");
        delete.arg(&self.keys.swarm(swarm));
        self.link.run(delete, self.until())
    }

    fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        Ok(self.names('s')?.into_iter().map(SessionId::from).collect())
    }

    fn swarms(&self) -> Result<Vec<String>, StoreError> {
        self.names('w')
    }
}
