use std::collections::HashMap;
use std::time::Duration;

use deloop_types::{Millis, SessionId};

use super::calendar::UtcDay;
use super::day_spend::{self, DaySpends};
use super::limits::BudgetLimits;
use super::waiting::TableName;
use crate::project::Project;

/// How many scopes are in memory. Those not used for an hour are dropped first.
const SCOPES: usize = 20_000;
const HOUR: u64 = 3_600_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The group of what all projects share.
pub(crate) const SHARED: &str = "money";
/// The field that holds an amount spent, in millionths of a dollar.
pub(super) const SPENT: &str = "usd";

/// Returns the group of a project's tables.
pub(crate) fn group(project: &str) -> String {
    format!("money/{project}")
}

/// Whose spend is added up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum SpendScope {
    /// The spend of all projects on a day, as one of them sees it.
    Day(UtcDay, String),
    Project(Project, UtcDay),
    Session(Project, SessionId),
}

impl SpendScope {
    pub(super) fn table(&self) -> TableName {
        let (group, name, days) = match self {
            Self::Day(day, _) => (SHARED.to_owned(), format!("spend/{}", day.date()), 3),
            Self::Project(project, day) => (group(project.as_str()), format!("spend/{}", day.date()), 3),
            Self::Session(project, session) => (group(project.as_str()), format!("session/{session}"), 8),
        };
        TableName { group, name, kept: DAY * days }
    }

    /// Returns the field of the table that is added to.
    pub(super) fn field(&self) -> String {
        match self {
            Self::Day(_, project) => day_spend::field(project),
            Self::Project(..) | Self::Session(..) => SPENT.to_owned(),
        }
    }
}

/// Returns the amount spent, in the totals of a table.
pub(super) fn spent_of(totals: &[(String, i64)]) -> i64 {
    totals.iter().find(|(field, _)| field == SPENT).map_or(0, |(_, total)| *total)
}

/// What was spent in a scope.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ScopeSpend {
    /// What the shared records have.
    pub(super) shared: i64,
    /// What isn't in the shared records yet.
    pub(super) waiting: i64,
    /// Whether `shared` was read.
    is_read: bool,
    used: i64,
}

impl ScopeSpend {
    pub(super) fn total(&self) -> i64 {
        self.shared.saturating_add(self.waiting)
    }
}

/// What was spent in the scopes in use.
#[derive(Default)]
pub(super) struct ScopeSpends {
    days: DaySpends,
    others: HashMap<SpendScope, ScopeSpend>,
}

impl ScopeSpends {
    pub(super) fn new(limits: BudgetLimits) -> Self {
        Self { days: DaySpends::new(limits), others: HashMap::new() }
    }

    /// Returns what was spent, if the shared total was read once.
    pub(super) fn read(&mut self, scope: &SpendScope, now: Millis) -> Option<i64> {
        if let SpendScope::Day(day, project) = scope {
            return self.days.read(*day, project, now);
        }
        let spend = self.others.get_mut(scope)?;
        spend.used = now.0;
        spend.is_read.then(|| spend.total())
    }

    /// Returns what is known to be spent, which may lack what other servers counted.
    pub(super) fn known(&self, scope: &SpendScope) -> i64 {
        match scope {
            SpendScope::Day(day, project) => self.days.known(*day, project),
            scope => self.others.get(scope).map_or(0, ScopeSpend::total),
        }
    }

    pub(super) fn charge(&mut self, scope: &SpendScope, amount: i64, now: Millis) {
        if let SpendScope::Day(day, project) = scope {
            return self.days.charge(*day, project, amount, now);
        }
        let spend = self.entry(scope, now);
        spend.waiting = spend.waiting.saturating_add(amount);
    }

    /// Enters the totals of the scope's table that the shared records returned. Totals only grow, so older ones change nothing.
    pub(super) fn learn(&mut self, scope: &SpendScope, totals: &[(String, i64)], now: Millis) {
        if let SpendScope::Day(day, _) = scope {
            return self.days.learn(*day, totals, now);
        }
        let shared = spent_of(totals);
        let spend = self.entry(scope, now);
        (spend.shared, spend.is_read) = (spend.shared.max(shared), true);
    }

    /// Enters that an amount was added to the shared total.
    pub(super) fn added(&mut self, scope: &SpendScope, amount: i64, total: i64) {
        if let SpendScope::Day(day, project) = scope {
            return self.days.added(*day, project, (amount, total));
        }
        if let Some(spend) = self.others.get_mut(scope) {
            spend.waiting = spend.waiting.saturating_sub(amount);
            (spend.shared, spend.is_read) = (spend.shared.max(total), true);
        }
    }

    /// Returns the scopes that were used in the last minute.
    pub(super) fn in_use(&self, now: Millis) -> Vec<SpendScope> {
        let days = self.days.in_use(now).into_iter().map(|day| SpendScope::Day(day, String::new()));
        let recent = self.others.iter().filter(|(_, spend)| now.since(Millis(spend.used)) < 60_000);
        days.chain(recent.map(|(scope, _)| scope.clone())).collect()
    }

    fn entry(&mut self, scope: &SpendScope, now: Millis) -> &mut ScopeSpend {
        if self.others.len() >= SCOPES && !self.others.contains_key(scope) {
            self.others.retain(|_, spend| spend.waiting != 0 || now.since(Millis(spend.used)) < HOUR);
            if self.others.len() >= SCOPES {
                self.others.retain(|_, spend| spend.waiting != 0);
            }
        }
        let spend = self.others.entry(scope.clone()).or_default();
        spend.used = now.0;
        spend
    }
}
