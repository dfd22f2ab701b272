//! The holdout: a share of episodes in which deloop stays silent and only records, to compare with the others.

use deloop_engine::Session;
use deloop_policy::is_held_out;
use deloop_store::{Store, StoreError};
use deloop_types::{Action, Decision, Step};

use crate::journal::Journal;
use crate::live::Live;
use crate::outcome_tracking::patterns;
use crate::session_state::AgentState;

/// The side of the comparison that an episode is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldoutSide {
    /// The agent gets deloop's messages.
    Message,
    /// deloop stays silent.
    Holdout,
}

impl HoldoutSide {
    /// Returns the name used in storage.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Holdout => "holdout",
        }
    }

    /// Returns the side of the episode that a decision is about, given the share that is held out. Ceilings have no
    /// episode, and a stop is carried out on either side.
    pub(crate) fn of(step: &Step, decision: &Decision, episode: Option<u64>, share: f64) -> Option<Self> {
        let began = episode.filter(|_| share > 0.0)?;
        if !(Action::Nudge..Action::Stop).contains(&decision.action) {
            return None;
        }
        Some(match is_held_out(&step.session, step.agent.as_deref(), began, share) {
            true => Self::Holdout,
            false => Self::Message,
        })
    }
}

impl<S: Store<Session>, J: Journal> Live<'_, S, J> {
    /// Keeps a decision from the agent. What the agent does next is tracked from the episode's first decision on, as after
    /// a delivered message. The engine learns that the message didn't reach the agent, so nothing harder follows from it.
    pub(crate) fn hold_out(
        &self,
        decision: &Decision,
        episode: Option<u64>,
        agent: &mut AgentState,
    ) -> Result<(), StoreError> {
        if agent.held_out != episode {
            agent.held_out = episode;
            self.track(decision, patterns(decision), agent)?;
        }
        self.inform(Step::delivery(decision.session.clone(), decision.step, false), agent)
    }
}
