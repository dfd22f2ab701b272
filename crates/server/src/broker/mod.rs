//! Decides about steps and keeps sessions and swarms.

mod local;
mod session_report;
mod step_log;
mod stored_session;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use deloop_detect::SwarmState;
use deloop_engine::{Checkpoint, Engine, RestoreError};
use deloop_formats::read_step;
use deloop_policy::name_task;
use deloop_store::{Bounds, Store, StoreError};
use deloop_types::{Body, Decision, Event, Millis, Mode, SessionId, Step, Usage};

use crate::money::{BudgetLimits, BudgetVerdict, Money, SessionMoney};
use crate::project::Project;
use crate::reports::{self, DailyReport, Rise};
use crate::shared::{ServerNotice, TellFn};
use local::{LocalStore, LocalView};
use session_report::SessionReport;
use step_log::{LoggedStep, entries};

/// Returns the cost of a request to a model, in dollars.
pub type CostFn = Box<dyn Fn(&Usage) -> Option<f64> + Send + Sync>;

/// How much a server keeps. A session takes a few KiB.
const BOUNDS: Bounds =
    Bounds { sessions: 1_000_000, idle: 7 * 24 * 3_600_000, swarms: 1_000, decisions: 0, bytes: 16 << 30 };

/// Decides about the steps of many sessions. All methods block.
pub struct Broker {
    engine: Engine,
    store: LocalStore,
    cost: CostFn,
    mode: Mode,
    off: bool,
    tell: TellFn,
}

/// What a server does about money.
#[derive(Debug, Clone, Default)]
pub struct MoneySettings {
    /// What sessions and projects may spend.
    pub budgets: BudgetLimits,
    /// The mode that caps what is done when a budget is used up.
    pub mode: Mode,
}

/// A step, and its text as the client sent it.
pub(crate) struct SentStep<'a> {
    pub(crate) step: Step,
    pub(crate) json: &'a [u8],
}

/// What was decided about a step.
struct Decided {
    decision: Decision,
    events: Vec<Event>,
    /// The budget that stops the session.
    stop: Option<BudgetVerdict>,
}

impl Broker {
    /// Opens the database file; creates it if it doesn't exist. With `off`, every decision is `continue`.
    ///
    /// # Errors
    /// When the file can't be created, read or written, was written by a later release, or is another server's.
    pub fn open(
        file: &Path,
        engine: Engine,
        cost: CostFn,
        money: MoneySettings,
        off: bool,
        now: Millis,
        tell: TellFn,
    ) -> Result<Self, StoreError> {
        let MoneySettings { budgets, mode } = money;
        let replay = |store: &LocalStore, log: &[u8]| replay(store, &engine, &cost, log);
        let store = LocalStore::open(file, BOUNDS, budgets, &engine, now, replay)?;
        Ok(Self { engine, store, cost, mode, off, tell })
    }

