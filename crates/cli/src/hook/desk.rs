//! What a hook keeps between two events of a session, beside what the engine remembers.

use deloop_detect::Fingerprint;
use deloop_formats::hooks::{HookCall, Seen};
use deloop_types::Decision;
use serde::{Deserialize, Serialize};

use super::aftermath::{Pattern, Watch};
use super::trail::Crumb;
use super::transcript::Mark;

/// How many subagents of a session are remembered; the longest silent goes first.
const WORKERS: usize = 64;

/// All of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Desk {
    workers: Vec<Worker>,
    /// How far the transcript was read.
    pub(super) mark: Mark,
    /// What people should know about the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) notice: Option<Notice>,
}

/// A notice about the configuration, and whether the person has been told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Notice {
    /// Its hash.
    pub(super) text: u64,
    pub(super) told: bool,
}

/// What concerns the session's own agent, or one subagent of it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Worker {
    name: Option<String>,
    pub(super) seen: Seen,
    /// What the agent has yet to be told: the event it was decided at could not carry it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Pending>,
    /// The end that was decided. It stands until a person writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stop: Option<Decision>,
    /// A call was let through after that, for an event that ends the run to follow it; none did if a further call comes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) let_through: bool,
    /// A call that is refused if it is the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refuse: Option<Refusal>,
    /// The last nudge, until it is known what came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) watch: Option<Watch>,
    /// A person has put deloop off: what was found until then is of the past when it goes on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) put_off: bool,
    pub(super) trail: Vec<Crumb>,
}

/// A message on its way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pending {
    pub(super) decision: Decision,
    /// What it is about.
    #[serde(default)]
    pub(super) patterns: Vec<Pattern>,
    /// The engine was told that it did not arrive.
    pub(super) lost: bool,
}

/// A call to be refused.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) call: Fingerprint,
    pub(super) decision: Decision,
}

impl Desk {
    /// From what was kept; what an earlier release kept otherwise is started anew.
    pub(super) fn read(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The part of one subagent, or of the session's own agent.
    pub(super) fn worker(&mut self, name: Option<&str>) -> &mut Worker {
        // The one that is spoken of stands last.
        let worker = match self.workers.iter().position(|w| w.name.as_deref() == name) {
            Some(index) => self.workers.remove(index),
            None => Worker { name: name.map(str::to_owned), ..Worker::default() },
        };
        if self.workers.len() >= WORKERS {
            self.workers.remove(0);
        }
        self.workers.push(worker);
        let last = self.workers.len() - 1;
        &mut self.workers[last]
    }

    /// A person wrote: what was on its way is of the past.
    pub(super) fn forget_decisions(&mut self) {
        self.workers.iter_mut().for_each(Worker::forget_decisions);
    }

    /// A person said that deloop was wrong: every agent starts anew.
    pub(super) fn put_off(&mut self) {
        for worker in &mut self.workers {
            worker.forget_decisions();
            worker.put_off = true;
        }
    }

    /// The nudges of all agents of which it is not known yet what came of them.
    pub(super) fn watches(&mut self) -> impl Iterator<Item = Watch> {
        self.workers.iter_mut().filter_map(|worker| worker.watch.take())
    }
}

impl Worker {
    pub(super) fn forget_decisions(&mut self) {
        (self.pending, self.stop, self.refuse) = (None, None, None);
        self.let_through = false;
    }
}

/// Tells a call from others.
pub(super) fn fingerprint(call: &HookCall) -> Fingerprint {
    Fingerprint::of_call(&call.call.tool, &call.call.args)
}
