//! The server that decides in place of this machine's engine, if the user configured one. Hooks, plugins and streams report
//! to it. Whatever goes wrong with it, the engine decides, and the agent waits no longer than the deadline.

mod client;
mod connection;
mod key_report;
mod message;
mod settings;

use std::cell::{Cell, RefCell};

use deloop_engine::Options;
use deloop_live::{HookCalls, Journal, RemoteAnswer, RemoteDecisions, SqliteJournal};
use deloop_types::{Millis, Step};

pub(crate) use self::client::ServerGreeting;
use self::client::{LinkFailure, ServerClient};
#[cfg(feature = "serve")]
pub(crate) use self::connection::{ServerConnection, segment};
pub(crate) use self::message::send_message;
pub(crate) use self::settings::{SERVER, ServerSettings, check_url};
use crate::config::{Config, ConfigNotice};
use crate::exit::Failure;
use crate::state::{State, now};

/// How long a server that failed isn't asked again, in milliseconds. Until then, no event waits for it.
const AWAY: u64 = 5_000;
/// The name under which the journal counts failed requests.
const FAILURES: &str = "server: failed";
/// The name under which the journal counts events that were decided here.
const FALLBACKS: &str = "server: decided here";

/// Asks a server for the decisions about one event after the other.
pub(crate) struct ServerLink {
    client: ServerClient,
    /// When it last failed.
    failed_at: Cell<Option<Millis>>,
    /// Failures that haven't been recorded yet.
    failures: RefCell<Vec<LinkFailure>>,
    /// Number of requests that weren't answered and haven't been recorded yet.
    fallbacks: Cell<u32>,
}

impl ServerLink {
    /// Prepares to ask this server. Nothing is sent yet.
    ///
    /// # Errors
    /// When the certificates can't be read.
    pub(crate) fn new(settings: &ServerSettings, options: Options) -> Result<Self, Failure> {
        Ok(Self {
            client: ServerClient::new(settings, options)?,
            failed_at: Cell::default(),
            failures: RefCell::default(),
            fallbacks: Cell::default(),
        })
    }

    /// Returns the link to the server of a hook or plugin, if there is one. A mistake in its settings becomes a notice, and
    /// the engine decides.
    pub(crate) fn of_hook(config: &mut Config, named: Option<&str>) -> Option<Self> {
        let link = ServerSettings::of(&config.server, named)
            .and_then(|settings| settings.map(|settings| Self::new(&settings, config.options)).transpose());
        link.unwrap_or_else(|failure| {
            if let Failure::Message(why) = failure {
                config
                    .notices
                    .push(ConfigNotice::Broken(format!("{why}. Decisions are made on this machine")));
            }
            None
        })
    }

    /// Returns the same link for steps with these options.
    pub(crate) fn with_options(mut self, options: Options) -> Self {
        self.client.set_options(options);
        self
    }

    /// Takes from the journal when the server last failed.
    pub(crate) fn recall(&self, journal: &SqliteJournal) {
        let calls = journal.calls().unwrap_or_default();
        self.failed_at.set(calls.iter().find(|c| c.agent == FAILURES).map(|c| c.last));
    }

    /// Records what went wrong since the last time, for `deloop status` and the log.
    pub(crate) fn record(&self, agent: &str, journal: &SqliteJournal, state: &State) {
        // A failure to count must not reach the agent.
        for failure in self.failures.take() {
            state.log(agent, &format!("{}; decided on this machine", failure.reason));
            if failure.is_general {
                let _ = journal.called(FAILURES, now());
            }
        }
        for _ in 0..self.fallbacks.take() {
            let _ = journal.called(FALLBACKS, now());
        }
    }

    /// Takes the failures that haven't been recorded.
    pub(crate) fn take_failures(&self) -> Vec<String> {
        self.failures.take().into_iter().map(|failure| failure.reason).collect()
    }

    fn is_away(&self) -> bool {
        self.failed_at.get().is_some_and(|at| now().since(at) < AWAY)
    }
}

impl RemoteDecisions for ServerLink {
    fn decide(&self, steps: &[&Step]) -> Option<RemoteAnswer> {
        if !self.is_away() {
            match self.client.decide(steps) {
                Ok(answer) => return Some(answer),
                Err(failure) => {
                    if failure.is_general {
                        self.failed_at.set(Some(now()));
                    }
                    self.failures.borrow_mut().push(failure);
                }
            }
        }
        self.fallbacks.set(self.fallbacks.get() + 1);
        None
    }
}

/// Asks the server who it is, as `deloop doctor` does.
///
/// # Errors
/// When it can't be asked or refuses the key.
pub(crate) fn greet(settings: &ServerSettings) -> Result<ServerGreeting, Failure> {
    let client = ServerClient::new(settings, Options::default())?;
    client.greet().map_err(|failure| Failure::new(failure.reason))
}

/// Returns how often events were decided on this machine although a server is configured, and when that last happened.
pub(crate) fn fallbacks(calls: &[HookCalls]) -> Option<(u64, Millis)> {
    calls.iter().find(|c| c.agent == FALLBACKS).map(|c| (c.calls, c.last))
}
