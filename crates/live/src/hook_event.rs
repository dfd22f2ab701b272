//! Handles one event of an agent's hook, from its Steps to the reply.

use deloop_detect::short_hash;
use deloop_engine::Session;
use deloop_formats::hooks::{Encoded, HookAgent, HookEvent, HookKind, Reply};
use deloop_policy::{Rules, TASK_UPDATE};
use deloop_store::{Store, StoreError};
use deloop_types::{Action, Body, Decision, SessionId, Step};

use crate::ceilings::{CeilingPoint, CeilingState, is_about_limit, refused_at_limit};
use crate::controller_notices::with_notices;
use crate::exemptions::Exemptions;
use crate::handled::Handled;
use crate::journal::{Journal, SessionSource};
use crate::live::{EventContext, Live, subagent_swarm};
use crate::outcome_tracking::{NudgeOutcome, patterns};
use crate::planned_steps::{Audience, PlannedSteps};
use crate::remote::RemoteAnswer;
use crate::session_state::{
    AgentState, SessionNotice, SessionState, StandingRefusal, UndeliveredMessage, fingerprint,
};
use crate::{recent_calls, transcript};

impl<S: Store<Session>, J: Journal> Live<'_, S, J> {
    /// Handles an event of an agent's hook. All changes are stored together or not at all. While a server is asked for its
    /// decisions, other processes can use the journal.
    ///
    /// # Errors
    /// When the store or the journal fails.
    pub fn hook_event(&self, agent: &'static dyn HookAgent, event: HookEvent) -> Result<Handled, StoreError> {
        let Some(remote) = self.context.remote else {
            return self.journal.atomically(|| match self.begin_event(agent, event)? {
                Some((handler, state, plan)) => handler.finish(state, plan, None),
                None => Ok(Handled::default()),
            });
        };
        let begun = self.journal.atomically(|| {
            let Some((handler, state, plan)) = self.begin_event(agent, event)? else { return Ok(None) };
            self.end(&handler.session, &state)?;
            Ok(Some((handler, plan)))
        })?;
        let Some((handler, plan)) = begun else { return Ok(Handled::default()) };
        let answer = plan.steps.ask(remote);
        let options = self.stricter(plan.steps.server_mode);
        let engine = self.engine.with_options(options);
        let context = EventContext { options, ..self.context.clone() };
        let live = Live { engine: &engine, store: self.store, journal: self.journal, context };
        let handler = Handler { live: &live, ..handler };
        self.journal.atomically(|| handler.finish(live.state(handler.session.as_str())?, plan, answer))
    }

    fn begin_event(
        &self,
        agent: &'static dyn HookAgent,
        mut event: HookEvent,
    ) -> Result<Option<BegunEvent<'_, S, J>>, StoreError> {
        self.journal.called(agent.name(), self.context.now)?;
        if event.kind == HookKind::Other {
            return Ok(None);
        }
        let source = SessionSource {
            session: event.session.clone(),
            agent: agent.name().to_owned(),
            transcript: event.transcript.clone(),
            run: self.context.run.map(str::to_owned),
            project: event.cwd.clone().or_else(|| self.context.project.map(str::to_owned)),
        };
        let (mut state, exemptions) = self.begin(&source)?;
        event.calls.retain(|call| !exemptions.allows(&call.call));
        event.again = state.agent(event.subagent.as_deref()).let_through.is_some();
        // The document profiles know no such requests.
        event.continued &= self.engine.profile().rules == Rules::Episodes;
        let session = SessionId::from(event.session.as_str());
        let handler = Handler { live: self, agent, event, exemptions, session };
        let plan = handler.plan(&mut state)?;
        Ok(Some((handler, state, plan)))
    }
}

/// An event whose steps wait for their decisions, with the state of its session.
type BegunEvent<'a, S, J> = (Handler<'a, S, J>, SessionState, EventPlan);

/// The steps of an event, and the refusal that was due before it.
struct EventPlan {
    steps: PlannedSteps,
    refused: Option<StandingRefusal>,
}

struct Handler<'a, S, J> {
    live: &'a Live<'a, S, J>,
    agent: &'static dyn HookAgent,
    event: HookEvent,
    exemptions: Exemptions,
    session: SessionId,
}

