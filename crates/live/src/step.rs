use deloop_detect::Fingerprint;
use deloop_engine::{Observed, Session};
use deloop_store::{Store, StoreError};
use deloop_types::{Action, Body, Decision, Event, Origin, SessionId, Step};

use crate::ceilings::CeilingPoint;
use crate::controller_notices::with_notices;
use crate::exemptions::Exemptions;
use crate::journal::{Journal, SessionSource};
use crate::live::{EventContext, Live, subagent_swarm};
use crate::outcome_tracking::{NudgeOutcome, patterns};
use crate::planned_steps::{Audience, PlannedSteps};
use crate::remote::RemoteAnswer;
use crate::session_state::SessionState;

/// The steps that a program's step leads to.
struct StepPlan {
    session: SessionId,
    /// The subagent, if any.
    name: Option<String>,
    exemptions: Exemptions,
    steps: PlannedSteps,
    /// Whether the program can give the agent a message at this step.
    takes_messages: bool,
}

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
            return self.ask_state(step);
        }
        let Some(remote) = self.context.remote else {
            return self.journal.atomically(|| {
                let (state, plan) = self.plan_step(program, step)?;
                self.finish_step(program, state, plan, None)
            });
        };
        let plan = self.journal.atomically(|| {
            let (state, plan) = self.plan_step(program, step)?;
            self.end(&plan.session, &state)?;
            Ok(plan)
        })?;
        let answer = plan.steps.ask(remote);
        let options = self.stricter(plan.steps.server_mode);
        let engine = self.engine.with_options(options);
        let context = EventContext { options, ..self.context.clone() };
        let live = Live { engine: &engine, store: self.store, journal: self.journal, context };
        self.journal
            .atomically(|| live.finish_step(program, live.state(plan.session.as_str())?, plan, answer))
    }

    fn ask_state(&self, step: Step) -> Result<(Decision, Vec<Event>), StoreError> {
        let step = self.complete(step);
        let answer = self.context.remote.and_then(|remote| remote.decide(&[&step]));
        if let Some(decision) = answer.and_then(|answer| answer.decisions.into_iter().next()) {
            return Ok((decision, Vec::new()));
        }
        let Observed { decision, events, .. } = self.observe(&step)?;
        Ok((decision, events))
    }

    /// Lists the steps to decide about: this one, and what became known before it.
    fn plan_step(&self, program: &str, mut step: Step) -> Result<(SessionState, StepPlan), StoreError> {
        self.journal.called(program, self.context.now)?;
        let session = step.session.clone();
        let source = SessionSource {
            session: session.to_string(),
            agent: program.to_owned(),
            transcript: None,
            run: self.context.run.map(str::to_owned),
            project: self.context.project.map(str::to_owned),
        };
        let (mut state, exemptions) = self.begin(&source)?;
        let name = step.agent.clone();
        let server_mode = state.server_mode;
        if let Body::Turn(turn) = &mut step.body
            && !turn.calls.is_empty()
        {
            turn.calls.retain(|call| !exemptions.allows(call));
            if turn.calls.is_empty() && turn.text.is_empty() {
                let steps = PlannedSteps { server_mode, ..PlannedSteps::default() };
                return Ok((state, StepPlan { session, name, exemptions, steps, takes_messages: false }));
            }
        }
        match &step.body {
            Body::User(user) if user.origin == Origin::Human => {
                self.close(&mut state, NudgeOutcome::Unknown)?;
                self.person_wrote(&mut state.ceiling)?;
            }
            Body::End => self.close(&mut state, NudgeOutcome::Ended)?,
            _ => {}
        }
        let agent = state.agent(name.as_deref());
        let mut steps = PlannedSteps::new(agent, server_mode);
        if Self::pause(&exemptions, agent) {
            steps.inform(self, agent, Step::intervention(session.clone()), Audience::Both);
        }
        let takes_messages = match &step.body {
            Body::Turn(turn) => !turn.calls.is_empty(),
            Body::Result(_) => true,
            Body::User(user) => user.origin == Origin::Human,
            _ => false,
        };
        if let Some(late) = self.arrived_embedding(&session, agent) {
            steps.add(self, late);
        }
        if step.body == Body::End && self.context.subagent_swarms {
            let swarm = subagent_swarm(&session);
            steps.inform(self, agent, Step::swarm_end(session.clone(), swarm), Audience::Server);
        }
        steps.add(self, step);
        Ok((state, StepPlan { session, name, exemptions, steps, takes_messages }))
    }

    fn finish_step(
        &self,
        program: &str,
        mut state: SessionState,
        plan: StepPlan,
        answer: Option<RemoteAnswer>,
    ) -> Result<(Decision, Vec<Event>), StoreError> {
        let StepPlan { session, name, exemptions, steps, takes_messages } = plan;
        if steps.steps.is_empty() {
            return Ok((Decision::go_on(session, 0), Vec::new()));
        }
        state.decided_by(name.as_deref(), answer.as_ref());
        let usage = self.count_usage(&mut state, name.as_deref(), self.context.project, &steps.steps)?;
        let mut ceiling = std::mem::take(&mut state.ceiling);
        let (at_call, call) = match steps.steps.last().map(|planned| &planned.step.body) {
            Some(Body::Turn(turn)) => {
                let call = turn.calls.first().map(|call| Fingerprint::of_call(&call.tool, &call.args));
                (call.is_some(), call)
            }
            Some(Body::Result(_)) => (true, None),
            _ => (false, None),
        };
        let agent = state.agent(name.as_deref());
        let mut answers = answer.map(|answer| answer.decisions.into_iter());
        let (mut decision, mut events) = (Decision::go_on(session.clone(), 0), Vec::new());
        let mut strongest: Option<Decision> = None;
        for planned in steps.steps {
            let Some((mut decided, found)) =
                self.decide(program, planned, &mut answers, agent, &exemptions)?
            else {
                continue;
            };
            agent.notices.append(&mut decided.notices);
            events.extend(found);
            // The last one is about the step itself.
            let earlier = std::mem::replace(&mut decision, decided);
            if strongest.as_ref().is_none_or(|strongest| earlier.action > strongest.action) {
                strongest = Some(earlier);
            }
        }
        if let Some(earlier) = strongest.filter(|earlier| earlier.action > decision.action) {
            decision = earlier;
        }
        let cap = if agent.server.is_some() { Action::Stop } else { self.context.options.mode.cap() };
        let may_message = !exemptions.paused && cap >= Action::Nudge;
        if takes_messages && may_message {
            decision = with_notices(decision, &std::mem::take(&mut agent.notices));
        }
        let Decision { action, step, .. } = decision;
        let subagent = name.as_deref();
        let point = CeilingPoint { program, session: &session, subagent, at_call, call, action, step };
        let usage = usage.filter(|_| !exemptions.paused);
        if let Some((judged, about)) = self.judge_day(&mut ceiling, agent, usage.as_ref(), &point)? {
            events.extend(about);
            decision = if judged.action > decision.action { judged } else { decision };
        }
        if takes_messages && decision.action < Action::Nudge && !exemptions.paused {
            decision = self.give_handoff(program, decision, agent)?;
        }
        if decision.action >= Action::Nudge {
            if let Some(id) = &decision.id {
                let at = if decision.rollback.is_some() { "stream, with a rollback" } else { "stream" };
                self.journal.delivered(id, at)?;
            }
            if decision.action == Action::Nudge || decision.rollback.is_some() {
                self.track(&decision, patterns(&decision), agent)?;
            }
        }
        // Whoever carries out the decision decides how to ask, so what follows isn't known.
        ceiling.not_asked();
        state.ceiling = ceiling;
        self.end(&session, &state)?;
        Ok((decision, events))
    }
}
