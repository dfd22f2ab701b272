use deloop_engine::{Engine, Observed, Options, Session};
use deloop_store::{Store, StoreError};
use deloop_types::{Action, Body, Decision, Event, Millis, Mode, SessionId, Step, Usage, limits};

use crate::embedding::{AwaitedEmbedding, EmbeddingSource};
use crate::exemptions::{Exemptions, Reason};
use crate::holdout::HoldoutSide;
use crate::journal::{DecisionOrigin, Journal, SessionSource};
use crate::outcome_tracking::{NudgeOutcome, Pattern, TrackedNudge};
use crate::planned_steps::{Audience, PlannedStep};
use crate::remote::RemoteDecisions;
use crate::session_state::{AgentState, SessionState};
use crate::transcript::OpenTranscript;
use crate::{handoff, recent_calls, running_calls};

/// The context of an event or a step.
#[derive(Clone)]
pub struct EventContext<'a> {
    /// The mode, and what the caller can do.
    pub options: Options,
    /// The current time.
    pub now: Millis,
    /// The `deloop run` that started the agent.
    pub run: Option<&'a str>,
    /// What the main agent of the run's first session must know of the attempt before it. Only used together with
    /// `run`.
    pub handoff: Option<&'a str>,
    /// Fingerprints of the calls that the attempt before it repeated, as in [`RecentCall::print`](crate::RecentCall::print).
    pub loop_calls: &'a [String],
    /// The swarm: a group of workers with one goal, across sessions.
    pub swarm: Option<&'a str>,
    /// Whether the subagents of a session form a swarm of their own. A swarm that is named takes precedence.
    pub subagent_swarms: bool,
    /// The session that started this one, if the environment names it.
    pub controller: Option<&'a str>,
    /// The folder that the agent works in, if its events don't name it.
    pub project: Option<&'a str>,
    /// Identifies the project that the agent works on, for steps that don't name one.
    pub project_id: Option<&'a str>,
    /// Returns the project that a folder belongs to, by the project's folder.
    pub project_of: fn(&str) -> String,
    /// Provides embeddings, if the profile compares turns by them.
    pub embeddings: Option<&'a dyn EmbeddingSource>,
    /// Decides in place of the engine, if the user configured a server.
    pub remote: Option<&'a dyn RemoteDecisions>,
    /// A notice about the configuration for the user.
    pub notice: Option<&'a str>,
    /// Fills in what a request cost and how much its tokens weigh, if the agent doesn't report it.
    pub price: &'a dyn Fn(&mut Usage),
    /// Opens a transcript. The path comes from the agent, so it isn't trusted.
    pub open: OpenTranscript,
}

/// Handles events and steps of running sessions.
pub struct Live<'a, S, J> {
    /// Makes the decisions.
    pub engine: &'a Engine,
    /// Stores the engine's state.
    pub store: &'a S,
    /// Stores decisions and delivery state.
    pub journal: &'a J,
    /// The context of this event.
    pub context: EventContext<'a>,
}

