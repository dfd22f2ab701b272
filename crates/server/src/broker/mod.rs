//! Decides about steps and keeps sessions and swarms.

mod backend;
#[cfg(test)]
mod clock_tests;
mod declared_swarms;
mod eviction_watch;
mod follow_up;
mod judge;
mod key_limits;
mod local;
mod local_view;
#[cfg(test)]
mod neighbour_tests;
mod operator_message;
mod purge;
mod recovery;
mod remote;
mod session_report;
mod slices;
mod state_cache;
mod state_notices;
mod step_log;
mod step_owner;
mod step_turns;
mod stored_session;
mod unreadable;
mod view;
#[cfg(test)]
mod write_back_tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use deloop_detect::SwarmState;
use deloop_engine::{Checkpoint, Engine, RestoreError};
use deloop_store::{
    MemoryRecords, RedisOptions, RedisStore, SharedRecords, SqliteRecords, Store, StoreError,
};
use deloop_types::{Decision, Millis, Mode, SessionId, Step};
use serde_json::json;

use crate::alerts::{Alerts, ClaimFn};
use crate::audit::{AuditEntry, AuditLog, BrokerAudit, LiftedBy, TurnForm};
use crate::caller_options::CallerOptions;
use crate::clock::Clock;
use crate::events::EventHub;
use crate::money::{AuditedChange, BudgetLimits, Money};
use crate::project::Project;
use crate::readiness::ReadyReason;
use crate::requester::Requester;
use crate::shared::{ServerNotice, TellFn};
use backend::Backend;
use declared_swarms::DeclaredSwarms;
use eviction_watch::EvictionWatch;
use follow_up::FollowUp;
use judge::Judge;
pub(crate) use judge::JudgedStep;
pub use judge::PriceFn;
pub(crate) use key_limits::KeyLimit;
use key_limits::{limit_swarms, name_limits};
use recovery::ReplayedStep;
pub(crate) use session_report::SessionReport;
use state_notices::StateNotices;
use step_owner::StepOwner;
use stored_session::StoredSession;
use view::ProjectView;

/// Where a broker keeps sessions and swarms.
pub enum BrokerStore<'a> {
    /// In a file, for one server.
    File(&'a Path),
    /// In Redis, for several servers.
    Redis {
        /// The URL of the server.
        url: &'a str,
        /// How to use it.
        options: RedisOptions,
        /// Whether the server is ready although Redis drops keys when its memory is full.
        allow_eviction: bool,
    },
}

/// Decides about the steps of many sessions. All methods block.
pub struct Broker {
    judge: Judge,
    backend: Backend,
    follow_up: FollowUp,
    off: bool,
    opened: Millis,
    tell: TellFn,
    /// Steps of the last process that ran, until [`Broker::recover`].
    replayed: Vec<ReplayedStep>,
}

/// A step, and its text as the client sent it.
pub(crate) struct SentStep<'a> {
    pub(crate) step: Step,
    pub(crate) json: &'a [u8],
    /// How many dollars of its cost don't count, because one request can't cost that much.
    pub(crate) over_usd: f64,
    /// The limit of its key that it is beyond.
    limit: Option<KeyLimit>,
}

impl<'a> SentStep<'a> {
    pub(crate) fn new(step: Step, json: &'a [u8]) -> Self {
        Self { step, json, over_usd: 0.0, limit: None }
    }
}

/// The decision about a step, or why there is none.
pub(crate) type StepAnswer = Result<Decision, &'static str>;

/// The answers to the steps of a request.
#[derive(Default)]
pub(crate) struct StepAnswers {
    /// The answer to each step. If the store failed on the way, those about the steps before that.
    pub(crate) decisions: Vec<StepAnswer>,
    /// How many steps were beyond each of [`KeyLimit::ALL`].
    pub(crate) limited: [u64; KeyLimit::ALL.len()],
    /// How many steps weren't stored: the store was away, or their session can't be read.
    pub(crate) failed_open: u64,
}

