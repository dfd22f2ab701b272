//! Decides about steps and keeps sessions and swarms, in one SQLite file.

use std::path::Path;

use deloop_detect::{Ledger, SwarmState};
use deloop_engine::{Checkpoint, Engine, LoopDetectionState, RestoreError, Session};
use deloop_live::{DecisionOrigin, Journal, SqliteJournal};
use deloop_policy::{ReachedRung, name_task};
use deloop_store::{Bounds, Store, StoreError};
use deloop_types::{Body, Decision, Millis, Mode, SessionId, Step, Usage};
use serde::Serialize;

use crate::caller_options::CallerOptions;
use crate::server_time::ServerTime;

/// Returns the cost of a request to a model, in dollars.
pub type CostFn = Box<dyn Fn(&Usage) -> Option<f64> + Send + Sync>;

/// The name of the server in its journal.
const PROGRAM: &str = "serve";
/// The log of the database is moved into the file once it has this many pages of 4 KiB.
const LOG_PAGES: u32 = 4_000;
/// How much a server keeps. A session takes a few KiB.
const BOUNDS: Bounds =
    Bounds { sessions: 100_000, idle: 7 * 24 * 3_600_000, swarms: 1_000, decisions: 100_000, bytes: 4 << 30 };

/// Decides about the steps of many sessions. All methods block.
pub struct Broker {
    engine: Engine,
    journal: SqliteJournal,
    cost: CostFn,
    off: bool,
}

/// What is stored of a session.
#[derive(Serialize)]
pub(crate) struct SessionReport {
    session: SessionId,
    steps: u64,
    ledger: Ledger,
    controller: Option<SessionId>,
    /// The stop that ended it; null while it goes on.
    ended: Option<Decision>,
    /// What the detectors of repeated calls know of the main agent; null if the profile uses none.
    loop_detection_state: Option<LoopDetectionState>,
    agents: Vec<SessionAgent>,
}

/// What is stored of one agent of a session.
#[derive(Serialize)]
pub(crate) struct SessionAgent {
    agent: Option<String>,
    last_tool: Option<String>,
    reached: Vec<ReachedRung>,
    stop: Option<Decision>,
    loop_detection_state: Option<LoopDetectionState>,
}

impl Broker {
    /// Opens the database file; creates it if it doesn't exist. With `off`, every decision is `continue`.
    ///
    /// # Errors
    /// When the file can't be created, read or written, or was written by a later release.
    pub fn open(file: &Path, engine: Engine, cost: CostFn, off: bool) -> Result<Self, StoreError> {
        let journal = SqliteJournal::open(file, BOUNDS)?;
        journal.store().keep_log_short(LOG_PAGES)?;
        Ok(Self { engine, journal, cost, off })
    }

