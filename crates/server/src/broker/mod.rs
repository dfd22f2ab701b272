//! Decides about steps and keeps sessions and swarms.

mod declared_swarms;
mod local;
mod operator_message;
mod session_report;
mod step_log;
mod stored_session;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use deloop_detect::SwarmState;
use deloop_engine::{Checkpoint, Engine, RestoreError};
use deloop_formats::read_step;
use deloop_policy::name_task;
use deloop_store::{Bounds, MemoryRecords, SqliteRecords, Store, StoreError};
use deloop_types::{Body, Decision, Event, Millis, SessionId, Step, Usage};
use serde_json::json;

use crate::events::{EventHub, ServerEvent};
use crate::project::Project;
use crate::requester::Requester;
use crate::shared::{ServerNotice, TellFn};
use declared_swarms::DeclaredSwarms;
use local::{LocalStore, LocalView};
use operator_message::add_nudge;
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
    swarms: DeclaredSwarms,
    events: EventHub,
    cost: CostFn,
    off: bool,
    tell: TellFn,
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
        off: bool,
        now: Millis,
        tell: TellFn,
    ) -> Result<Self, StoreError> {
        let replay = |store: &LocalStore, log: &[u8]| replay(store, &engine, &cost, log);
        let store = LocalStore::open(file, BOUNDS, &engine, now, replay)?;
        let records = Arc::new(SqliteRecords::new(Arc::clone(store.sqlite()))?);
        let swarms = DeclaredSwarms::new(records, false);
        // One server's events needn't outlive it.
        let events = EventHub::start(Arc::new(MemoryRecords::default()))
            .map_err(|error| StoreError::database(file, error))?;
        Ok(Self { engine, store, swarms, events, cost, off, tell })
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
        for (sent, decided) in steps.iter().zip(&mut decided) {
            self.follow_up(project, &sent.step, decided, now);
        }
        Ok(decided.into_iter().map(|decided| decided.decision).collect())
    }

    /// Tells everybody who must know of a decision. What fails here is reported and changes nothing else.
    fn follow_up(&self, project: &Project, step: &Step, decided: &mut Decided, now: Millis) {
        match self.swarms.follow(project, step, &mut decided.decision, now) {
            Ok(Some(declared)) => self.events.publish(
                ServerEvent::new("swarm.declared", project, now)
                    .with("session", json!(step.session))
                    .with("swarm", json!(declared.swarm))
                    .with("tool", json!(declared.tool))
                    .with("count", json!(declared.count))
                    .with("workers", json!(declared.workers))
                    .with("reason", json!(declared.message)),
            ),
            Ok(None) => {}
            Err(error) => (self.tell)(ServerNotice::Failed(error.to_string())),
        }
        for event in &decided.events {
            self.events.publish(ServerEvent::of(event, project));
        }
    }

    /// Notes what a person or another program did with a session or a swarm.
    fn operated(&self, requester: &Requester, action: &str, subject: (&str, &str), now: Millis) {
        let (kind, name) = subject;
        self.events.publish(
            ServerEvent::new(action, &requester.project, now)
                .with(kind, json!(name))
                .with("actor", json!(&*requester.actor)),
        );
    }

    /// Returns what happens on all servers.
    pub(crate) fn events(&self) -> &EventHub {
        &self.events
    }

    /// Sends a message to the agent of a session. Returns whether there is such a session.
    pub(crate) fn send(
        &self,
        requester: &Requester,
        session: &SessionId,
        text: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let known = self.change(&requester.project, now, |view| {
            let known = view.see(&self.engine, session, |_| ())?.is_some();
            if known {
                view.change(&self.engine, session, |state| state.extras.send(text.to_owned()))?;
            }
            Ok::<_, StoreError>(known)
        })?;
        if known {
            self.operated(requester, "operator.message", ("session", session.as_str()), now);
        }
        Ok(known)
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
        requester: &Requester,
        session: &SessionId,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let known = self.change(&requester.project, now, |view| {
            let known = view.see(&self.engine, session, |_| ())?.is_some();
            view.forget(session)?;
            Ok::<_, StoreError>(known)
        })?;
        self.operated(requester, "operator.reset", ("session", session.as_str()), now);
        Ok(known)
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
        requester: &Requester,
        session: &SessionId,
        checkpoint: Checkpoint,
        now: Millis,
    ) -> Result<(), RestoreError> {
        self.change(&requester.project, now, |view| self.engine.restore(view, session, checkpoint))?;
        self.operated(requester, "operator.restore", ("session", session.as_str()), now);
        Ok(())
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
        requester: &Requester,
        swarm: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let known = self.change(&requester.project, now, |view| {
            let known = view.look_swarm(swarm, |_| ())?.is_some();
            view.forget_swarm(swarm)?;
            Ok::<_, StoreError>(known)
        })?;
        self.swarms.clear(&requester.project, swarm, now)?;
        self.operated(requester, "operator.clear_swarm", ("swarm", swarm), now);
        Ok(known)
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
    if !matches!(step.body, Body::End | Body::State) {
        let message = view.change(engine, &step.session, |state| {
            operator_message::take(&mut state.extras, &step, &decision)
        })?;
        if let Some(message) = message {
            add_nudge(&mut decision, message, "deloop passed on a message from the operator");
        }
    }
    Ok(Decided { decision, events })
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
