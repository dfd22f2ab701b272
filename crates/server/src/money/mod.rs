//! What sessions spend, and what they may spend: totals that all servers share, budgets over them, and overrides.
//!
//! A step never waits for the shared records: it adds to what waits in memory and is judged by the totals that are known.
//! With SQLite, what waits is written in the transaction that writes the sessions ([`Money::to_send`]), so that a step
//! that is replayed after a crash is counted once. With Redis, call [`Money::exchange`] every second from a thread of its
//! own: it sends what waits, with marks so that nothing is added twice, and reads what other servers spent.

mod calendar;
mod counters;
mod day_spend;
mod grants;
mod judgment;
mod limits;
mod loop_waste;
mod micros;
mod over_limit;
mod overrides;
mod rosters;
mod scope;
mod session_money;
mod verdict;
mod waiting;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deloop_store::{AddedOnce, RecordName, SharedRecords, StoreError};
use deloop_types::{Millis, SessionId};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use self::calendar::UtcDay;
use self::counters::MoneyCounters;
pub(crate) use self::grants::{AuditedChange, GrantError, OverrideRequest};
pub use self::limits::BudgetLimits;
pub(crate) use self::micros::usd;
use self::overrides::BudgetOverride;
use self::rosters::Rosters;
pub(crate) use self::scope::{SHARED, group};
use self::scope::{ScopeSpends, SpendScope};
pub(crate) use self::session_money::{SessionMoney, SessionTally};
pub use self::verdict::{BudgetKind, BudgetLevel, BudgetVerdict};
use self::waiting::Waiting;
pub(crate) use self::waiting::{SpendAddition, TableName};
use crate::project::Project;
use crate::reports::{ReportTables, RowAmounts};

/// After the shared records failed, they aren't read again for this long, in milliseconds.
const PAUSE: u64 = 1_000;
/// How many totals are read in one exchange.
const READ: usize = 512;
/// How many sessions are remembered as stopped by a budget.
const STOPPED: usize = 10_000;

/// Adds up what sessions spend and judges it by the budgets.
pub(crate) struct Money {
    records: Arc<dyn SharedRecords>,
    limits: BudgetLimits,
    /// Distinguishes the marks of this process.
    server: String,
    state: Mutex<MoneyState>,
    /// Whether a budget stops any session, to look at without the lock.
    has_stopped: AtomicBool,
    pub(crate) counters: MoneyCounters,
}

#[derive(Default)]
struct MoneyState {
    waiting: Waiting,
    spends: ScopeSpends,
    rosters: Rosters,
    announced: HashSet<String>,
    overrides: Vec<BudgetOverride>,
    /// Hashes of the sessions that a budget stops.
    stopped: HashSet<u64>,
    away: Option<Away>,
}

/// The shared records can't be reached.
#[derive(Clone, Copy)]
struct Away {
    since: Millis,
    tried: Millis,
}

impl MoneyState {
    /// Returns whether the shared records failed so recently that they aren't asked.
    fn is_paused(&self, now: Millis) -> bool {
        self.away.is_some_and(|away| now.since(away.tried) < PAUSE)
    }
}

impl Money {
    /// Creates it over shared records, and reads the overrides that are in force.
    pub(crate) fn new(records: Arc<dyn SharedRecords>, limits: BudgetLimits, now: Millis) -> Self {
        let server = format!("{:016x}", getrandom::u64().unwrap_or_default());
        let spends = ScopeSpends::new(limits.clone());
        let state = Mutex::new(MoneyState { spends, ..MoneyState::default() });
        let counters = MoneyCounters::default();
        let has_stopped = AtomicBool::new(false);
        let money = Self { records, limits, server, state, has_stopped, counters };
        let overrides = overrides::list(&*money.records, now);
        if let Some(found) = money.reached(overrides, now) {
            money.lock().overrides = found;
        }
        money
    }

