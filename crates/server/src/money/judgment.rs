//! Judges what was spent by the budgets.

use std::time::Duration;

use deloop_store::RecordName;
use deloop_types::{Millis, SessionId};

use super::Money;
use super::calendar::UtcDay;
use super::overrides::BudgetOverride;
use super::scope::SpendScope;
use super::verdict::{BudgetKind, BudgetLevel, BudgetVerdict};
use crate::project::Project;

/// With `when_unknown = "stop"`, sessions are stopped once the totals are unknown for this long, in milliseconds.
const GRACE: u64 = 5_000;
/// How many verdicts are remembered as announced. The shared records remember all.
const ANNOUNCED: usize = 10_000;
/// How long the shared records remember that a verdict was announced.
const ANNOUNCED_FOR: Duration = Duration::from_secs(8 * 24 * 3600);

/// A budget that applies to a session.
pub(super) struct Budget {
    kind: BudgetKind,
    scope: SpendScope,
    limit: i64,
}

impl Money {
    /// Returns the budget that a session has used up, if one stops it now.
    pub(crate) fn standing(
        &self,
        project: &Project,
        session: &SessionId,
        now: Millis,
    ) -> Option<BudgetVerdict> {
        if !self.limits.is_limited(project) {
            return None;
        }
        let day = UtcDay::of(now);
        let is_unknown = self.is_unknown(now);
        let verdict = self.budgets(project, session, day).into_iter().find_map(|budget| {
            let spent = self.spent(&budget.scope, now);
            let level = match spent {
                Some(spent) if spent >= budget.limit => BudgetLevel::Exceeded,
                _ if is_unknown => BudgetLevel::Unknown,
                _ => return None,
            };
            let amounts = (spent.unwrap_or(0), budget.limit);
            Some(BudgetVerdict::new(level, budget.kind, (project, session), day, amounts))
        })?;
        if self.is_lifted(project, session, day, now) {
            return None;
        }
        self.counters.stopped(verdict.level);
        Some(verdict)
    }

    /// Returns the budgets of a session, the narrowest first.
    pub(super) fn budgets(&self, project: &Project, session: &SessionId, day: UtcDay) -> Vec<Budget> {
        let mut budgets = Vec::with_capacity(3);
        let mut add = |kind, limit: Option<i64>, scope: &dyn Fn() -> SpendScope| {
            budgets.extend(limit.map(|limit| Budget { kind, limit, scope: scope() }));
        };
        let of_session = || SpendScope::Session(project.clone(), session.clone());
        add(BudgetKind::Session, self.limits.session(project), &of_session);
        add(BudgetKind::Project, self.limits.project(project), &|| SpendScope::Project(project.clone(), day));
        add(BudgetKind::Day, self.limits.day, &|| {
            SpendScope::Day(day, self.lock().rosters.reported(project.as_str(), day).to_owned())
        });
        budgets
    }

    /// Returns the verdict about a budget, if it is one that nobody has got yet.
    pub(super) fn announce(
        &self,
        budget: &Budget,
        (project, session): (&Project, &SessionId),
        day: UtcDay,
        now: Millis,
    ) -> Option<BudgetVerdict> {
        let spent = self.spent(&budget.scope, now)?;
        let warning = self.limits.warning(budget.limit);
        let (level, reached) = match spent {
            spent if spent >= budget.limit => (BudgetLevel::Exceeded, budget.limit),
            spent if spent >= warning => (BudgetLevel::Warning, warning),
            _ => return None,
        };
        let table = budget.scope.table();
        let mut name = format!("{level:?}/{}/{}", table.name, budget.limit);
        if let SpendScope::Day(day, project) = &budget.scope
            && self.lock().spends.known(&SpendScope::Day(*day, String::new())) < reached
        {
            // Only this project's own spend is so high.
            name = format!("{name}/{project}");
        }
        if level == BudgetLevel::Exceeded
            && let Some(id) = self.latest_override(project, session, now)
        {
            if self.is_lifted(project, session, day, now) {
                return None;
            }
            // It is announced again when an override is used up.
            name = format!("{name}/{id}");
        }
        let local = format!("{}/{name}", table.group);
        let state = self.lock();
        if state.is_paused(now) || state.announced.contains(&local) {
            return None;
        }
        drop(state);
        let claim = self.records.claim(RecordName::new(&table.group, &name), ANNOUNCED_FOR, now);
        let is_first = self.reached(claim, now)?;
        let mut state = self.lock();
        if state.announced.len() >= ANNOUNCED {
            state.announced.clear();
        }
        state.announced.insert(local);
        drop(state);
        if is_first {
            self.counters.announced(level);
        }
        let verdict =
            || BudgetVerdict::new(level, budget.kind, (project, session), day, (spent, budget.limit));
        is_first.then(verdict)
    }

    /// Returns the id of the override of a session that was granted last.
    fn latest_override(&self, project: &Project, session: &SessionId, now: Millis) -> Option<String> {
        let state = self.lock();
        let covering = state.overrides.iter().filter(|o| o.covers(project, session, now));
        covering.max_by_key(|o| o.granted).map(|o| o.id.clone())
    }

    /// Returns whether an override lets a session go on.
    fn is_lifted(&self, project: &Project, session: &SessionId, day: UtcDay, now: Millis) -> bool {
        let overrides: Vec<BudgetOverride> =
            self.lock().overrides.iter().filter(|o| o.covers(project, session, now)).cloned().collect();
        overrides.iter().any(|granted| {
            let scope = match &granted.session {
                Some(_) => SpendScope::Session(project.clone(), session.clone()),
                None => SpendScope::Project(project.clone(), day),
            };
            let spent = self.spent(&scope, now).unwrap_or_else(|| self.lock().spends.known(&scope));
            granted.used(spent, day) < granted.amount
        })
    }

    fn is_unknown(&self, now: Millis) -> bool {
        let state = self.lock();
        let Some(away) = state.away.filter(|away| now.since(away.since) >= GRACE) else { return false };
        let is_paused = state.is_paused(now);
        drop(state);
        // Nothing else may have to be read, so this finds out whether the records are back.
        let probe = SpendScope::Day(UtcDay::of(away.since), String::new());
        if !is_paused && self.reached(self.totals(&probe, now), now).is_some() {
            return false;
        }
        self.counters.unknown();
        self.limits.stops_when_unknown()
    }
}
