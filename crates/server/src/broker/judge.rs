use std::sync::Arc;

use deloop_detect::Ledger;
use deloop_engine::{Engine, Options};
use deloop_policy::name_task;
use deloop_store::StoreError;
use deloop_types::{Action, Body, Decision, Event, Millis, Mode, Repeats, Step, Usage};

use super::SentStep;
use super::operator_message::{self, add_nudge};
use super::stored_session::StoredSession;
use super::view::ProjectView;
use crate::money::{Money, SessionMoney, SessionTally};
use crate::project::Project;

/// Returns the cost of a request to a model, in dollars.
pub type PriceFn = Arc<dyn Fn(&mut Usage) + Send + Sync>;

/// Decides about steps.
pub(crate) struct Judge {
    pub(crate) engine: Engine,
    pub(crate) price: PriceFn,
}

/// What was decided about a step.
pub(crate) struct JudgedStep {
    pub(crate) decision: Decision,
    pub(crate) events: Vec<Event>,
    /// Whether the decision is a stop that applied before this step and was announced then.
    pub(crate) standing: bool,
    /// What a swarm is told, if the decision is about one: the decision's message before anything for this session alone is
    /// added to it.
    pub(super) for_swarm: Option<String>,
    /// What the session has used so far, if there are events.
    pub(crate) ledger: Option<Ledger>,
    /// The model that the session used last, if there are events.
    pub(crate) model: Option<String>,
    /// What the step spent and found, if anything.
    tally: Option<SessionTally>,
}

impl Judge {
    /// Returns a judge with other options.
    pub(super) fn with_options(&self, options: Options) -> Self {
        Self { engine: self.engine.with_options(options), price: Arc::clone(&self.price) }
    }

    /// Returns the options as they are logged with each step, so that it can be decided about again.
    pub(super) fn terms(&self) -> u8 {
        let Options { mode, attended, .. } = self.engine.options();
        let mode = match mode {
            Mode::Shadow => 0,
            Mode::Nudge => 1,
            Mode::Enforce => 2,
        };
        mode << 1 | u8::from(attended)
    }

    /// Returns a judge with logged options.
    pub(super) fn on_terms(&self, terms: u8) -> Self {
        let mode = match terms >> 1 {
            0 => Mode::Shadow,
            1 => Mode::Nudge,
            _ => Mode::Enforce,
        };
        let roles = self.engine.options().roles;
        self.with_options(Options::new(mode, terms & 1 == 1).with_roles(roles))
    }

    /// Returns whether decisions about these steps touch nothing but their sessions, so that the order of steps of other
    /// sessions doesn't matter.
    pub(super) fn is_alone(&self, steps: &[SentStep<'_>]) -> bool {
        !self.engine.profile().tell_controller && steps.iter().all(|sent| sent.step.swarm.is_none())
    }

    /// Decides about a step that is [complete](Self::complete). The same steps, at the same times, lead to the same decisions and states.
    pub(super) fn decide(
        &self,
        view: &ProjectView<'_>,
        step: &Step,
        now: Millis,
    ) -> Result<JudgedStep, StoreError> {
        let observed = self.engine.observe(view, step)?;
        let (mut decision, mut events) = (observed.decision, observed.events);
        let mut standing = observed.standing;
        let is_of_swarm = decision.deciding().is_some_and(|finding| finding.repeats == Repeats::Swarm);
        let for_swarm = decision.message.clone().filter(|_| is_of_swarm);
        // The log of steps tells a server of its own what it hasn't announced.
        let is_shared = matches!(view, ProjectView::Remote(_)) && decision.action == Action::Stop;
        if let Some(task) = &step.task {
            name_task(task, &mut decision, &mut events);
        }
        let (mut ledger, mut model, mut tally) = (None, None, None);
        if !matches!(step.body, Body::End | Body::State) {
            let concerns = SessionMoney::concerns(step, &decision, &events);
            let note = |state: &mut StoredSession| {
                state.extras.note(step);
                let message = operator_message::take(&mut state.extras, step, &decision);
                if is_shared && !standing {
                    state.extras.stopped(&events, now);
                }
                let overdue = if is_shared { state.extras.take_overdue(now) } else { None };
                let is_news = !events.is_empty() || overdue.is_some();
                let about = is_news.then(|| (*state.session.ledger(), state.extras.model()));
                let tally = concerns.then(|| state.extras.money.observe(step, &decision, &events, now));
                (message, about, overdue, tally)
            };
            let (message, about, overdue, spent) = view.change(&self.engine, &step.session, note)?;
            if let Some(overdue) = overdue {
                events.splice(0..0, overdue);
                standing = false;
            }
            if let Some(message) = message {
                add_nudge(&mut decision, message, "operator", "deloop passed on a message from the operator");
            }
            tally = spent;
            if let Some(about) = about {
                (ledger, model) = (Some(about.0), about.1);
            }
        }
        Ok(JudgedStep { decision, events, standing, for_swarm, ledger, model, tally })
    }

    /// Counts what steps spent and found, in order, and stops sessions whose budget is used up.
    pub(super) fn charge(
        &self,
        money: &Money,
        project: &Project,
        steps: &[SentStep<'_>],
        judged: &mut [JudgedStep],
        now: Millis,
    ) {
        for (sent, judged) in steps.iter().zip(judged) {
            let step = &sent.step;
            if let Some(tally) = judged.tally.take() {
                let verdicts = money.record(project, &step.session, &tally, now);
                let index = judged.decision.step;
                judged.events.extend(verdicts.iter().map(|verdict| verdict.event(step, index)));
            }
            let verdict = money.standing(project, &step.session, now);
            let was_stopped = money.note_stop(project, &step.session, verdict.is_some());
            if let Some(verdict) = verdict {
                judged.standing |= was_stopped;
                let decision = std::mem::take(&mut judged.decision);
                judged.decision = verdict.stop(step, decision, self.engine.options().mode);
            }
        }
    }

    /// Adds the time and the cost if the step has none.
    pub(super) fn complete(&self, step: &mut Step, now: Millis) {
        step.ts = step.ts.or(Some(now));
        if let Body::Usage(usage) = &mut step.body {
            (self.price)(usage);
        }
    }
}