    fn store(&self, now: Millis) -> ServerTime<'_> {
        ServerTime { store: self.journal.store(), now }
    }

    /// Decides about steps, in order. Either all of them are stored or, when this fails, none.
    pub(crate) fn observe(
        &self,
        steps: Vec<Step>,
        caller: CallerOptions,
        now: Millis,
    ) -> Result<Vec<Decision>, StoreError> {
        let engine = self.engine.with_options(caller.over(self.engine.options()));
        self.journal.atomically(|| steps.into_iter().map(|step| self.decide(&engine, step, now)).collect())
    }

    /// Returns the server's own mode.
    pub(crate) fn mode(&self) -> Mode {
        self.engine.options().mode
    }

    fn decide(&self, engine: &Engine, mut step: Step, now: Millis) -> Result<Decision, StoreError> {
        step.ts = step.ts.or(Some(now));
        if let Body::Usage(usage) = &mut step.body
            && usage.cost_usd.is_none()
        {
            usage.cost_usd = (self.cost)(usage);
        }
        let observed = engine.observe(&self.store(now), &step)?;
        let (mut decision, mut events) = (observed.decision, observed.events);
        if self.off {
            return Ok(Decision::go_on(decision.session, decision.step));
        }
        if let Some(task) = &step.task {
            name_task(task, &mut decision, &mut events);
        }
        let origin = DecisionOrigin {
            agent: PROGRAM,
            subagent: step.agent.as_deref(),
            now,
            run: None,
            held: None,
            recent_calls: "[]",
        };
        self.journal.record(&decision, &origin)?;
        Ok(decision)
    }

    pub(crate) fn sessions(&self, after: Option<&str>, limit: u64) -> Result<Vec<SessionId>, StoreError> {
        self.journal.store().sessions_after(after, limit)
    }

    pub(crate) fn session_count(&self) -> Result<u64, StoreError> {
        self.journal.store().session_count()
    }

    pub(crate) fn session(
        &self,
        session: &SessionId,
        now: Millis,
    ) -> Result<Option<SessionReport>, StoreError> {
        let store = self.store(now);
        let look = |state: &Session| {
            (state.steps(), *state.ledger(), state.controller().cloned(), state.ended().cloned())
        };
        let Some((steps, ledger, controller, ended)) = store.look(&self.engine, session, look)? else {
            return Ok(None);
        };
        let agents = self.engine.report(&store, session)?;
        let agents: Vec<SessionAgent> = agents
            .into_iter()
            .map(|report| SessionAgent {
                agent: report.agent,
                last_tool: report.last_tool,
                reached: report.reached,
                stop: report.stop,
                loop_detection_state: report.loop_detection_state,
            })
            .collect();
        let main = agents.iter().find(|agent| agent.agent.is_none());
        let loop_detection_state = main.and_then(|agent| agent.loop_detection_state.clone());
        let session = session.clone();
        Ok(Some(SessionReport { session, steps, ledger, controller, ended, loop_detection_state, agents }))
    }

    /// Deletes the state of a session. Returns whether there was one.
    pub(crate) fn reset(&self, session: &SessionId, now: Millis) -> Result<bool, StoreError> {
        let store = self.store(now);
        self.journal.atomically(|| {
            let known = self.journal.store().has_session(session)?;
            store.forget(session)?;
            Ok(known)
        })
    }

    pub(crate) fn checkpoint(
        &self,
        session: &SessionId,
        now: Millis,
    ) -> Result<Option<Checkpoint>, RestoreError> {
        self.engine.checkpoint(&self.store(now), session)
    }

    /// Replaces the state of a session.
    pub(crate) fn restore(
        &self,
        session: &SessionId,
        checkpoint: Checkpoint,
        now: Millis,
    ) -> Result<(), RestoreError> {
        self.journal.store().batch(|_| self.engine.restore(&self.store(now), session, checkpoint))
    }

    pub(crate) fn swarms(&self, now: Millis) -> Result<Vec<String>, StoreError> {
        let mut swarms = self.store(now).swarms()?;
        swarms.sort();
        Ok(swarms)
    }

    pub(crate) fn swarm(&self, swarm: &str, now: Millis) -> Result<Option<SwarmState>, StoreError> {
        self.engine.swarm_state(&self.store(now), swarm)
    }

    /// Deletes the state of a swarm. Returns whether there was one.
    pub(crate) fn clear_swarm(&self, swarm: &str, now: Millis) -> Result<bool, StoreError> {
        let store = self.store(now);
        self.journal.atomically(|| {
            let known = store.look_swarm(swarm, |_| ())?.is_some();
            store.forget_swarm(swarm)?;
            Ok(known)
        })
    }

    /// Writes to the database, to see whether that works.
    pub(crate) fn check_writable(&self, now: Millis) -> Result<(), StoreError> {
        self.journal.called(PROGRAM, now)
    }

    /// Undoes what a panic left half done.
    pub(crate) fn recover(&self) -> Result<(), StoreError> {
        self.journal.store().abandon_batch()
    }
}