    /// Decides about the steps of a project, in order. Either all of them are stored or, when this fails, none.
    pub(crate) fn observe(
        &self,
        project: &Project,
        steps: &[SentStep<'_>],
        now: Millis,
    ) -> Result<Vec<Decision>, StoreError> {
        let view = self.store.view(project, now);
        let mut log = self.store.turn();
        for sent in steps {
            view.preload(&self.engine, &sent.step.session)?;
        }
        let logged =
            steps.iter().map(|sent| LoggedStep { now, terms: 0, project: project.as_str(), json: sent.json });
        log.append(logged).map_err(|error| self.store.log_failed(error))?;
        let decided: Result<Vec<Decided>, StoreError> =
            steps.iter().map(|sent| decide(&view, &self.engine, &self.cost, &sent.step, now)).collect();
        let mut decided = decided?;
        for (sent, decided) in steps.iter().zip(&mut decided) {
            if let Some(verdict) = decided.stop.take() {
                let decision = std::mem::take(&mut decided.decision);
                decided.decision = verdict.stop(&sent.step, decision, self.mode);
            }
        }
        if let Err(error) = self.store.write_back_if_due(&mut log, &self.engine, now) {
            // The steps are in the log, so the next write may be the one that succeeds.
            (self.tell)(ServerNotice::Failed(error.to_string()));
        }
        drop(log);
        if self.off {
            return Ok(decided
                .into_iter()
                .map(|d| Decision::go_on(d.decision.session, d.decision.step))
                .collect());
        }
        Ok(decided.into_iter().map(|decided| decided.decision).collect())
    }

    /// Returns the names of a project's sessions after `after`, in order.
    pub(crate) fn sessions(
        &self,
        project: &Project,
        after: Option<&str>,
        limit: u64,
        now: Millis,
    ) -> Result<Vec<SessionId>, StoreError> {
        self.write_back(now)?;
        self.store.view(project, now).sessions_after(after, limit)
    }

    pub(crate) fn session_count(&self) -> Result<u64, StoreError> {
        self.store.session_count()
    }

    pub(crate) fn session(
        &self,
        project: &Project,
        session: &SessionId,
        now: Millis,
    ) -> Result<Option<SessionReport>, StoreError> {
        SessionReport::of(&self.engine, &self.store.view(project, now), session)
    }

    /// Deletes the state of a session. Returns whether there was one.
    pub(crate) fn reset(
        &self,
        project: &Project,
        session: &SessionId,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.change(project, now, |view| {
            let known = view.see(&self.engine, session, |_| ())?.is_some();
            view.forget(session)?;
            Ok(known)
        })
    }

    pub(crate) fn checkpoint(
        &self,
        project: &Project,
        session: &SessionId,
        now: Millis,
    ) -> Result<Option<Checkpoint>, RestoreError> {
        self.engine.checkpoint(&self.store.view(project, now), session)
    }

    /// Replaces the state of a session.
    pub(crate) fn restore(
        &self,
        project: &Project,
        session: &SessionId,
        checkpoint: Checkpoint,
        now: Millis,
    ) -> Result<(), RestoreError> {
        self.change(project, now, |view| self.engine.restore(view, session, checkpoint))
    }

    pub(crate) fn swarms(&self, project: &Project, now: Millis) -> Result<Vec<String>, StoreError> {
        self.write_back(now)?;
        let mut swarms = self.store.view(project, now).swarms()?;
        swarms.sort();
        Ok(swarms)
    }

    pub(crate) fn swarm(
        &self,
        project: &Project,
        swarm: &str,
        now: Millis,
    ) -> Result<Option<SwarmState>, StoreError> {
        self.engine.swarm_state(&self.store.view(project, now), swarm)
    }

    /// Deletes the state of a swarm. Returns whether there was one.
    pub(crate) fn clear_swarm(
        &self,
        project: &Project,
        swarm: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.change(project, now, |view| {
            let known = view.look_swarm(swarm, |_| ())?.is_some();
            view.forget_swarm(swarm)?;
            Ok(known)
        })
    }

    /// Returns what sessions spend, after writing everything to the database.
    pub(crate) fn money(&self, now: Millis) -> Result<&Money, StoreError> {
        self.write_back(now)?;
        Ok(self.store.money())
    }

    /// Returns yesterday's report to the one server that asks first, from five past midnight (UTC).
    ///
    /// # Errors
    /// When the shared records fail.
    pub fn due_report(&self, now: Millis) -> Result<Option<DailyReport>, StoreError> {
        reports::due(self.money(now)?.records(), now)
    }

    /// Returns the agents that loop more often this week, each once over all servers.
    ///
    /// # Errors
    /// When the shared records fail.
    pub fn rises(&self, now: Millis) -> Result<Vec<Rise>, StoreError> {
        reports::rises(self.money(now)?.records(), now)
    }

    /// Returns the counts of money in the text format of Prometheus.
    pub(crate) fn money_metrics(&self) -> String {
        let money = self.store.money();
        money.counters.text(money.backlog())
    }

    /// Writes everything to the database.
    pub(crate) fn write_back(&self, now: Millis) -> Result<(), StoreError> {
        self.store.write_back(&mut self.store.turn(), &self.engine, now)
    }

    /// Makes a change that isn't a step. It is in the database before this returns.
    fn change<R, E: From<StoreError>>(
        &self,
        project: &Project,
        now: Millis,
        work: impl FnOnce(&LocalView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut log = self.store.turn();
        let done = work(&self.store.view(project, now))?;
        self.store.write_back(&mut log, &self.engine, now)?;
        Ok(done)
    }
}

/// Decides about a step.
fn decide(
    view: &LocalView<'_>,
    engine: &Engine,
    cost: &CostFn,
    step: &Step,
    now: Millis,
) -> Result<Decided, StoreError> {
    let mut step = std::borrow::Cow::Borrowed(step);
    if step.ts.is_none() {
        step.to_mut().ts = Some(now);
    }
    if let Body::Usage(usage) = &step.body
        && usage.cost_usd.is_none()
        && let Some(dollars) = cost(usage)
        && let Body::Usage(usage) = &mut step.to_mut().body
    {
        usage.cost_usd = Some(dollars);
    }
    let observed = engine.observe(view, &step)?;
    let (mut decision, mut events) = (observed.decision, observed.events);
    if let Some(task) = &step.task {
        name_task(task, &mut decision, &mut events);
    }
    let stop = charge(view, engine, &step, &decision, &mut events, now)?;
    Ok(Decided { decision, events, stop })
}

/// Counts what a step spent and found. Returns the budget that stops its session, if one does.
fn charge(
    view: &LocalView<'_>,
    engine: &Engine,
    step: &Step,
    decision: &Decision,
    events: &mut Vec<Event>,
    now: Millis,
) -> Result<Option<BudgetVerdict>, StoreError> {
    let (money, project) = (view.money(), view.project());
    if SessionMoney::concerns(step, decision, events) {
        let tally = view
            .change(engine, &step.session, |state| state.extras.money.observe(step, decision, events, now))?;
        let verdicts = money.record(project, &step.session, &tally, now);
        events.extend(verdicts.iter().map(|verdict| verdict.event(step, decision.step)));
    }
    Ok(money.standing(project, &step.session, now))
}

/// Decides again about the steps that were answered but aren't in the database.
fn replay(store: &LocalStore, engine: &Engine, cost: &CostFn, log: &[u8]) {
    for logged in entries(log) {
        let (Ok(project), Ok(step)) = (Project::parse(logged.project), read_step(logged.json)) else {
            continue;
        };
        let view = store.view(&project, logged.now);
        // A step that made the process panic must not do so at every start.
        let _ = catch_unwind(AssertUnwindSafe(|| decide(&view, engine, cost, &step, logged.now)));
    }
}
