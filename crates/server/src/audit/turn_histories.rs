use std::collections::HashMap;

use deloop_types::{SessionId, Step};

use super::turn_history::{TurnForm, TurnHistory};
use crate::project::Project;

/// Number of sessions whose turns are kept.
const SESSIONS: usize = 10_000;

/// The turn histories of the sessions that were active last, in memory.
#[derive(Default)]
pub(crate) struct TurnHistories {
    form: TurnForm,
    sessions: HashMap<(Project, SessionId), (u64, TurnHistory)>,
    pushes: u64,
}

impl TurnHistories {
    pub(crate) fn new(form: TurnForm) -> Self {
        Self { form, ..Self::default() }
    }

    /// Adds a step to its session's history.
    pub(crate) fn push(&mut self, project: &Project, step: &Step) {
        self.pushes += 1;
        let key = (project.clone(), step.session.clone());
        if !self.sessions.contains_key(&key) && self.sessions.len() == SESSIONS {
            self.drop_oldest_half();
        }
        let new = || (0, TurnHistory::new(self.form));
        let (used, history) = self.sessions.entry(key).or_insert_with(new);
        *used = self.pushes;
        history.push(step);
    }

    /// Returns the history of a session.
    pub(crate) fn of(&self, project: &Project, session: &SessionId) -> Option<TurnHistory> {
        self.sessions.get(&(project.clone(), session.clone())).map(|(_, history)| history.clone())
    }

    /// Forgets a session.
    pub(crate) fn forget(&mut self, project: &Project, session: &SessionId) {
        self.sessions.remove(&(project.clone(), session.clone()));
    }

    fn drop_oldest_half(&mut self) {
        let mut used: Vec<u64> = self.sessions.values().map(|(used, _)| *used).collect();
        let middle = used.len() / 2;
        let (_, median, _) = used.select_nth_unstable(middle);
        let median = *median;
        self.sessions.retain(|_, (used, _)| *used >= median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_used_last_stay() {
        let (mut all, project) = (TurnHistories::default(), Project::default());
        for n in 0..=SESSIONS {
            all.push(&project, &Step::text(format!("s{n}"), "a"));
            all.push(&project, &Step::text("busy", "a"));
        }
        assert!(all.sessions.len() <= SESSIONS && all.of(&project, &"s0".into()).is_none());
        assert_eq!(all.of(&project, &"busy".into()).unwrap().count(), SESSIONS as u64 + 1);
    }
}
