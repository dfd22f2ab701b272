//! What all projects spent on a day. Each counts with at most its share, so that one project can't use up the budget of all.

use std::collections::HashMap;

use deloop_types::Millis;

use super::calendar::UtcDay;
use super::limits::BudgetLimits;
use super::scope::{SPENT, ScopeSpend};

/// What the field of a project starts with, in the table of a day.
const PROJECT: &str = "project/";

/// Returns the field of a project, in the table of a day.
pub(super) fn field(project: &str) -> String {
    format!("{PROJECT}{project}")
}

/// What the projects spent on each day in use.
#[derive(Default)]
pub(super) struct DaySpends {
    limits: BudgetLimits,
    days: HashMap<UtcDay, DaySpend>,
}

/// What the projects spent on one day.
#[derive(Default)]
struct DaySpend {
    projects: HashMap<String, ScopeSpend>,
    /// The sum of what each project spent, up to its share.
    counted: i64,
    /// What no project is known for.
    rest: i64,
    /// Whether the shared table was read.
    is_read: bool,
    used: i64,
}

impl DaySpends {
    pub(super) fn new(limits: BudgetLimits) -> Self {
        Self { limits, days: HashMap::new() }
    }

    /// Returns what a project sees as spent, if the shared table was read once: what it spent itself, and what the others did
    /// up to their shares.
    pub(super) fn read(&mut self, day: UtcDay, project: &str, now: Millis) -> Option<i64> {
        let known = self.days.get_mut(&day)?;
        known.used = now.0;
        known.is_read.then(|| self.known(day, project))
    }

    /// Returns the same, without what isn't known.
    pub(super) fn known(&self, day: UtcDay, project: &str) -> i64 {
        let Some(known) = self.days.get(&day) else { return 0 };
        let own = known.projects.get(project).map_or(0, ScopeSpend::total);
        let over = own.saturating_sub(own.min(self.limits.share(project)));
        known.counted.saturating_add(known.rest).saturating_add(over)
    }

    pub(super) fn charge(&mut self, day: UtcDay, project: &str, amount: i64, now: Millis) {
        self.change(day, project, now, |spend| spend.waiting = spend.waiting.saturating_add(amount));
    }

    /// Enters that an amount was added to the shared total of a project.
    pub(super) fn added(&mut self, day: UtcDay, project: &str, (amount, total): (i64, i64)) {
        let Some(used) = self.days.get(&day).map(|known| Millis(known.used)) else { return };
        self.change(day, project, used, |spend| {
            spend.waiting = spend.waiting.saturating_sub(amount);
            spend.shared = spend.shared.max(total);
        });
    }

    /// Enters the shared table of a day. Totals only grow, so older ones change nothing.
    pub(super) fn learn(&mut self, day: UtcDay, totals: &[(String, i64)], now: Millis) {
        for (field, total) in totals {
            match field.strip_prefix(PROJECT) {
                Some(project) => {
                    self.change(day, project, now, |spend| spend.shared = spend.shared.max(*total));
                }
                // Written by a release that added all projects up.
                None if field == SPENT => {
                    let known = self.day(day, now);
                    known.rest = known.rest.max(*total);
                }
                None => {}
            }
        }
        self.day(day, now).is_read = true;
    }

    /// Returns the days that were used in the last minute.
    pub(super) fn in_use(&self, now: Millis) -> Vec<UtcDay> {
        let recent = self.days.iter().filter(|(_, known)| now.since(Millis(known.used)) < 60_000);
        recent.map(|(day, _)| *day).collect()
    }

    fn change(&mut self, day: UtcDay, project: &str, now: Millis, change: impl FnOnce(&mut ScopeSpend)) {
        let share = self.limits.share(project);
        let known = self.day(day, now);
        let spend = match known.projects.get_mut(project) {
            Some(spend) => spend,
            None => known.projects.entry(project.to_owned()).or_default(),
        };
        let before = spend.total().min(share);
        change(spend);
        let after = spend.total().min(share);
        known.counted = known.counted.saturating_add(after.saturating_sub(before));
    }

    fn day(&mut self, day: UtcDay, now: Millis) -> &mut DaySpend {
        if !self.days.contains_key(&day) {
            // What waits for an earlier day is still sent, but nobody asks for its total any more.
            self.days.retain(|known, _| *known >= day.plus(-1));
        }
        let known = self.days.entry(day).or_default();
        known.used = known.used.max(now.0);
        known
    }
}