impl<S: Store<Session>, J: Journal> Handler<'_, S, J> {
    /// Lists the steps of the event.
    fn plan(&self, state: &mut SessionState) -> Result<EventPlan, StoreError> {
        let (live, event) = (self.live, &self.event);
        let news = transcript::since(self.agent, event, &mut state.transcript, live.context.open);
        if event.kind == HookKind::Prompt && event.is_human(&state.agent(None).seen) {
            match live.engine.profile().rules {
                Rules::Counter => state.forget_refusals(),
                Rules::Episodes => state.forget_decisions(),
            }
            live.close(state, NudgeOutcome::Unknown)?;
            live.person_wrote(&mut state.ceiling)?;
        }
        live.calls_ran(event, &mut state.ceiling)?;
        if event.kind == HookKind::SessionEnd {
            live.close(state, NudgeOutcome::Ended)?;
            live.forget_subagents(&self.session)?;
        }
        let mut steps = event.steps(&mut state.agent(event.subagent.as_deref()).seen);
        state.transcript.name_turns(&mut steps);
        let server_mode = state.server_mode;
        let agent = state.agent(event.subagent.as_deref());
        let mut plan = PlannedSteps::new(agent, server_mode);
        if Live::<S, J>::pause(&self.exemptions, agent) {
            plan.inform(live, agent, Step::intervention(self.session.clone()), Audience::Both);
        }
        if event.kind == HookKind::SessionEnd && live.context.subagent_swarms {
            let swarm = subagent_swarm(&self.session);
            plan.inform(live, agent, Step::swarm_end(self.session.clone(), swarm), Audience::Server);
        }
        transcript::attach(news.text, event, &mut steps);
        steps.splice(..0, news.usage);
        steps.splice(
            ..0,
            transcript::subagent_usage(self.agent, event, &mut agent.transcript, live.context.open),
        );
        steps.splice(..0, live.arrived_embedding(&self.session, agent));
        let refused = agent.refuse.take_if(|_| steps.iter().any(|s| matches!(s.body, Body::Turn(_))));
        let refused = refused.filter(|r| event.calls.iter().any(|c| fingerprint(c) == r.call));
        for step in steps {
            if matches!(step.body, Body::Turn(_)) {
                self.lose(agent, &mut plan);
            }
            plan.add(live, step);
        }
        if event.kind == HookKind::Stop {
            // The agent has finished, so an undelivered message can no longer reach it.
            self.lose(agent, &mut plan);
            agent.pending = None;
        }
        Ok(EventPlan { steps: plan, refused })
    }

    /// Reports that the pending message didn't reach the agent, once.
    fn lose(&self, agent: &mut AgentState, plan: &mut PlannedSteps) {
        let Some(pending) = agent.pending.as_mut().filter(|pending| !pending.lost) else { return };
        pending.lost = true;
        let step = Step::delivery(self.session.clone(), pending.decision.step, false);
        let audience = if pending.by_server { Audience::Server } else { Audience::Engine };
        plan.inform(self.live, agent, step, audience);
    }

    fn finish(
        &self,
        mut state: SessionState,
        plan: EventPlan,
        answer: Option<RemoteAnswer>,
    ) -> Result<Handled, StoreError> {
        let before = state.notice.clone();
        let mut handled = Handled::default();
        let reply = self.run(&mut state, plan, answer, &mut handled)?;
        let reply = self.notify(&mut state, &reply).unwrap_or(reply);
        let news = |notice: &SessionNotice| before.is_none_or(|before| before.text != notice.text);
        let is_news = state.notice.as_ref().is_some_and(news);
        self.live.end(&self.session, &state)?;
        Ok(Handled { reply, is_news, ..handled })
    }

    fn run(
        &self,
        state: &mut SessionState,
        plan: EventPlan,
        answer: Option<RemoteAnswer>,
        handled: &mut Handled,
    ) -> Result<Reply, StoreError> {
        let (live, event) = (self.live, &self.event);
        let EventPlan { steps: plan, refused } = plan;
        let folder = event.cwd.as_deref().or(live.context.project);
        let usage = live.count_usage(state, event.subagent.as_deref(), folder, &plan.steps)?;
        let mut ceiling = std::mem::take(&mut state.ceiling);
        if plan.need_decisions() {
            state.decided_by(event.subagent.as_deref(), answer.as_ref());
        }
        let agent = state.agent(event.subagent.as_deref());
        let mut decision = Decision::go_on(self.session.clone(), 0);
        let mut notices = Vec::new();
        if plan.is_idle() && !self.exemptions.paused {
            // An event without a step gets the current stop, too.
            let stop = match &agent.server {
                Some(server) => server.stop.as_deref().cloned(),
                None => live.engine.standing_stop(live.store, &self.session, event.subagent.as_deref())?,
            };
            // A stop that ends a task doesn't stand, but the call it was about hasn't been made yet.
            let let_through = agent.let_through.as_deref().filter(|_| event.kind == HookKind::Permission);
            decision = stop.or_else(|| let_through.cloned()).unwrap_or(decision);
        }
        let mut answers = answer.map(|answer| answer.decisions.into_iter());
        for planned in plan.steps {
            let program = self.agent.name();
            let decided = live.decide(program, planned, &mut answers, agent, &self.exemptions)?;
            let Some((mut decided, found)) = decided else { continue };
            handled.events.extend(found);
            if decided.extra.contains_key(TASK_UPDATE) {
                handled.task_ends.push(decided.clone());
            }
            notices.append(&mut decided.notices);
            if decided.action >= decision.action {
                decision = decided;
            }
        }
        if event.kind == HookKind::Stop
            && let Some(nudge) = agent.nudge.take()
        {
            live.outcome(&nudge, NudgeOutcome::Ended)?;
        }
        let handoff = match event.kind {
            // Nothing follows that could carry it.
            HookKind::Stop | HookKind::SessionEnd => None,
            _ => live.due_handoff(self.agent.name(), &self.session, agent)?,
        };
        if self.exemptions.paused || self.cap(agent) < Action::Nudge {
            notices.clear();
        }
        let usage = usage.filter(|_| !self.exemptions.paused);
        let point = CeilingPoint::of(self.agent, event, &self.session, &decision);
        if let Some((judged, about)) = live.judge_day(&mut ceiling, agent, usage.as_ref(), &point)? {
            handled.events.extend(about);
            decision = if judged.action > decision.action { judged } else { decision };
        }
        let reply = self.answer(
            with_notices(decision, &notices),
            refused.as_ref(),
            handoff.as_ref(),
            agent,
            &mut ceiling,
        );
        state.ceiling = ceiling;
        reply
    }

    /// Returns the strongest action that is carried out. A server has applied the mode itself.
    fn cap(&self, agent: &AgentState) -> Action {
        match &agent.server {
            _ if self.exemptions.paused => Action::Continue,
            Some(_) => Action::Stop,
            None => self.live.context.options.mode.cap(),
        }
    }

    /// Shows the user the notice about the configuration, once per session. Returns the reply that carries it, if this
    /// event can carry one and there is no other reply.
    fn notify(&self, state: &mut SessionState, reply: &Reply) -> Option<Reply> {
        let notice_text = self.live.context.notice?;
        let text = short_hash(notice_text.as_bytes());
        let known = state.notice.take().filter(|known| known.text == text);
        let notice = state.notice.insert(known.unwrap_or(SessionNotice { text, told: false }));
        if notice.told || *reply != Reply::default() {
            return None;
        }
        let mut warning = Decision::go_on(self.session.clone(), 0);
        warning.action = Action::Warn;
        warning.status = Some(notice_text.to_owned());
        warning.user_message = Some(notice_text.to_owned());
        let Encoded { reply, carried } = self.agent.encode(&self.event, &warning);
        notice.told = carried == Action::Warn;
        notice.told.then_some(reply)
    }

    /// Replies with the decision, or with an earlier one that still applies if that is stronger.
    fn answer(
        &self,
        mut decision: Decision,
        refused: Option<&StandingRefusal>,
        handoff: Option<&Decision>,
        agent: &mut AgentState,
        ceiling: &mut CeilingState,
    ) -> Result<Reply, StoreError> {
        let (live, event) = (self.live, &self.event);
        let mut about = patterns(&decision);
        let mut by_server = agent.server.is_some();
        let cap = self.cap(agent);
        let standing = [
            agent.pending.as_ref().map(|p| (&p.decision, p.patterns.as_slice(), p.by_server)),
            refused.map(|r| (&r.decision, &[][..], by_server)),
            handoff.map(|handoff| (handoff, &[][..], false)),
        ];
        for (earlier, patterns, server) in standing.into_iter().flatten().filter(|(d, ..)| d.action <= cap) {
            if earlier.action > decision.action {
                decision = earlier.clone();
                about = patterns.to_vec();
                by_server = server;
            }
        }
        let Encoded { mut reply, mut carried } = self.agent.encode(event, &decision);
        if decision.action == Action::Ask && carried < Action::Ask && is_about_limit(&decision) {
            decision = refused_at_limit(decision);
            ceiling.not_asked();
            Encoded { reply, carried } = self.agent.encode(event, &decision);
        }
        if let Some(id) = decision.id.as_ref().filter(|_| carried > Action::Continue) {
            live.journal.delivered(id, &event.name)?;
        }
        let is_handoff = handoff.is_some_and(|handoff| handoff.id == decision.id);
        if let Some(state) = agent.handoff.as_mut().filter(|_| is_handoff) {
            state.delivered = carried >= Action::Nudge;
            if state.delivered {
                live.track(&decision, Vec::new(), agent)?;
            }
        }
        match decision.action {
            _ if is_handoff => {}
            Action::Continue => {}
            Action::Warn => {
                // What is found at a compaction waits for an event that can show it.
                let waits = event.kind == HookKind::Compact && carried == Action::Continue;
                agent.pending.take_if(|pending| pending.decision.action == Action::Warn);
                if waits {
                    agent.pending =
                        Some(UndeliveredMessage { decision, patterns: about, lost: true, by_server });
                    return Ok(reply);
                }
            }
            Action::Nudge | Action::Ask | Action::Block if carried >= Action::Nudge => {
                let arrived = |p: &mut UndeliveredMessage| p.lost && p.decision.id == decision.id;
                if let Some(pending) = agent.pending.take_if(arrived) {
                    self.arrived(agent, &pending)?;
                }
                agent.pending = None;
                if decision.action == Action::Nudge {
                    live.track(&decision, about, agent)?;
                }
            }
            Action::Nudge | Action::Ask | Action::Block => {
                let decision = decision.clone();
                // A person who was told can end the run, so the message counts as given.
                let lost = event.kind == HookKind::Stop && carried == Action::Warn;
                agent.pending = Some(UndeliveredMessage { decision, patterns: about, lost, by_server });
            }
            Action::Stop => {
                agent.pending = None;
                if event.kind == HookKind::PreCall && carried == Action::Continue {
                    agent.let_through = Some(Box::new(decision.clone()));
                }
            }
        }
        if carried >= Action::Block && event.kind == HookKind::PreCall {
            for step in event.refused(&mut agent.seen) {
                self.refuse(step, agent)?;
            }
        } else if decision.action == Action::Block
            && let Some(call) = event.calls.first()
        {
            agent.refuse = Some(StandingRefusal { call: fingerprint(call), decision });
        }
        Ok(reply)
    }

    /// Reports that a message reached the agent after all.
    fn arrived(&self, agent: &mut AgentState, pending: &UndeliveredMessage) -> Result<(), StoreError> {
        let step = Step::delivery(self.session.clone(), pending.decision.step, true);
        match (pending.by_server, agent.server.is_some()) {
            (true, false) => Ok(()),
            (true, true) | (false, false) => self.live.inform(step, agent),
            (false, true) => {
                let server = agent.server.take();
                let informed = self.live.inform(step, agent);
                agent.server = server;
                informed
            }
        }
    }

    /// Adds the result of a call that deloop refused.
    fn refuse(&self, step: Step, agent: &mut AgentState) -> Result<(), StoreError> {
        let planned = self.live.planned(step);
        if let Some(server) = &mut agent.server {
            recent_calls::enter(&mut agent.recent_calls, &planned.step, 0, None);
            server.keep(planned.step);
            return Ok(());
        }
        let observed = self.live.observe(&planned.step)?;
        self.live.enter(self.agent.name(), planned, observed, agent, &self.exemptions).map(drop)
    }
}
