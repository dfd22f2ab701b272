use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::calendar::UtcDay;
use crate::reports::{OTHER, ReportTables, pair_of};

/// How many pairs of a model and an agent a project has per day and per week. The rest is counted together.
const PAIRS: usize = 200;
/// How many projects a day has in reports. The rest is counted together.
const PROJECTS: usize = 1_000;
/// The project that stands for the rest. No project can have this name.
const OTHER_PROJECTS: &str = "(other)";

/// How many projects may wait to be listed.
const UNLISTED: usize = 5_000;

/// The names that reports of the current day and week have: clients choose names, so there is a limit.
#[derive(Default)]
pub(super) struct Rosters {
    day: Option<UtcDay>,
    projects: HashMap<String, ProjectRoster>,
    /// The projects and days that the shared records don't list yet.
    unlisted: HashSet<(String, UtcDay)>,
}

/// The names of one project on one day.
pub(super) struct ProjectRoster {
    pub(super) tables: Arc<ReportTables>,
    pub(super) day: PairRoster,
    pub(super) week: PairRoster,
}

/// Pairs of a model and an agent.
#[derive(Default)]
pub(super) struct PairRoster(HashSet<String>);

impl PairRoster {
    /// Returns the pair that stands for a model and an agent.
    pub(super) fn pair(&mut self, model: Option<&str>, agent: Option<&str>) -> String {
        let pair = pair_of(model, agent);
        if self.0.contains(&pair) {
            return pair;
        }
        if self.0.len() >= PAIRS {
            return format!("{OTHER}\t{OTHER}");
        }
        self.0.insert(pair.clone());
        pair
    }

    fn learn(&mut self, pairs: Vec<String>) {
        self.0.extend(pairs);
    }
}

impl Rosters {
    /// Returns the name under which a project is reported.
    pub(super) fn reported<'a>(&mut self, project: &'a str, day: UtcDay) -> &'a str {
        if self.day != Some(day) {
            (self.day, self.projects) = (Some(day), HashMap::new());
        }
        let is_full = self.projects.len() >= PROJECTS && !self.projects.contains_key(project);
        if is_full { OTHER_PROJECTS } else { project }
    }

    /// Returns the names of a project on the current day.
    pub(super) fn of(&mut self, project: &str, day: UtcDay) -> &mut ProjectRoster {
        if !self.projects.contains_key(project) && self.unlisted.len() < UNLISTED {
            self.unlisted.insert((project.to_owned(), day));
        }
        self.projects.entry(project.to_owned()).or_insert_with(|| ProjectRoster {
            tables: Arc::new(ReportTables::of(project, day)),
            day: PairRoster::default(),
            week: PairRoster::default(),
        })
    }

    /// Returns whether a project is listed for a day.
    pub(super) fn is_listed(&self, project: &str, day: UtcDay) -> bool {
        self.unlisted.is_empty() || !self.unlisted.contains(&(project.to_owned(), day))
    }

    /// Returns the projects and days to list.
    pub(super) fn unlisted(&self) -> Vec<(String, UtcDay)> {
        self.unlisted.iter().cloned().collect()
    }

    /// Enters that a project is listed for a day, and the names that the shared records have.
    pub(super) fn listed(&mut self, project: &str, day: UtcDay, pairs: (Vec<String>, Vec<String>)) {
        self.unlisted.remove(&(project.to_owned(), day));
        if self.day == Some(day) {
            let roster = self.of(project, day);
            roster.day.learn(pairs.0);
            roster.week.learn(pairs.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_counted_together() {
        let mut roster = PairRoster::default();
        for n in 0..PAIRS {
            assert_eq!(roster.pair(Some(&format!("m{n}")), None), format!("m{n}\tmain"));
        }
        assert_eq!(roster.pair(Some("one more"), None), "other\tother");
        assert_eq!(roster.pair(Some("m7"), None), "m7\tmain");
        let mut rosters = Rosters::default();
        let day = UtcDay::parse("2026-11-15").unwrap();
        for n in 0..PROJECTS {
            let name = format!("p{n}");
            assert_eq!(rosters.reported(&name, day), name);
            rosters.of(&name, day);
        }
        assert_eq!(rosters.reported("one-more", day), "(other)");
        assert_eq!(rosters.reported("one-more", day.plus(1)), "one-more");
    }
}