impl<S: Store<Session>, J: Journal> Live<'_, S, J> {
    /// Reads the delivery state and exemptions of a session. Pardons since the last event take effect here.
    pub(crate) fn begin(&self, source: &SessionSource) -> Result<(SessionState, Exemptions), StoreError> {
        let now = self.context.now;
        self.journal.note_source(source, now)?;
        let mut state = self.state(&source.session)?;
        let exemptions = Exemptions::of(self.journal, &source.session, now)?;
        if exemptions.is_news() {
            state.put_off();
            self.journal.pardons_known(&source.session)?;
        }
        Ok((state, exemptions))
    }

    /// Stores the delivery state for the session's next event.
    pub(crate) fn end(&self, session: &SessionId, state: &SessionState) -> Result<(), StoreError> {
        let text = serde_json::to_string(state).map_err(StoreError::encode)?;
        self.journal.set_session_state(session.as_str(), self.context.now, &text)
    }

    /// Returns the delivery state of a session.
    pub(crate) fn state(&self, session: &str) -> Result<SessionState, StoreError> {
        let text = self.journal.session_state(session, self.context.now)?;
        match text.map(|text| (SessionState::read(&text), text)) {
            None => Ok(SessionState::default()),
            Some((Ok(state), _)) => Ok(state),
            Some((Err(error), text)) => {
                self.journal.keep_unreadable(session, &text, &StoreError::decode(error))?;
                Ok(SessionState::default())
            }
        }
    }

    /// Starts over after a pause, or records that there is one. Returns whether to report that a person intervened.
    #[must_use]
    pub(crate) fn pause(exemptions: &Exemptions, agent: &mut AgentState) -> bool {
        if exemptions.paused {
            agent.put_off = true;
            return false;
        }
        let resumes = std::mem::take(&mut agent.put_off);
        if resumes {
            agent.forget_decisions();
        }
        resumes
    }

    /// Decides about a planned step of which the server's decision, if it made one, is in `answers`. Returns `None` if
    /// the decision has no consequences.
    pub(crate) fn decide(
        &self,
        program: &str,
        planned: PlannedStep,
        answers: &mut Option<std::vec::IntoIter<Decision>>,
        agent: &mut AgentState,
        exemptions: &Exemptions,
    ) -> Result<Option<(Decision, Vec<Event>)>, StoreError> {
        let audience = planned.audience;
        let answer = match audience {
            Audience::Engine => None,
            _ => answers.as_mut().and_then(Iterator::next),
        };
        let Some(decision) = answer else {
            return match audience {
                Audience::Server => Ok(None),
                _ if planned.of_agent => {
                    let observed = self.observe(&planned.step)?;
                    self.enter(program, planned, observed, agent, exemptions).map(Some)
                }
                _ => self.observe(&planned.step).map(|_| None),
            };
        };
        if audience == Audience::Both {
            self.observe(&planned.step)?;
        }
        // The server may have a message that isn't about this step.
        let informed = !planned.of_agent
            && decision.uncapped().action == Action::Continue
            && decision.notices.is_empty();
        let observed = Observed::elsewhere(decision);
        let entered = match informed {
            true => (observed.decision, observed.events),
            false => self.enter(program, planned, observed, agent, exemptions)?,
        };
        if let Some(server) = &mut agent.server {
            server.decided(&entered.0);
        }
        Ok((!informed).then_some(entered))
    }

    /// Returns the mode that applies to what the engine decides: the stricter one of the caller's and the server's.
    pub(crate) fn stricter(&self, server: Option<Mode>) -> Options {
        let mut options = self.context.options;
        options.mode = options.mode.max(server.unwrap_or(options.mode));
        options
    }

    /// Records the decision about an agent's step. Exempt decisions become `continue`.
    pub(crate) fn enter(
        &self,
        program: &str,
        planned: PlannedStep,
        observed: Observed,
        agent: &mut AgentState,
        exemptions: &Exemptions,
    ) -> Result<(Decision, Vec<Event>), StoreError> {
        let PlannedStep { step, awaited, .. } = planned;
        let Observed { decision, judged, events, episode, .. } = observed;
        if matches!(step.body, Body::Turn(_)) {
            agent.awaited = awaited.map(|awaited| awaited.at(decision.step));
        }
        recent_calls::enter(&mut agent.recent_calls, &step, decision.step, judged.as_ref());
        running_calls::enter(&mut agent.running, &step, self.context.now);
        if let Some(known) = agent.nudge.as_mut().and_then(|nudge| nudge.enter(&step, &decision))
            && let Some(nudge) = agent.nudge.take()
        {
            self.journal.came_of(&nudge.id, known.as_str())?;
        }
        let full = decision.uncapped();
        if full.action == Action::Continue {
            return Ok((decision, events));
        }
        let calls = recent_calls::about(&agent.recent_calls, &step, decision.step);
        let reason = exemptions.reason(&decision, &calls);
        let side = match reason {
            None => HoldoutSide::of(&step, &decision, episode, self.engine.profile().holdout),
            Some(_) => None,
        };
        let held_out = side == Some(HoldoutSide::Holdout);
        let known = held_out && agent.held_out == episode;
        if reason != Some(Reason::Pardoned) && !known {
            let origin = DecisionOrigin {
                subagent: step.agent.as_deref(),
                held: reason.map(|_| "paused").or(held_out.then_some(HoldoutSide::Holdout.as_str())),
                recent_calls: &recent_calls::json(&agent.recent_calls),
                episode,
                side: side.map(HoldoutSide::as_str),
                ..DecisionOrigin::new(program, self.context.now, self.context.run)
            };
            self.journal.record(&decision, &origin)?;
        }
        if held_out {
            self.hold_out(&decision, episode, agent)?;
        } else if reason.is_none() {
            return Ok((decision, events));
        } else if full.action == Action::Stop {
            // The engine would repeat it at every step.
            self.intervention(&step.session, agent)?;
        }
        let mut exempt = Decision::go_on(step.session, decision.step);
        exempt.notices = decision.notices;
        Ok((exempt, Vec::new()))
    }

    /// Returns the step that adds the embedding of the agent's latest turn, if it has become ready.
    pub(crate) fn arrived_embedding(&self, session: &SessionId, agent: &mut AgentState) -> Option<Step> {
        let step = agent.awaited?.arrived(session, agent.name(), self.context.embeddings?)?;
        agent.awaited = None;
        Some(step)
    }

    /// Tracks the outcome of a delivered nudge.
    pub(crate) fn track(
        &self,
        decision: &Decision,
        patterns: Vec<Pattern>,
        agent: &mut AgentState,
    ) -> Result<(), StoreError> {
        let Some(id) = decision.id.as_deref() else { return Ok(()) };
        if agent.nudge.as_ref().is_some_and(|nudge| nudge.id == id) {
            return Ok(());
        }
        let tracked = match decision.rung.as_deref() {
            Some(handoff::RUNG) => TrackedNudge::of_calls(id, self.context.loop_calls),
            _ => TrackedNudge::new(id, patterns),
        };
        let before = std::mem::replace(&mut agent.nudge, tracked);
        before.map_or(Ok(()), |nudge| self.outcome(&nudge, NudgeOutcome::Unknown))
    }

    /// Ends the tracking of all nudges of a session.
    pub(crate) fn close(&self, state: &mut SessionState, then: NudgeOutcome) -> Result<(), StoreError> {
        let nudges: Vec<TrackedNudge> = state.nudges().collect();
        nudges.iter().try_for_each(|nudge| self.outcome(nudge, then))
    }

    pub(crate) fn outcome(&self, nudge: &TrackedNudge, then: NudgeOutcome) -> Result<(), StoreError> {
        self.journal.came_of(&nudge.id, nudge.close(then).as_str())
    }

    fn intervention(&self, session: &SessionId, agent: &mut AgentState) -> Result<(), StoreError> {
        self.inform(Step::intervention(session.clone()), agent)
    }

    /// Informs whoever decides about this agent: the engine now, or the server with its next request.
    pub(crate) fn inform(&self, mut step: Step, agent: &mut AgentState) -> Result<(), StoreError> {
        step.agent = agent.name().map(str::to_owned);
        let step = self.complete(step);
        match &mut agent.server {
            Some(server) => server.keep(step),
            None => drop(self.observe(&step)?),
        }
        Ok(())
    }

    /// Returns a step of an agent, ready for its decision.
    pub(crate) fn planned(&self, mut step: Step) -> PlannedStep {
        let awaited = self.context.embeddings.and_then(|source| AwaitedEmbedding::begin(&mut step, source));
        let step = self.complete(step);
        PlannedStep { step, audience: Audience::Decider, of_agent: true, awaited }
    }

    /// Adds what the context knows to a step.
    pub(crate) fn complete(&self, mut step: Step) -> Step {
        step.ts = Some(self.context.now);
        if step.swarm.is_none() {
            let own = || self.context.subagent_swarms && step.agent.is_some();
            let named = self.context.swarm.map(str::to_owned);
            step.swarm = named.or_else(|| own().then(|| subagent_swarm(&step.session)));
        }
        if step.controller.is_none() {
            step.controller = self.context.controller.map(SessionId::from);
        }
        if step.project.is_none() {
            step.project = self.context.project_id.map(str::to_owned);
        }
        if let Body::Usage(usage) = &mut step.body {
            (self.context.price)(usage);
        }
        step
    }

    /// Lets the engine decide about a complete step.
    pub(crate) fn observe(&self, step: &Step) -> Result<Observed, StoreError> {
        let observed = self.engine.observe(self.store, step)?;
        if step.body == Body::End {
            self.forget_subagents(&step.session)?;
        }
        Ok(observed)
    }

    /// Clears the swarm of a session's subagents, because the session has ended.
    pub(crate) fn forget_subagents(&self, session: &SessionId) -> Result<(), StoreError> {
        match self.context.subagent_swarms {
            true => self.store.forget_swarm(&subagent_swarm(session)),
            false => Ok(()),
        }
    }
}

/// Returns the name of the swarm that the subagents of a session form.
pub(crate) fn subagent_swarm(session: &SessionId) -> String {
    limits::name(format!("session:{session}"))
}