impl Broker {
    /// Opens the store. A file is created if it doesn't exist. With `off`, every decision is `continue`.
    ///
    /// # Errors
    /// When the file can't be created, read or written, was written by a later release, or is another server's; or when
    /// the URL isn't one of a Redis server.
    pub fn open(
        store: BrokerStore<'_>,
        engine: Engine,
        price: PriceFn,
        budgets: BudgetLimits,
        off: bool,
        now: Millis,
        tell: TellFn,
    ) -> Result<Self, StoreError> {
        let judge = Judge { engine, price, request_usd: budgets.request_usd(), owner: StepOwner::default() };
        let mut replayed = Vec::new();
        let (backend, records, events): (Backend, Arc<dyn SharedRecords>, Arc<dyn SharedRecords>) =
            match store {
                BrokerStore::File(file) => {
                    let (sqlite, backend, steps) =
                        Backend::open_file(file, budgets, &judge, now, Arc::clone(&tell))?;
                    replayed = steps;
                    let records = Arc::new(SqliteRecords::new(sqlite)?);
                    // One server's events needn't outlive it.
                    (backend, records, Arc::new(MemoryRecords::default()))
                }
                BrokerStore::Redis { url, options, allow_eviction } => {
                    let store = RedisStore::open(url, options)?;
                    let records = Arc::new(store.records());
                    let shared: Arc<dyn SharedRecords> = Arc::clone(&records) as Arc<dyn SharedRecords>;
                    let money = Money::new(Arc::clone(&shared), budgets, now);
                    let notices = Arc::new(StateNotices::new(Arc::clone(&tell), Vec::new()));
                    let watch = EvictionWatch::new(allow_eviction, Arc::clone(&tell));
                    (Backend::Remote { store, money, notices, watch }, shared, records)
                }
            };
        let swarms = DeclaredSwarms::new(Arc::clone(&records), matches!(backend, Backend::Remote { .. }));
        let events = EventHub::start(events).map_err(StoreError::encode)?;
        let follow_up = FollowUp {
            records,
            swarms,
            events,
            alerts: None,
            audit: None,
            tell: Arc::clone(&tell),
            minute: AtomicI64::new(0),
        };
        Ok(Self { judge, backend, follow_up, off, opened: now, tell, replayed })
    }

    /// Returns the server's own mode.
    pub(crate) fn mode(&self) -> Mode {
        self.judge.engine.options().mode
    }

