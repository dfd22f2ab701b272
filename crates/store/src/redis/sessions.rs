//! Sessions as Redis holds them: read, changed here, and stored if nobody else stored them in between.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use deloop_types::{Millis, SessionId};

use super::scripts::{STORE_SESSION, eval};
use super::{RedisStore, millis};
use crate::{Codec, StoreError};

/// A session as Redis holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionedSession {
    /// Differs after every change. Empty if the session isn't stored.
    pub version: String,
    /// The time of its last step, if steps had one.
    pub ts: Option<Millis>,
    /// Its state as [`Codec::freeze`] wrote it. `None` if the session isn't stored, or had no step for too long.
    pub state: Option<String>,
}

impl VersionedSession {
    /// Reads the answer to `HMGET`. A version or time that nobody could have written counts as missing; a state doesn't.
    fn of(fields: Vec<Option<Vec<u8>>>) -> Self {
        let mut fields = fields.into_iter();
        let mut next = || fields.next().flatten();
        let (version, ts, state) = (next(), next(), next());
        let [version, ts] = [version, ts].map(|field| String::from_utf8(field?).ok());
        let state = state.map(|state| String::from_utf8_lossy(&state).into_owned());
        let ts = ts.and_then(|ts| ts.parse().ok()).filter(|ts| *ts > 0).map(Millis);
        Self { version: version.unwrap_or_default(), ts, state }
    }
}

/// A session to be stored.
#[derive(Debug, Clone, Copy)]
pub struct SessionWrite<'a> {
    /// Its name.
    pub session: &'a SessionId,
    /// The version that was changed: the session is stored only if it is still the current one.
    pub version: &'a str,
    /// The time of its last step, if it had one.
    pub ts: Option<Millis>,
    /// The new state.
    pub state: &'a str,
}

/// What came of storing a session.
#[derive(Debug)]
pub enum SessionStored {
    /// It is stored, and this is its version.
    Stored(String),
    /// Another change was stored first. This is what it left.
    Newer(VersionedSession),
    /// The server failed. The session is unchanged, or stored if only the answer got lost.
    Failed(StoreError),
}

impl RedisStore {
    /// Reads sessions in one round trip, and returns one for each name.
    ///
    /// Their state is `None` if their last step was too long before `ts`: they start anew then.
    pub fn load_many(
        &self,
        sessions: &[(&SessionId, Option<Millis>)],
    ) -> Vec<Result<VersionedSession, StoreError>> {
        self.load_until(sessions, self.until())
    }

    fn load_until(
        &self,
        sessions: &[(&SessionId, Option<Millis>)],
        until: Instant,
    ) -> Vec<Result<VersionedSession, StoreError>> {
        let read = |(session, _): &(&SessionId, Option<Millis>)| {
            let mut read = redis::cmd("HMGET");
            read.arg(self.keys.session(session.as_str())).arg(&["version", "ts", "state"]);
            read
        };
        let found = self.link.run_all(sessions.iter().map(read).collect(), until);
        let session = |(found, (_, ts)): (Result<_, _>, &(_, Option<Millis>))| {
            found.map(|fields| self.unless_idle(VersionedSession::of(fields), *ts))
        };
        found.into_iter().zip(sessions).map(session).collect()
    }

    fn unless_idle(&self, mut session: VersionedSession, ts: Option<Millis>) -> VersionedSession {
        let longest = millis(self.options.session_ttl);
        if session.ts.zip(ts).is_some_and(|(before, now)| now.since(before) > longest) {
            session.state = None;
            session.ts = None;
        }
        session
    }

