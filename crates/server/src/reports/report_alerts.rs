//! Reports and rises as alerts.

use deloop_policy::{AlertKind, AlertLevel};
use deloop_types::Millis;

use super::{DailyReport, Rise};
use crate::alerts::Alert;
use crate::project::Project;

/// How many projects an alert lists.
const LISTED: usize = 8;

impl DailyReport {
    /// Returns the alert with this report. It is about all projects.
    pub(crate) fn alert(&self, now: Millis) -> Alert {
        let total = &self.total;
        let reason = format!(
            "{}: {} requests for ${:.2}, of which ${:.2} in loops; {} loops, {} sessions stopped. The day before: ${:.2}.",
            self.date,
            total.requests,
            total.cost_usd,
            total.loop_waste_usd,
            total.loops,
            total.terminated,
            self.day_before.cost_usd
        );
        let project = Project::default();
        let alert = Alert::new(AlertKind::ReportDaily, AlertLevel::Info, &project, now, &[&self.date]);
        let add = |alert: Alert, day: &super::ProjectDay| {
            let spent = format!("${:.2}, ${:.2} in loops", day.total.cost_usd, day.total.loop_waste_usd);
            alert.detail(&day.project, &spent)
        };
        self.projects.iter().take(LISTED).fold(alert.because(&reason), add)
    }
}

impl Rise {
    /// Returns the alert about this rise.
    pub(crate) fn alert(&self, now: Millis) -> Alert {
        let project = Project::parse(&self.project).unwrap_or_default();
        let episode = [self.week.as_str(), &self.agent, &self.model];
        let reason = format!(
            "{} with {} loops more often: {} loops in {} sessions this week, {:.1} per 100 sessions after {:.1} before.",
            self.agent, self.model, self.loops, self.sessions, self.per_100, self.per_100_before
        );
        Alert::new(AlertKind::LoopRise, AlertLevel::Warning, &project, now, &episode)
            .because(&reason)
            .detail("agent", &self.agent)
            .detail("model", &self.model)
            .detail("week", &self.week)
    }
}