    /// Returns whether the store is on another machine, so that a request may have to wait for it.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.backend, Backend::Remote { .. })
    }

    /// Decides about the steps of a project, in order.
    pub(crate) fn observe(
        &self,
        requester: &Requester,
        caller: CallerOptions,
        steps: &mut [SentStep<'_>],
        now: Millis,
    ) -> Result<StepAnswers, StoreError> {
        let mut options = caller.over(self.judge.engine.options());
        if !requester.speaks_for_people() {
            options = options.with_stops_kept();
        }
        let judge = self.judge.with_options(options).for_owner(StepOwner::of(requester));
        let mut answers =
            StepAnswers { decisions: Vec::with_capacity(steps.len()), ..StepAnswers::default() };
        let (slices, is_long) = self.backend.slices(steps);
        for slice in slices {
            slice.iter_mut().for_each(|sent| sent.over_usd = judge.complete(&mut sent.step, now));
            let decided = self.observe_slice(&judge, requester, slice, now);
            match decided {
                Ok(decisions) => answers.decisions.extend(decisions),
                Err(error @ (StoreError::Unavailable { .. } | StoreError::Refused { .. })) => {
                    (self.tell)(ServerNotice::Failed(error.to_string()));
                    answers.failed_open += slice.len() as u64;
                    let go_on = |sent: &SentStep<'_>| Ok(Decision::go_on(sent.step.session.clone(), 0));
                    answers.decisions.extend(slice.iter().map(go_on));
                }
                Err(error) if error.is_unreadable() => {
                    let readable = self.observe_readable(requester, caller, slice, error, now)?;
                    answers.decisions.extend(readable.decisions);
                    answers.failed_open += readable.failed_open;
                }
                Err(error) if answers.decisions.is_empty() => return Err(error),
                Err(error) => {
                    // The steps so far are stored, so the sender must get their decisions.
                    (self.tell)(ServerNotice::Failed(error.to_string()));
                    break;
                }
            }
            for (count, limit) in answers.limited.iter_mut().zip(KeyLimit::ALL) {
                *count += slice.iter().filter(|sent| sent.limit == Some(limit)).count() as u64;
            }
            if let Err(error) = self.backend.keep_up(&judge.engine, is_long, now) {
                // The steps are in the log, so the next write may be the one that succeeds.
                (self.tell)(ServerNotice::Failed(error.to_string()));
            }
        }
        Ok(answers)
    }

    /// Decides about steps that are handled together.
    fn observe_slice(
        &self,
        judge: &Judge,
        requester: &Requester,
        steps: &mut [SentStep<'_>],
        now: Millis,
    ) -> Result<Vec<StepAnswer>, StoreError> {
        limit_swarms(requester, steps, now);
        let mut decided = self.backend.decide(judge, requester, steps, now)?;
        if self.off {
            let go_on = |d: JudgedStep| {
                let go_on = Decision::go_on(d.decision.session.clone(), d.decision.step);
                d.answer().map(|_| go_on)
            };
            return Ok(decided.into_iter().map(go_on).collect());
        }
        self.follow_up.decided(requester, steps, &mut decided, now);
        if self.is_remote()
            && let Err(error) = self.announced(requester, &decided, now)
        {
            // The next step of the session announces the stop again.
            (self.tell)(ServerNotice::Failed(error.to_string()));
        }
        if let Some(reached) = name_limits(requester, steps, &mut decided, now) {
            (self.tell)(ServerNotice::Failed(reached));
        }
        Ok(decided.into_iter().map(JudgedStep::answer).collect())
    }

    /// Records decisions and operations in this log, and with a stop the last turns of its session, in this form.
    #[must_use]
    pub fn with_audit(mut self, log: Arc<AuditLog>, turns: TurnForm) -> Self {
        if self.is_remote() {
            log.publish_to(Arc::clone(&self.follow_up.records));
        }
        let set_aside = self.backend.notices().set_aside();
        if !set_aside.is_empty() {
            let files: Vec<_> = set_aside.iter().map(|file| file.display().to_string()).collect();
            let entry = AuditEntry::new(self.opened, "deloop", "database.damaged");
            let _ = log.append(&[entry.with_detail(json!({"set_aside": files}))]);
        }
        self.follow_up.audit = Some(BrokerAudit::new(log, turns));
        self
    }

    /// Returns the audit log, if there is one.
    pub(crate) fn audit_log(&self) -> Option<&Arc<AuditLog>> {
        self.follow_up.audit.as_ref().map(BrokerAudit::log)
    }

    /// Notes that somebody ends a session.
    pub(crate) fn ends(&self, requester: &Requester, session: &SessionId, now: Millis) {
        self.follow_up.operated(requester, "session.end", ("session", session.as_str()), now);
    }

    /// Sends alerts about warnings, stops, budgets and stuck swarms.
    #[must_use]
    pub fn with_alerts(mut self, alerts: Alerts) -> Self {
        self.follow_up.alerts = Some(alerts);
        self
    }

    /// Returns a function that lets one of all servers send an alert.
    #[must_use]
    pub fn alert_claims(&self, clock: Clock) -> ClaimFn {
        self.follow_up.alert_claims(self.is_remote(), clock)
    }

    /// Returns counts in the text format of Prometheus.
    pub(crate) fn metrics(&self) -> String {
        let money = self.backend.money();
        self.follow_up.metrics() + &money.counters.text(money.backlog()) + &self.backend.notices().metrics()
    }

    /// Returns what sessions spend. What this server knows is in the shared records by then.
    pub(crate) fn money(&self, now: Millis) -> Result<&Money, StoreError> {
        let money = self.backend.money();
        match &self.backend {
            Backend::Local(_) => self.write_back(now)?,
            Backend::Remote { .. } => money.exchange(now),
        }
        Ok(money)
    }

    /// Records that an operator changed a budget.
    pub(crate) fn budget_changed(&self, change: &AuditedChange, now: Millis) {
        self.follow_up.budget_changed(change, now);
    }

    /// Does what is due from time to time: shares what was spent with other servers, and raises reports and rises. Call it
    /// about every second.
    pub(crate) fn tick(&self, now: Millis) {
        self.backend.watch_eviction(now);
        if self.is_remote() {
            self.backend.money().exchange(now);
        }
        if let Err(error) = self.follow_up.tick(self.backend.money(), now) {
            (self.tell)(ServerNotice::Failed(error.to_string()));
        }
        if let Some(Err(error)) = self.audit_log().map(|log| log.publish_if_due(now)) {
            (self.tell)(ServerNotice::Failed(error.to_string()));
        }
    }

    /// Returns what happens on all servers.
    pub(crate) fn events(&self) -> &EventHub {
        &self.follow_up.events
    }

    /// Sends a message to the agent of a session. Returns whether there is such a session.
    pub(crate) fn send(
        &self,
        requester: &Requester,
        session: &SessionId,
        text: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let engine = &self.judge.engine;
        let known = self.backend.view(&requester.project, now).see(engine, session, |_| ())?.is_some();
        if known {
            self.follow_up.operated(requester, "session.message", ("session", session.as_str()), now);
            self.change(&requester.project, now, |view| {
                view.change(engine, session, |state| state.extras.send(text.to_owned()))
            })?;
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
        self.backend.view(project, now).sessions_after(after, limit)
    }

    pub(crate) fn session_count(&self) -> Result<Option<u64>, StoreError> {
        self.backend.session_count()
    }

    pub(crate) fn session(
        &self,
        project: &Project,
        session: &SessionId,
        now: Millis,
    ) -> Result<Option<SessionReport>, StoreError> {
        SessionReport::of(&self.judge.engine, &self.backend.view(project, now), session)
    }

    /// Deletes the state of a session. Returns whether there was one.
    pub(crate) fn reset(
        &self,
        requester: &Requester,
        session: &SessionId,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.follow_up.operated(requester, "session.reset", ("session", session.as_str()), now);
        self.follow_up.forget(requester, session);
        let was_stopped = self.change(&requester.project, now, |view| {
            let was_stopped = match view.see(&self.judge.engine, session, |state| state.session.is_stopped())
            {
                // Whoever resets it wants it gone, whatever it was.
                Err(error) if error.is_unreadable() => Some(true),
                known => known?,
            };
            view.forget(session)?;
            Ok::<_, StoreError>(was_stopped)
        })?;
        if was_stopped == Some(true) {
            self.follow_up.lifted(requester, session, LiftedBy::Reset, now);
        }
        Ok(was_stopped.is_some())
    }

    pub(crate) fn checkpoint(
        &self,
        project: &Project,
        session: &SessionId,
        now: Millis,
    ) -> Result<Option<Checkpoint>, RestoreError> {
        self.judge.engine.checkpoint(&self.backend.view(project, now), session)
    }

    /// Replaces the state of a session.
    pub(crate) fn restore(
        &self,
        requester: &Requester,
        session: &SessionId,
        checkpoint: &Checkpoint,
        now: Millis,
    ) -> Result<(), RestoreError> {
        self.follow_up.operated(requester, "session.restore", ("session", session.as_str()), now);
        let engine = &self.judge.engine;
        let is_lifted = self.change(&requester.project, now, |view| {
            let about =
                |state: &StoredSession| (state.session.is_stopped(), state.extras.owner().map(str::to_owned));
            let (was_stopped, owner) = view.see(engine, session, about)?.unwrap_or_default();
            engine.restore(view, session, checkpoint)?;
            let is_stopped = view.change(engine, session, |state| {
                state.extras.claim(owner.as_deref());
                state.session.is_stopped()
            })?;
            Ok::<_, RestoreError>(was_stopped && !is_stopped)
        })?;
        if is_lifted {
            self.follow_up.lifted(requester, session, LiftedBy::Restore, now);
        }
        Ok(())
    }

    pub(crate) fn swarms(&self, project: &Project, now: Millis) -> Result<Vec<String>, StoreError> {
        self.write_back(now)?;
        let mut swarms = self.backend.view(project, now).swarms()?;
        swarms.sort();
        Ok(swarms)
    }

    pub(crate) fn swarm(
        &self,
        project: &Project,
        swarm: &str,
        now: Millis,
    ) -> Result<Option<SwarmState>, StoreError> {
        self.judge.engine.swarm_state(&self.backend.view(project, now), swarm)
    }

    /// Deletes the state of a swarm. Returns whether there was one.
    pub(crate) fn clear_swarm(
        &self,
        requester: &Requester,
        swarm: &str,
        now: Millis,
    ) -> Result<bool, StoreError> {
        self.follow_up.operated(requester, "swarm.clear", ("swarm", swarm), now);
        let known = self.change(&requester.project, now, |view| {
            let known = view.look_swarm(swarm, |_| ())?.is_some();
            view.forget_swarm(swarm)?;
            Ok::<_, StoreError>(known)
        })?;
        self.follow_up.swarms.clear(&requester.project, swarm, now)?;
        Ok(known)
    }

    /// Returns why the server isn't as it should be, besides what [`Self::check`] finds.
    pub(crate) fn reasons(&self) -> Vec<ReadyReason> {
        let mut reasons = self.backend.notices().reasons();
        reasons.extend(self.backend.eviction());
        reasons
    }

    /// Checks that steps can be stored.
    pub(crate) fn check(&self, now: Millis) -> Result<(), StoreError> {
        if !self.is_remote() {
            return self.write_back(now);
        }
        self.follow_up.check(now)?;
        self.backend.watch_eviction(now);
        Ok(())
    }

    /// Writes everything that is only in memory or in the log to the file.
    pub(crate) fn write_back(&self, now: Millis) -> Result<(), StoreError> {
        self.backend.write_back(&self.judge.engine, now)
    }

    /// Writes to the file if there is much to write. Call it many times per second: steps wait only if it can't keep up.
    pub(crate) fn write_back_if_due(&self, now: Millis) {
        if let Err(error) = self.backend.write_back_if_due(&self.judge.engine, now) {
            (self.tell)(ServerNotice::Failed(error.to_string()));
        }
    }

    fn change<R, E: From<StoreError>>(
        &self,
        project: &Project,
        now: Millis,
        work: impl Fn(&ProjectView<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.backend.change(&self.judge.engine, project, now, work)
    }
}
