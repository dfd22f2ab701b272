use deloop_engine::Session;
use deloop_store::{Store, StoreError};
use deloop_types::{Action, Body, Decision, Event, Origin, Step};

use crate::Live;
use crate::hook_event::with_notices;
use crate::journal::{Journal, SessionSource};
use crate::outcome_tracking::{NudgeOutcome, patterns};

impl<S: Store<Session>, J: Journal> Live<'_, S, J> {
    /// Handles a step from a program that sends Steps and carries out decisions itself. `program` is its name in
    /// the journal.
    ///
    /// A message counts as delivered once it is returned, unless a `delivery` step reports otherwise.
    ///
    /// # Errors
    /// When the store or the journal fails. Nothing is changed then.
    pub fn step(&self, program: &str, step: Step) -> Result<(Decision, Vec<Event>), StoreError> {
        if step.body == Body::State {
            let (_, observed) = self.observe(step)?;
            return Ok((observed.decision, observed.events));
        }
        self.journal.atomically(|| {
            self.journal.called(program, self.context.now)?;
            self.handle(program, step)
        })
    }

    fn handle(&self, program: &str, mut step: Step) -> Result<(Decision, Vec<Event>), StoreError> {
        let session = step.session.clone();
        let source = SessionSource {
            session: session.to_string(),
            agent: program.to_owned(),
            transcript: None,
            run: self.context.run.map(str::to_owned),
            project: self.context.project.map(str::to_owned),
        };
        let (mut state, exemptions) = self.begin(&source)?;
        if let Body::Turn(turn) = &mut step.body
            && !turn.calls.is_empty()
        {
            turn.calls.retain(|call| !exemptions.allows(call));
            if turn.calls.is_empty() && turn.text.is_empty() {
                return Ok((Decision::go_on(session, 0), Vec::new()));
            }
        }
        match &step.body {
            Body::User(user) if user.origin == Origin::Human => {
                self.close(&mut state, NudgeOutcome::Unknown)?;
            }
            Body::End => self.close(&mut state, NudgeOutcome::Ended)?,
            _ => {}
        }
        let agent = state.agent(step.agent.as_deref());
        self.pause(&session, &exemptions, agent)?;
        let takes_messages = match &step.body {
            Body::Turn(turn) => !turn.calls.is_empty(),
            Body::Result(_) => true,
            Body::User(user) => user.origin == Origin::Human,
            _ => false,
        };
        let late = match self.arrived_embedding(&session, agent) {
            Some(step) => Some(self.enter(program, step, agent, &exemptions)?),
            None => None,
        };
        let (mut decision, mut events) = self.enter(program, step, agent, &exemptions)?;
        agent.notices.append(&mut decision.notices);
        if let Some((late, found)) = late {
            events.splice(..0, found);
            if late.action > decision.action {
                decision = late;
            }
        }
        let may_message = !exemptions.paused && self.context.options.mode.cap() >= Action::Nudge;
        if takes_messages && may_message {
            decision = with_notices(decision, &std::mem::take(&mut agent.notices));
        }
        if takes_messages && decision.action < Action::Nudge && !exemptions.paused {
            decision = self.give_handoff(program, decision, agent)?;
        }
        if decision.action >= Action::Nudge {
            if let Some(id) = &decision.id {
                self.journal.delivered(id, "stream")?;
            }
            if decision.action == Action::Nudge {
                self.track(&decision, patterns(&decision), agent)?;
            }
        }
        self.end(&session, &state)?;
        Ok((decision, events))
    }
}
