//! The delivery state of a session between two events: undelivered messages, standing refusals, tracked nudges.

use deloop_detect::{Fingerprint, short_hash};
use deloop_formats::hooks::{HookCall, Seen};
use deloop_types::{Action, ControllerNotice, Decision, Mode};
use serde::{Deserialize, Serialize};

use crate::ceilings::CeilingState;
use crate::embedding::AwaitedEmbedding;
use crate::handoff::HandoffState;
use crate::outcome_tracking::{Pattern, TrackedNudge};
use crate::recent_calls::RecentCall;
use crate::remote::{RemoteAnswer, ServerState};
use crate::running_calls::RunningCall;
use crate::transcript::TranscriptPosition;

/// Maximum number of subagents stored per session. The one inactive longest is dropped first.
const AGENTS: usize = 64;

/// The delivery state of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionState {
    agents: Vec<AgentState>,
    /// How far the transcript has been read.
    pub(crate) transcript: TranscriptPosition,
    /// The current notice about the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notice: Option<SessionNotice>,
    /// The mode of the server that last decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_mode: Option<Mode>,
    /// What it must remember of its project's ceilings.
    #[serde(skip_serializing_if = "CeilingState::is_empty")]
    pub(crate) ceiling: CeilingState,
}

/// A notice about the configuration, and whether the user has seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionNotice {
    /// Hash of its text.
    pub(crate) text: u64,
    pub(crate) told: bool,
}

/// The state of the session's main agent or of one subagent.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AgentState {
    name: Option<String>,
    pub(crate) seen: Seen,
    /// A message not delivered yet, because its event couldn't carry it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<UndeliveredMessage>,
    /// The stop because of which a call should not have been made, although it was allowed, because a later event can stop
    /// the run. If another call comes, none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) let_through: Option<Box<Decision>>,
    /// A call to refuse if it is the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refuse: Option<StandingRefusal>,
    /// The last nudge, until its outcome is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nudge: Option<TrackedNudge>,
    /// Set when a person paused deloop or marked a decision as wrong. deloop starts over when it resumes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) put_off: bool,
    pub(crate) recent_calls: Vec<RecentCall>,
    /// The calls that have no result yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) running: Vec<RunningCall>,
    /// The latest turn, if its embedding isn't known yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) awaited: Option<AwaitedEmbedding>,
    /// Whether it got the hand-off of an earlier attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handoff: Option<HandoffState>,
    /// Notices about other agents that the program couldn't take yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<ControllerNotice>,
    /// What the server knows and must still be told; `None` if the engine here decided last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<ServerState>,
    /// Whether it was counted as a subagent of its project.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) counted: bool,
    /// Hash of its latest turn's id; 0 if that has none.
    #[serde(skip_serializing_if = "is_zero")]
    turn: u64,
    /// The day and the raises when it was last asked about or stopped because of its project's ceilings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit_reached: Option<(i64, u32)>,
    /// How far a subagent's own transcript has been read.
    #[serde(skip_serializing_if = "TranscriptPosition::is_new")]
    pub(crate) transcript: TranscriptPosition,
    /// The episode that deloop stays silent in, by the step it began at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held_out: Option<u64>,
}

/// A message that hasn't been delivered yet.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UndeliveredMessage {
    pub(crate) decision: Decision,
    /// The patterns it is about.
    #[serde(default)]
    pub(crate) patterns: Vec<Pattern>,
    /// Whether whoever decided knows that it wasn't delivered.
    pub(crate) lost: bool,
    /// Whether a server decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) by_server: bool,
}

/// A call to refuse.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StandingRefusal {
    pub(crate) call: Fingerprint,
    pub(crate) decision: Decision,
}

impl SessionState {
    /// Reads stored state.
    pub(crate) fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns the state of a subagent, or of the main agent.
    pub(crate) fn agent(&mut self, name: Option<&str>) -> &mut AgentState {
        // The most recently used agent is last.
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

    /// Notes who decides about an agent's steps now: a server with this answer, or the engine.
    pub(crate) fn decided_by(&mut self, agent: Option<&str>, answer: Option<&RemoteAnswer>) {
        if let Some(answer) = answer {
            self.server_mode = answer.mode.or(self.server_mode);
            self.agent(agent).server.get_or_insert_default();
        } else {
            self.agent(agent).server = None;
        }
    }

    /// Drops undelivered messages and refusals, because a person wrote.
    pub(crate) fn forget_decisions(&mut self) {
        self.agents.iter_mut().for_each(AgentState::forget_decisions);
    }

    /// Drops refusals, because a person wrote. Nudges wait for an event that can carry them: in a profile that only
    /// counts, a person's message ends nothing.
    pub(crate) fn forget_refusals(&mut self) {
        for agent in &mut self.agents {
            let nudge = agent.pending.take_if(|pending| pending.decision.action == Action::Nudge);
            agent.forget_decisions();
            agent.pending = nudge;
        }
    }

    /// Makes every agent start over, because a person marked a decision as wrong.
    pub(crate) fn put_off(&mut self) {
        for agent in &mut self.agents {
            agent.forget_decisions();
            agent.put_off = true;
        }
    }

    /// Returns the calls of all agents that have no result yet, those of the most recently active agent last.
    #[cfg(feature = "sqlite")]
    pub(crate) fn running(&self) -> Vec<RunningCall> {
        self.agents.iter().flat_map(|agent| agent.running.iter().cloned()).collect()
    }

    /// Returns the last calls of the main agent.
    #[cfg(feature = "sqlite")]
    pub(crate) fn main_calls(&self) -> &[RecentCall] {
        let main = self.agents.iter().find(|agent| agent.name.is_none());
        main.map(|agent| agent.recent_calls.as_slice()).unwrap_or_default()
    }

    /// Takes the tracked nudges of all agents.
    pub(crate) fn nudges(&mut self) -> impl Iterator<Item = TrackedNudge> {
        self.agents.iter_mut().filter_map(|agent| agent.nudge.take())
    }
}

impl AgentState {
    /// Returns the subagent's name; the main agent has none.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Notes the turn of a step. Returns whether it is a new one: hooks report each parallel call of a turn.
    pub(crate) fn begins_turn(&mut self, id: Option<&str>) -> bool {
        let turn = id.map_or(0, |id| short_hash(id.as_bytes()).max(1));
        std::mem::replace(&mut self.turn, turn) != turn || turn == 0
    }

    pub(crate) fn forget_decisions(&mut self) {
        (self.pending, self.refuse) = (None, None);
        self.let_through = None;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Identifies a call.
pub(crate) fn fingerprint(call: &HookCall) -> Fingerprint {
    Fingerprint::of_call(&call.call.tool, &call.call.args)
}
