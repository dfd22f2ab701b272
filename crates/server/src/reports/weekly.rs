use std::collections::{BTreeMap, BTreeSet};

use deloop_store::{SharedRecords, StoreError};
use deloop_types::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rises::{Rise, rise_of};
use super::tables::{ReportTables, projects_of_week};
use crate::money::UtcDay;
use crate::project::Project;

/// How often agents loop, week by week. Weeks start on Monday (UTC).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "deloop report --weekly --json")]
pub struct WeeklyReport {
    /// The Mondays that the weeks start with, oldest first. The last week is the current one.
    pub weeks: Vec<String>,
    /// By project, agent and model, those with most loops first.
    pub groups: Vec<WeeklyLoops>,
}

/// The weeks of one agent with one model in one project. Lists have one number per week, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WeeklyLoops {
    /// The project.
    pub project: String,
    /// The agent; `main` for the main agent of a session.
    pub agent: String,
    /// The model; `unknown` if the agent doesn't name it.
    pub model: String,
    /// Sessions in which the agent used the model.
    pub sessions: Vec<u64>,
    /// Loops found.
    pub loops: Vec<u64>,
    /// Sessions that deloop stopped because of a loop.
    pub terminated: Vec<u64>,
    /// Loops per 100 sessions over all weeks; null without sessions.
    pub per_100: Option<f64>,
    /// The rise of the current week, if it is more than chance would explain.
    pub rise: Option<Rise>,
}

/// Returns the report of the last weeks, the current one included, for one project or for all.
///
/// # Errors
/// When the shared records fail.
pub(crate) fn weekly(
    records: &dyn SharedRecords,
    project: Option<&Project>,
    weeks: usize,
    now: Millis,
) -> Result<WeeklyReport, StoreError> {
    let last = UtcDay::of(now).monday();
    let back = |week: usize| i64::try_from(weeks - 1 - week).unwrap_or(0) * -7;
    let mondays: Vec<UtcDay> = (0..weeks).map(|week| last.plus(back(week))).collect();
    let mut groups: BTreeMap<(String, String, String), WeeklyLoops> = BTreeMap::new();
    for (week, monday) in mondays.iter().enumerate() {
        let names: BTreeSet<String> = match project {
            Some(project) => BTreeSet::from([project.to_string()]),
            None => projects_of_week(records, *monday, now)?.into_iter().collect(),
        };
        for project in names {
            for ((model, agent), figures) in ReportTables::of(&project, *monday).read_week(records, now)? {
                let key = (project.clone(), agent.clone(), model.clone());
                let group = groups.entry(key).or_insert_with(|| WeeklyLoops {
                    project: project.clone(),
                    agent,
                    model,
                    sessions: vec![0; weeks],
                    loops: vec![0; weeks],
                    terminated: vec![0; weeks],
                    per_100: None,
                    rise: None,
                });
                group.sessions[week] = figures.sessions;
                group.loops[week] = figures.loops;
                group.terminated[week] = figures.terminated;
            }
        }
    }
    let mut groups: Vec<WeeklyLoops> = groups.into_values().collect();
    for group in &mut groups {
        group.per_100 = per_100(&group.loops, &group.sessions);
        group.rise = rise_of(group, &last.date());
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.loops.iter().sum::<u64>()));
    Ok(WeeklyReport { weeks: mondays.iter().map(|monday| monday.date()).collect(), groups })
}

#[expect(clippy::cast_precision_loss, reason = "counts of sessions")]
fn per_100(loops: &[u64], sessions: &[u64]) -> Option<f64> {
    let (loops, sessions) = (loops.iter().sum::<u64>(), sessions.iter().sum::<u64>());
    (sessions > 0).then(|| 100.0 * loops as f64 / sessions as f64)
}
