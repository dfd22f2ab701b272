use deloop_types::{Call, ShortCall};
use serde::{Deserialize, Serialize};

use crate::{short_call, short_hash};

/// How much of the names of a session and an agent is kept, in characters.
const NAME: usize = 40;

/// A worker of a swarm: one agent of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwarmWorker<'a> {
    /// The session.
    pub session: &'a str,
    /// The agent; `None` for the session's main agent.
    pub agent: Option<&'a str>,
}

impl SwarmWorker<'_> {
    /// Returns a number that identifies the worker.
    #[must_use]
    pub fn id(self) -> u64 {
        short_hash(format!("{}\0{}", self.session, self.agent.unwrap_or_default()).as_bytes())
    }

    /// Returns the name to show: the session, and behind a slash the agent. It isn't cleaned for display.
    #[must_use]
    pub fn name(self) -> String {
        let cut = |text: &str| text.chars().take(NAME).collect::<String>();
        match self.agent {
            Some(agent) => format!("{}/{}", cut(self.session), cut(agent)),
            None => cut(self.session),
        }
    }
}

/// A call of a worker, for the tally of its swarm.
#[derive(Debug, Clone, Copy)]
pub struct SwarmCall<'a> {
    /// The call.
    pub call: &'a Call,
    /// Its structural fingerprint.
    pub target: u64,
    /// The fingerprint of the tool and all its arguments.
    pub signature: u64,
}

impl SwarmCall<'_> {
    /// Returns the short form of the call.
    #[must_use]
    pub fn short(&self) -> ShortCall {
        short_call(&self.call.tool, &self.call.args)
    }
}

/// What a swarm remembers of its recent calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SwarmState {
    /// Number of recent calls that count.
    pub calls: u64,
    /// Number of workers that made them.
    pub workers: u64,
    /// Maximum number of calls remembered at this number of workers.
    pub window: u64,
    /// The most-called fingerprints, most-called first, at most 32.
    pub fingerprints: Vec<SwarmFingerprint>,
}

/// How often a swarm made calls with one structural fingerprint, and which workers did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SwarmFingerprint {
    /// The fingerprint, in hexadecimal.
    pub fingerprint: String,
    /// The tool.
    pub tool: String,
    /// The short form of one of the calls, without secrets.
    pub call: String,
    /// Number of recent calls with this fingerprint.
    pub total_calls: u64,
    /// Number of workers that made them.
    pub worker_count: u64,
    /// The names of these workers, at most 1,000: the session, and behind a slash the agent. Clean them before you
    /// show them.
    pub workers: Vec<String>,
}
