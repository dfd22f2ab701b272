use std::collections::BTreeSet;
use std::time::Duration;

use deloop_store::{RecordName, SharedRecords, StoreError};
use deloop_types::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures::ReportFigures;
use super::tables::{PairFigures, ReportTables, projects_of};
use crate::money::{SHARED, UtcDay};
use crate::project::Project;

/// The report of a day is due this long after its end, in milliseconds.
const DUE_AFTER: u64 = 5 * 60_000;
/// How long servers remember that a report was raised.
const RAISED: Duration = Duration::from_secs(3 * 24 * 3600);

/// What was spent on one day (UTC), by project, model and agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "deloop report --daily --json")]
pub struct DailyReport {
    /// The day.
    pub date: String,
    /// All projects of the report.
    pub total: ReportFigures,
    /// The same on the day before.
    pub day_before: ReportFigures,
    /// The projects, by cost.
    pub projects: Vec<ProjectDay>,
}

/// What a project spent on one day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectDay {
    /// The project. `(other)` stands for those beyond the limit.
    pub project: String,
    /// All of the project.
    pub total: ReportFigures,
    /// The same on the day before.
    pub day_before: ReportFigures,
    /// By model and agent, by cost.
    pub rows: Vec<ReportRow>,
}

/// What one agent spent on one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportRow {
    /// The model; `unknown` if the agent doesn't name it.
    pub model: String,
    /// The agent; `main` for the main agent of a session.
    pub agent: String,
    /// The figures of the day.
    pub figures: ReportFigures,
    /// The same on the day before.
    pub day_before: ReportFigures,
}

/// Returns the report of a day, for one project or for all.
///
/// # Errors
/// When the shared records fail.
pub(crate) fn daily(
    records: &dyn SharedRecords,
    project: Option<&Project>,
    day: UtcDay,
    now: Millis,
) -> Result<DailyReport, StoreError> {
    let names: BTreeSet<String> = match project {
        Some(project) => BTreeSet::from([project.to_string()]),
        None => {
            let mut names = projects_of(records, day, now)?;
            names.extend(projects_of(records, day.plus(-1), now)?);
            names.into_iter().collect()
        }
    };
    let (mut total, mut day_before) = (ReportFigures::default(), ReportFigures::default());
    let mut projects = Vec::with_capacity(names.len());
    for name in names {
        let of = |day| ReportTables::of(&name, day).read_day(records, now);
        let of_project = project_day(name.clone(), of(day)?, of(day.plus(-1))?);
        total.add(&of_project.total);
        day_before.add(&of_project.day_before);
        projects.push(of_project);
    }
    projects.sort_by_key(|project| std::cmp::Reverse(project.total.exact.cost));
    Ok(DailyReport { date: day.date(), total, day_before, projects })
}

fn project_day(project: String, today: PairFigures, mut before: PairFigures) -> ProjectDay {
    let (mut total, mut day_before) = (ReportFigures::default(), ReportFigures::default());
    before.values().for_each(|figures| day_before.add(figures));
    let mut rows: Vec<ReportRow> = Vec::with_capacity(today.len());
    for ((model, agent), figures) in today {
        total.add(&figures);
        let day_before = before.remove(&(model.clone(), agent.clone())).unwrap_or_default();
        rows.push(ReportRow { model, agent, figures, day_before });
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.figures.exact.cost));
    ProjectDay { project, total, day_before, rows }
}

/// Returns yesterday's report to the one server that asks first, from five past midnight (UTC). `None` to all others, and
/// if nothing happened yesterday.
///
/// # Errors
/// When the shared records fail.
pub(crate) fn due(records: &dyn SharedRecords, now: Millis) -> Result<Option<DailyReport>, StoreError> {
    let today = UtcDay::of(now);
    if now.since(today.start()) < DUE_AFTER {
        return Ok(None);
    }
    let yesterday = today.plus(-1);
    let name = format!("report/{}", yesterday.date());
    if !records.claim(RecordName::new(SHARED, &name), RAISED, now)? {
        return Ok(None);
    }
    let report = daily(records, None, yesterday, now)?;
    Ok((report.total != ReportFigures::default()).then_some(report))
}
