use std::collections::HashMap;
use std::time::Duration;

use deloop_types::{Millis, SessionId};

use super::calendar::UtcDay;
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
    Day(UtcDay),
    Project(Project, UtcDay),
    Session(Project, SessionId),
}

impl SpendScope {
    pub(super) fn table(&self) -> TableName {
        let (group, name, days) = match self {
            Self::Day(day) => (SHARED.to_owned(), format!("spend/{}", day.date()), 3),
            Self::Project(project, day) => (group(project.as_str()), format!("spend/{}", day.date()), 3),
            Self::Session(project, session) => (group(project.as_str()), format!("session/{session}"), 8),
        };
        TableName { group, name, kept: DAY * days }
    }
}

/// What was spent in a scope.
#[derive(Debug, Clone, Copy, Default)]
struct ScopeSpend {
    /// What the shared records have.
    shared: i64,
    /// What isn't in the shared records yet.
    waiting: i64,
    /// Whether `shared` was read.
    is_read: bool,
    used: i64,
}

/// What was spent in the scopes in use.
#[derive(Default)]
pub(super) struct ScopeSpends(HashMap<SpendScope, ScopeSpend>);

impl ScopeSpends {
    /// Returns what was spent, if the shared total was read once.
    pub(super) fn read(&mut self, scope: &SpendScope, now: Millis) -> Option<i64> {
        let spend = self.0.get_mut(scope)?;
        spend.used = now.0;
        spend.is_read.then(|| spend.shared.saturating_add(spend.waiting))
    }

    /// Returns what is known to be spent, which may lack what other servers counted.
    pub(super) fn known(&self, scope: &SpendScope) -> i64 {
        self.0.get(scope).map_or(0, |spend| spend.shared.saturating_add(spend.waiting))
    }

    pub(super) fn charge(&mut self, scope: &SpendScope, amount: i64, now: Millis) {
        let spend = self.entry(scope, now);
        spend.waiting = spend.waiting.saturating_add(amount);
    }

    /// Enters a total that the shared records returned. Totals only grow, so an older one changes nothing.
    pub(super) fn learn(&mut self, scope: &SpendScope, shared: i64, now: Millis) {
        let spend = self.entry(scope, now);
        (spend.shared, spend.is_read) = (spend.shared.max(shared), true);
    }

    /// Enters that an amount was added to the shared total.
    pub(super) fn added(&mut self, scope: &SpendScope, amount: i64, total: i64) {
        if let Some(spend) = self.0.get_mut(scope) {
            spend.waiting = spend.waiting.saturating_sub(amount);
            (spend.shared, spend.is_read) = (spend.shared.max(total), true);
        }
    }

    /// Returns the scopes that were used in the last minute.
    pub(super) fn in_use(&self, now: Millis) -> Vec<SpendScope> {
        let recent = self.0.iter().filter(|(_, spend)| now.since(Millis(spend.used)) < 60_000);
        recent.map(|(scope, _)| scope.clone()).collect()
    }

    fn entry(&mut self, scope: &SpendScope, now: Millis) -> &mut ScopeSpend {
        if self.0.len() >= SCOPES && !self.0.contains_key(scope) {
            self.0.retain(|_, spend| spend.waiting != 0 || now.since(Millis(spend.used)) < HOUR);
            if self.0.len() >= SCOPES {
                self.0.retain(|_, spend| spend.waiting != 0);
            }
        }
        let spend = self.0.entry(scope.clone()).or_default();
        spend.used = now.0;
        spend
    }
}
