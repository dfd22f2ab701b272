use std::sync::Arc;

use deloop_detect::Ledger;
use deloop_engine::{Engine, Options};
use deloop_policy::name_task;
use deloop_store::StoreError;
use deloop_types::{Action, Body, Decision, Event, Millis, Mode, Repeats, Step, Usage};

use super::operator_message::{self, add_nudge};
use super::step_log::LoggedStep;
use super::step_owner::{FOREIGN_SESSION, StepOwner};
use super::stored_session::StoredSession;
use super::view::ProjectView;
use super::{SentStep, StepAnswer};
use crate::money::{Money, SessionMoney, SessionTally};
use crate::project::Project;

/// Returns the cost of a request to a model, in dollars.
pub type PriceFn = Arc<dyn Fn(&mut Usage) + Send + Sync>;

/// Decides about steps.
pub(crate) struct Judge {
    pub(crate) engine: Engine,
    pub(crate) price: PriceFn,
    /// The most that one request can cost, in dollars.
    pub(crate) request_usd: f64,
    /// Who sends the steps.
    pub(super) owner: StepOwner,
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
    /// Whether the step lifted a stop.
    pub(crate) lifted: bool,
    /// The cost that the step reported, in dollars, if it is so high that people must know.
    pub(crate) reported_usd: Option<f64>,
    /// What the step spent and found, if anything.
    tally: Option<SessionTally>,
    /// Whether the step's session belongs to somebody else, so that nothing was decided.
    is_foreign: bool,
}

impl JudgedStep {
    /// Creates one that nothing follows from.
    pub(super) fn of(decision: Decision) -> Self {
        Self {
            decision,
            events: Vec::new(),
            standing: false,
            for_swarm: None,
            ledger: None,
            model: None,
            lifted: false,
            reported_usd: None,
            tally: None,
            is_foreign: false,
        }
    }

    /// Creates the result of a step of a session that belongs to somebody else.
    fn foreign(step: &Step) -> Self {
        Self { is_foreign: true, ..Self::of(Decision::go_on(step.session.clone(), 0)) }
    }

    /// Returns whether the step was refused, so that nothing follows from it.
    pub(crate) fn is_refused(&self) -> bool {
        self.is_foreign
    }

    /// Returns what the sender is told.
    pub(crate) fn answer(self) -> StepAnswer {
        if self.is_foreign { Err(FOREIGN_SESSION) } else { Ok(self.decision) }
    }
}

/// More than this, in dollars, isn't told apart.
const MOST_OVER: f64 = 1e9;
/// In the terms of a step: its sender doesn't lift stops.
const KEEPS_STOPS: u8 = 1 << 3;
/// In the terms of a step: its sender may enter sessions of others.
const ENTERS_ALL: u8 = 1 << 4;

impl Judge {
    /// Returns a judge with other options.
    pub(super) fn with_options(&self, options: Options) -> Self {
        let price = Arc::clone(&self.price);
        Self {
            engine: self.engine.with_options(options),
            price,
            request_usd: self.request_usd,
            owner: self.owner.clone(),
        }
    }

    /// Returns a judge of the steps of this sender.
    pub(super) fn for_owner(self, owner: StepOwner) -> Self {
        Self { owner, ..self }
    }

    /// Returns the options as they are logged with each step, so that it can be decided about again.
    pub(super) fn terms(&self) -> u8 {
        let Options { mode, attended, keeps_stops, .. } = self.engine.options();
        let mode = match mode {
            Mode::Shadow => 0,
            Mode::Nudge => 1,
            Mode::Enforce => 2,
        };
        let of_sender = |term: u8, applies: bool| if applies { term } else { 0 };
        mode << 1
            | u8::from(attended)
            | of_sender(KEEPS_STOPS, keeps_stops)
            | of_sender(ENTERS_ALL, self.owner.enters_all)
    }

    /// Returns the logged project of a step, and a judge with its logged options and owner.
    pub(super) fn of_logged<'a>(&self, logged: &LoggedStep<'a>) -> (&'a str, Self) {
        let terms = logged.terms;
        let (project, owner) = StepOwner::from_logged(logged.project, terms & ENTERS_ALL != 0);
        let mode = match terms >> 1 & 0b11 {
            0 => Mode::Shadow,
            1 => Mode::Nudge,
            _ => Mode::Enforce,
        };
        let roles = self.engine.options().roles;
        let options = Options::new(mode, terms & 1 == 1).with_roles(roles);
        let options = if terms & KEEPS_STOPS == 0 { options } else { options.with_stops_kept() };
        (project, self.with_options(options).for_owner(owner))
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
        if self.owner.is_kept_out(view, &self.engine, &step.session)? {
            return Ok(JudgedStep::foreign(step));
        }
        let step = &*self.owner.with_own_controller(view, &self.engine, step)?;
        let observed = self.engine.observe(view, step)?;
        let (mut decision, mut events, lifted) = (observed.decision, observed.events, observed.lifted);
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
                state.extras.claim(self.owner.group());
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
        Ok(JudgedStep {
            events,
            standing,
            for_swarm,
            ledger,
            model,
            lifted,
            tally,
            ..JudgedStep::of(decision)
        })
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
        let accepted =
            steps.iter().zip(judged).filter(|(sent, judged)| !sent.is_refused() && !judged.is_refused());
        for (sent, judged) in accepted {
            let step = &sent.step;
            if let Some(tally) = judged.tally.take() {
                let verdicts = money.record(project, &step.session, &tally, now);
                let index = judged.decision.step;
                judged.events.extend(verdicts.iter().map(|verdict| verdict.event(step, index)));
            }
            // Behind the verdicts: a step has one alert, about its first event that has one.
            if sent.over_usd > 0.0 {
                let of = (project, self.owner.group());
                let event = money.over_limit(of, step, (sent.over_usd, judged.decision.step), now);
                judged.reported_usd = event.is_some().then_some(sent.over_usd + self.request_usd);
                judged.events.extend(event);
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

    /// Adds the time and the cost if the step has none, and limits the cost to what a request can cost. Returns how many
    /// dollars more it reported.
    pub(super) fn complete(&self, step: &mut Step, now: Millis) -> f64 {
        step.ts = step.ts.or(Some(now));
        let Body::Usage(usage) = &mut step.body else { return 0.0 };
        (self.price)(usage);
        let Some(reported) = usage.cost_usd else { return 0.0 };
        // `max` returns 0 for what isn't a number.
        let reported = reported.max(0.0);
        let counted = reported.min(self.request_usd);
        usage.cost_usd = Some(counted);
        (reported - counted).min(MOST_OVER)
    }
}
