//! Gives the first session of a retried run the hand-off of the attempt before it, once.

use deloop_detect::short_hash;
use deloop_engine::Session;
use deloop_store::{Store, StoreError};
use deloop_types::{Action, Decision, SessionId};
use serde::{Deserialize, Serialize};

use crate::Live;
use crate::journal::{DecisionOrigin, Journal};
use crate::session_state::AgentState;

/// The rung under which a hand-off is recorded.
pub(crate) const RUNG: &str = "hand-off";

/// Whether a session has got the hand-off of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandoffState {
    run: String,
    pub(crate) delivered: bool,
}

impl<S: Store<Session>, J: Journal> Live<'_, S, J> {
    /// Returns the hand-off that the main agent of a session hasn't got yet, as a nudge. It is recorded when it is first
    /// due, and stays due until an event can carry it.
    pub(crate) fn due_handoff(
        &self,
        program: &str,
        session: &SessionId,
        agent: &mut AgentState,
    ) -> Result<Option<Decision>, StoreError> {
        let (Some(run), Some(message)) = (self.context.run, self.context.handoff) else { return Ok(None) };
        if agent.name().is_some() {
            return Ok(None);
        }
        let known = agent.handoff.take().filter(|known| known.run == run);
        let is_new = known.is_none();
        let known =
            agent.handoff.insert(known.unwrap_or(HandoffState { run: run.to_owned(), delivered: false }));
        if known.delivered {
            return Ok(None);
        }
        let hash = short_hash(format!("{session}\0{RUNG}\0{run}").as_bytes());
        let id = format!("d{:010x}", hash >> 24);
        let mut decision = Decision::go_on(session.clone(), 0);
        decision.user_message = Some(format!("deloop messaged the agent about the stopped attempt ({id})"));
        decision.id = Some(id);
        decision.action = Action::Nudge;
        decision.level = 1;
        decision.rung = Some(RUNG.to_owned());
        decision.message = Some(message.to_owned());
        decision.role = Some(deloop_types::Role::User);
        if is_new {
            let origin = DecisionOrigin::new(program, self.context.now, Some(run));
            self.journal.record(&decision, &origin)?;
        }
        Ok(Some(decision))
    }

    /// Returns the hand-off in place of a decision if it is due and the mode permits a message. It counts as delivered.
    pub(crate) fn give_handoff(
        &self,
        program: &str,
        decision: Decision,
        agent: &mut AgentState,
    ) -> Result<Decision, StoreError> {
        if self.context.options.mode.cap() < Action::Nudge {
            return Ok(decision);
        }
        let Some(mut handoff) = self.due_handoff(program, &decision.session, agent)? else {
            return Ok(decision);
        };
        if let Some(state) = &mut agent.handoff {
            state.delivered = true;
        }
        handoff.step = decision.step;
        Ok(handoff)
    }
}
