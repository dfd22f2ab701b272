//! Where `deloop stream` keeps its sessions: in memory, in a Redis server that streams on many machines share, or with a
//! `deloop serve` that decides.

use deloop_engine::{Engine, Guard, Observed, Options};
use deloop_live::RemoteDecisions;
use deloop_policy::Profile;
use deloop_store::{Limits, RedisOptions, RedisSecret, RedisStore, StoreError};
use deloop_types::{Decision, Step};

use crate::exit::Failure;
use crate::print;
use crate::server_link::ServerLink;
use crate::state::now;

/// Maximum length of a reported error, in characters.
const LONGEST_ERROR: usize = 400;

/// Returns the password of Redis in the environment. On the command line, it would be visible to other users of the
/// machine.
pub(crate) fn redis_password() -> Option<RedisSecret> {
    std::env::var("DELOOP_REDIS_PASSWORD").ok().filter(|text| !text.is_empty()).map(Into::into)
}

/// The sessions of a stream.
pub(crate) enum StreamSessions {
    /// In this process.
    Local(Box<Guard>),
    /// In a server.
    Shared(Box<SharedSessions>),
    /// With a server that decides.
    Served(Box<ServedSessions>),
}

impl StreamSessions {
    /// Keeps sessions in the server at `url`, or in memory without one.
    pub(crate) fn open(url: Option<&str>, profile: Profile, options: Options) -> Result<Self, Failure> {
        let Some(url) = url else {
            return Ok(Self::Local(Box::new(
                Guard::with(profile, options, Limits::default()).with_clock(now),
            )));
        };
        let options_of_store = RedisOptions { password: redis_password(), ..RedisOptions::default() };
        let store = RedisStore::open(url, options_of_store);
        let store = store.map_err(|e| Failure::new(format!("--store: {}", shown(&e))))?;
        let engine = Engine::new(profile, options).with_clock(now);
        Ok(Self::Shared(Box::new(SharedSessions { engine, store, missed: 0 })))
    }

    /// Lets a server decide, and the engine while it is away.
    pub(crate) fn served(link: ServerLink, profile: Profile, options: Options) -> Self {
        let guard = Guard::with(profile, options, Limits::default()).with_clock(now);
        Self::Served(Box::new(ServedSessions { link, guard, missed: 0 }))
    }

    /// Adds a step to its session and returns what to do.
    pub(crate) fn observe(&mut self, step: &Step) -> Observed {
        match self {
            Self::Local(guard) => guard.observe_all(step),
            Self::Shared(shared) => shared.observe(step),
            Self::Served(served) => served.observe(step),
        }
    }

    /// Returns the guard that keeps the sessions, if they are in this process.
    pub(crate) fn local(&self) -> Option<&Guard> {
        match self {
            Self::Local(guard) => Some(guard),
            Self::Shared(_) | Self::Served(_) => None,
        }
    }
}

/// Sessions in a server. While it is away, agents continue.
pub(crate) struct SharedSessions {
    engine: Engine,
    store: RedisStore,
    /// Number of steps that weren't checked since the server last answered.
    missed: u64,
}

impl SharedSessions {
    fn observe(&mut self, step: &Step) -> Observed {
        match self.engine.observe(&self.store, step) {
            Ok(observed) => {
                self.report_missed();
                observed
            }
            Err(error) => {
                if self.missed == 0 {
                    let error = shown(&error);
                    print::tell(format_args!(
                        "deloop: {error}. Steps continue unchecked until it works again."
                    ));
                }
                self.missed += 1;
                let decision = Decision::go_on(step.session.clone(), 0);
                Observed::elsewhere(decision)
            }
        }
    }

    fn report_missed(&mut self) {
        match std::mem::take(&mut self.missed) {
            0 => {}
            1 => print::tell(format_args!("deloop: 1 step wasn't checked.")),
            missed => print::tell(format_args!("deloop: {missed} steps weren't checked.")),
        }
    }
}

/// Sessions that a server decides about. While it is away, they continue in memory.
pub(crate) struct ServedSessions {
    link: ServerLink,
    guard: Guard,
    /// Number of steps that were decided about here since the server last answered.
    missed: u64,
}

impl ServedSessions {
    fn observe(&mut self, step: &Step) -> Observed {
        let decided = self.link.decide(&[step]).and_then(|answer| answer.decisions.into_iter().next());
        if let Some(decision) = decided {
            self.missed = 0;
            return Observed::elsewhere(decision);
        }
        if self.missed == 0 {
            let why = self.link.take_failures().join("; ");
            print::tell(format_args!("deloop: {why}. Decisions are made on this machine until it answers."));
        }
        self.missed += 1;
        self.guard.observe_all(step)
    }
}

impl Drop for SharedSessions {
    fn drop(&mut self) {
        self.report_missed();
    }
}

fn shown(error: &StoreError) -> String {
    print::log_line(&error.to_string(), LONGEST_ERROR)
}