    /// Notes whether a budget stops a session now. Returns whether that was known before.
    pub(crate) fn note_stop(&self, project: &Project, session: &SessionId, is_stopped: bool) -> bool {
        // Nearly always; all steps would wait for one lock.
        if !is_stopped && !self.has_stopped.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.lock();
        let name = xxh3_64([project.as_str(), "/", session.as_str()].concat().as_bytes());
        if !is_stopped {
            let was_stopped = state.stopped.remove(&name);
            self.has_stopped.store(!state.stopped.is_empty(), Ordering::Relaxed);
            return was_stopped;
        }
        if state.stopped.len() >= STOPPED {
            state.stopped.clear();
        }
        self.has_stopped.store(true, Ordering::Relaxed);
        !state.stopped.insert(name)
    }

    /// Returns the shared records.
    pub(crate) fn records(&self) -> &dyn SharedRecords {
        &*self.records
    }

    /// Adds what a step spent and found, and returns the budgets that it used up or nearly used up: each once per period
    /// over all servers.
    pub(crate) fn record(
        &self,
        project: &Project,
        session: &SessionId,
        tally: &SessionTally,
        now: Millis,
    ) -> Vec<BudgetVerdict> {
        if tally.is_empty() {
            return Vec::new();
        }
        let day = UtcDay::of(now);
        self.counters.charged(tally);
        self.record_rows(project, tally, day, now);
        if tally.cost == 0 {
            return Vec::new();
        }
        let mut state = self.lock();
        let reported = state.rosters.reported(project.as_str(), day).to_owned();
        let mut scopes = vec![SpendScope::Day(day, reported), SpendScope::Project(project.clone(), day)];
        let is_overridden =
            state.overrides.iter().any(|o| o.session.is_some() && o.covers(project, session, now));
        if is_overridden || self.limits.session(project).is_some() {
            scopes.push(SpendScope::Session(project.clone(), session.clone()));
        }
        for scope in &scopes {
            if state.waiting.spend(scope, tally.cost) {
                state.spends.charge(scope, tally.cost, now);
            }
        }
        drop(state);
        let budgets = self.budgets(project, session, day);
        budgets.iter().filter_map(|budget| self.announce(budget, (project, session), day, now)).collect()
    }

    /// Returns what isn't in the shared records yet. Pass it to [`Money::add_all`].
    pub(crate) fn to_send(&self) -> Vec<SpendAddition> {
        self.lock().waiting.send(&self.server)
    }

    /// Returns everything that isn't in the shared records yet, even if something was sent before with an unknown result.
    pub(crate) fn to_send_all(&self) -> Vec<SpendAddition> {
        self.lock().waiting.send_all(&self.server)
    }

    /// Adds to the shared records, in the caller's transaction. After it is committed, call [`Money::added`].
    ///
    /// # Errors
    /// When the shared records fail. What was to be added stays in memory.
    pub(crate) fn add_all(
        &self,
        additions: &[SpendAddition],
        now: Millis,
    ) -> Result<Vec<AddedOnce>, StoreError> {
        additions.iter().map(|addition| self.add(addition, now)).collect()
    }

    /// Enters that additions were made.
    pub(crate) fn added(&self, additions: &[SpendAddition], made: &[AddedOnce]) {
        let mut state = self.lock();
        state.away = None;
        for (addition, made) in additions.iter().zip(made) {
            state.waiting.made(&addition.mark);
            if let (Some(scope), [(_, amount)], [total]) =
                (&addition.scope, addition.amounts.as_slice(), made.totals.as_slice())
            {
                state.spends.added(scope, *amount, *total);
            }
        }
    }

    /// Sends what waits and reads what other servers spent and granted. For a store that several servers share; call it
    /// every second and before the process ends.
    pub(crate) fn exchange(&self, now: Millis) {
        if let Err(error) = self.try_exchange(now) {
            self.reached::<()>(Err(error), now);
        }
    }