    /// Stores sessions in one round trip, each if it wasn't changed since it was read.
    pub fn store_many(&self, writes: &[SessionWrite<'_>]) -> Vec<SessionStored> {
        self.store_until(writes, self.until())
    }

    fn store_until(&self, writes: &[SessionWrite<'_>], until: Instant) -> Vec<SessionStored> {
        let is_listed = |write: &&SessionWrite<'_>| {
            let name = write.session.as_str();
            !write.version.is_empty() && self.listed.is_recent(&self.keys.session(name))
        };
        let unlisted: Vec<&str> =
            writes.iter().filter(|write| !is_listed(write)).map(|write| write.session.as_str()).collect();
        let mut commands: Vec<_> = self.list_command('s', &unlisted).into_iter().collect();
        let lists = commands.len();
        let versions: Vec<String> = writes.iter().map(|_| self.unique.next()).collect();
        for (write, version) in writes.iter().zip(&versions) {
            let mut store = eval(STORE_SESSION, &[self.keys.session(write.session.as_str())]);
            store.arg(write.version).arg(version).arg(write.ts.map_or(0, |ts| ts.0)).arg(write.state);
            commands.push(store.arg(millis(self.options.session_ttl)).clone());
        }
        let mut answers = self.link.run_all::<redis::Value>(commands, until);
        let listed = answers.drain(..lists).all(|listed| listed.is_ok());
        if listed {
            self.listed.note(unlisted.iter().map(|name| self.keys.session(name)));
        }
        let outcome = |(answer, version): (Result<redis::Value, StoreError>, String)| {
            let fields = answer.and_then(|value| {
                redis::from_redis_value::<Vec<Option<Vec<u8>>>>(value).map_err(StoreError::decode)
            });
            match fields {
                Ok(newer) if newer.is_empty() => SessionStored::Stored(version),
                Ok(newer) => SessionStored::Newer(VersionedSession::of(newer)),
                Err(error) => SessionStored::Failed(error),
            }
        };
        answers.into_iter().zip(versions).map(outcome).collect()
    }

    /// Changes the states of sessions, each after creating it if it is new: two round trips, and one more for those that
    /// somebody else changed in between. `change` gets the place of the session in `sessions`, and may run more than once
    /// for each; only its last run is stored and returned. A session may be listed more than once.
    pub fn update_many<T, R>(
        &self,
        codec: &dyn Codec<T>,
        sessions: &[(&SessionId, Option<Millis>)],
        change: impl Fn(usize, &mut T) -> R,
    ) -> Vec<Result<R, StoreError>> {
        let until = self.until();
        let mut done: Vec<Option<Result<R, StoreError>>> = sessions.iter().map(|_| None).collect();
        let mut open: Vec<(usize, VersionedSession)> = Vec::new();
        for (at, loaded) in self.load_until(sessions, until).into_iter().enumerate() {
            match loaded {
                Ok(session) => open.push((at, session)),
                Err(error) => done[at] = Some(Err(error)),
            }
        }
        for attempt in 0.. {
            let mut changed = Vec::with_capacity(open.len());
            for (at, session) in open.drain(..) {
                let (name, ts) = sessions[at];
                // Other servers may read what this one can't, so it stays as it is.
                let mut state = match session.state.map(|text| codec.thaw(&text)) {
                    None => codec.fresh(),
                    Some(Ok(state)) => state,
                    Some(Err(error)) => {
                        done[at] = Some(Err(error));
                        continue;
                    }
                };
                let result = change(at, &mut state);
                match codec.freeze(&state) {
                    Ok(state) => changed.push((at, name, session.version, session.ts.max(ts), state, result)),
                    Err(error) => done[at] = Some(Err(error)),
                }
            }
            let writes: Vec<SessionWrite<'_>> = changed
                .iter()
                .map(|(_, session, version, ts, state, _)| SessionWrite { session, version, ts: *ts, state })
                .collect();
            let stored = self.store_until(&writes, until);
            for ((at, .., result), stored) in changed.into_iter().zip(stored) {
                match stored {
                    SessionStored::Stored(_) => done[at] = Some(Ok(result)),
                    SessionStored::Newer(newer) => open.push((at, self.unless_idle(newer, sessions[at].1))),
                    SessionStored::Failed(error) => done[at] = Some(Err(error)),
                }
            }
            if open.is_empty() {
                break;
            }
            pause(attempt, until);
        }
        done.into_iter().flatten().collect()
    }
}

/// Waits before another attempt: longer after each, and not as long as the others who wait.
fn pause(attempt: u32, until: Instant) {
    let longest = 50_u64 << attempt.min(7);
    let pause = RandomState::new().hash_one(attempt) % longest;
    let left = until.saturating_duration_since(Instant::now());
    std::thread::sleep(Duration::from_micros(pause).min(left));
}
