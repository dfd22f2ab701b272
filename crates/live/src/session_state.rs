//! The delivery state of a session between two events: messages on their way, standing refusals, tracked nudges.

use deloop_detect::Fingerprint;
use deloop_formats::hooks::{HookCall, Seen};
use deloop_types::Decision;
use serde::{Deserialize, Serialize};

use crate::outcome_tracking::{Pattern, TrackedNudge};
use crate::recent_calls::RecentCall;
use crate::transcript::TranscriptPosition;

/// How many subagents of a session are remembered; the longest silent goes first.
const AGENTS: usize = 64;

/// All of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionState {
    agents: Vec<AgentState>,
    /// How far the transcript was read.
    pub(crate) transcript: TranscriptPosition,
    /// What people should know about the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notice: Option<SessionNotice>,
}

/// A notice about the configuration, and whether the person has been told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionNotice {
    /// Its hash.
    pub(crate) text: u64,
    pub(crate) told: bool,
}

/// What concerns the session's own agent, or one subagent of it.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentState {
    name: Option<String>,
    pub(crate) seen: Seen,
    /// What the agent has yet to be told: the event it was decided at could not carry it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<UndeliveredMessage>,
    /// A call was let through although the run is to end, because a later event can end it; none did if another call
    /// comes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) let_through: bool,
    /// A call that is refused if it is the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refuse: Option<StandingRefusal>,
    /// The last nudge, until its outcome is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nudge: Option<TrackedNudge>,
    /// A person paused deloop or called it wrong: it starts over when it resumes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) put_off: bool,
    pub(crate) recent_calls: Vec<RecentCall>,
}

/// A message on its way.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UndeliveredMessage {
    pub(crate) decision: Decision,
    /// What it is about.
    #[serde(default)]
    pub(crate) patterns: Vec<Pattern>,
    /// The engine was told that it did not arrive.
    pub(crate) lost: bool,
}

/// A call to be refused.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StandingRefusal {
    pub(crate) call: Fingerprint,
    pub(crate) decision: Decision,
}

impl SessionState {
    /// From what was kept; what an earlier release kept otherwise is started anew.
    pub(crate) fn read(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The part of one subagent, or of the session's own agent.
    pub(crate) fn agent(&mut self, name: Option<&str>) -> &mut AgentState {
        // The one that is spoken of stands last.
        let agent = match self.agents.iter().position(|w| w.name.as_deref() == name) {
            Some(index) => self.agents.remove(index),
            None => AgentState { name: name.map(str::to_owned), ..AgentState::default() },
        };
        if self.agents.len() >= AGENTS {
            self.agents.remove(0);
        }
        self.agents.push(agent);
        let last = self.agents.len() - 1;
        &mut self.agents[last]
    }

    /// A person wrote: what was on its way is of the past.
    pub(crate) fn forget_decisions(&mut self) {
        self.agents.iter_mut().for_each(AgentState::forget_decisions);
    }

    /// A person said that deloop was wrong: every agent starts anew.
    pub(crate) fn put_off(&mut self) {
        for agent in &mut self.agents {
            agent.forget_decisions();
            agent.put_off = true;
        }
    }

    /// Takes the tracked nudges of all agents.
    pub(crate) fn nudges(&mut self) -> impl Iterator<Item = TrackedNudge> {
        self.agents.iter_mut().filter_map(|agent| agent.nudge.take())
    }
}

impl AgentState {
    /// Returns the subagent's name; the session's own agent has none.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(crate) fn forget_decisions(&mut self) {
        (self.pending, self.refuse) = (None, None);
        self.let_through = false;
    }
}

/// Tells a call from others.
pub(crate) fn fingerprint(call: &HookCall) -> Fingerprint {
    Fingerprint::of_call(&call.call.tool, &call.call.args)
}