    fn try_exchange(&self, now: Millis) -> Result<(), StoreError> {
        for addition in self.to_send() {
            let made = self.add(&addition, now)?;
            self.added(&[addition], &[made]);
        }
        let unlisted = self.lock().rosters.unlisted();
        for (project, day) in unlisted {
            if !self.list(&project, day, now) {
                return Ok(());
            }
        }
        let scopes = self.lock().spends.in_use(now);
        for scope in scopes.into_iter().take(READ) {
            let totals = self.totals(&scope, now)?;
            self.lock().spends.learn(&scope, &totals, now);
        }
        let overrides = overrides::list(self.records(), now)?;
        let mut state = self.lock();
        (state.overrides, state.away) = (overrides, None);
        Ok(())
    }

    fn add(&self, addition: &SpendAddition, now: Millis) -> Result<AddedOnce, StoreError> {
        let SpendAddition { table, mark, amounts, .. } = addition;
        let amounts: Vec<(&str, i64)> =
            amounts.iter().map(|(field, amount)| (field.as_str(), *amount)).collect();
        self.records.add_once(RecordName::new(&table.group, &table.name), mark, &amounts, table.kept, now)
    }

    /// Adds to the rows of the reports.
    fn record_rows(&self, project: &Project, tally: &SessionTally, day: UtcDay, now: Millis) {
        let mut state = self.lock();
        let reported = state.rosters.reported(project.as_str(), day).to_owned();
        let tables = Arc::clone(&state.rosters.of(&reported, day).tables);
        if !state.rosters.is_listed(&reported, day) && !state.is_paused(now) {
            drop(state);
            self.list(&reported, day, now);
            state = self.lock();
        }
        let roster = state.rosters.of(&reported, day);
        let (model, agent) = (tally.model.as_deref(), tally.agent.as_deref());
        let of_day = roster.day.pair(model, agent);
        let amounts = RowAmounts::of(tally);
        if amounts.has_week() {
            let of_week = roster.week.pair(model, agent);
            state.waiting.rows(&tables.week, amounts.week_fields(&of_week));
        }
        state.waiting.rows(&tables.day, amounts.day_fields(&of_day));
    }

    /// Lists a project among those that have figures of a day. Returns whether that succeeded.
    fn list(&self, project: &str, day: UtcDay, now: Millis) -> bool {
        let pairs = self.reached(ReportTables::of(project, day).list(self.records(), now), now);
        pairs.map(|pairs| self.lock().rosters.listed(project, day, pairs)).is_some()
    }

    /// Returns what was spent in a scope. It is read from the shared records the first time; `None` if that fails.
    fn spent(&self, scope: &SpendScope, now: Millis) -> Option<i64> {
        let mut state = self.lock();
        if let Some(spent) = state.spends.read(scope, now) {
            return Some(spent);
        }
        if state.is_paused(now) {
            return None;
        }
        drop(state);
        let totals = self.reached(self.totals(scope, now), now)?;
        let mut state = self.lock();
        state.spends.learn(scope, &totals, now);
        state.spends.read(scope, now)
    }

    /// Returns the totals of a scope's table, as the shared records have them.
    fn totals(&self, scope: &SpendScope, now: Millis) -> Result<Vec<(String, i64)>, StoreError> {
        let table = scope.table();
        self.records.totals(RecordName::new(&table.group, &table.name), now)
    }

    /// Returns what the shared records answered, and remembers whether they did.
    fn reached<R>(&self, answer: Result<R, StoreError>, now: Millis) -> Option<R> {
        let mut state = self.lock();
        match answer {
            Ok(answer) => {
                state.away = None;
                Some(answer)
            }
            Err(_) => {
                let since = state.away.map_or(now, |away| away.since);
                state.away = Some(Away { since, tried: now });
                self.counters.failed();
                None
            }
        }
    }

    /// Returns how many tables wait to be added to, and how many amounts were lost because too many waited.
    pub(crate) fn backlog(&self) -> (usize, u64) {
        let state = self.lock();
        (state.waiting.len(), state.waiting.lost)
    }

    fn lock(&self) -> MutexGuard<'_, MoneyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
