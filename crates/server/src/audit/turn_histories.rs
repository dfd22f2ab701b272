use std::collections::{HashMap, VecDeque};

use deloop_formats::read_step;
use deloop_types::{Body, SessionId, Step};

use super::turn_history::{TurnForm, TurnHistory};
use crate::project::Project;

/// Number of sessions whose turns are kept.
const SESSIONS: usize = 5_000;
/// How much is kept of a session's steps until its turns are needed, in bytes.
const WAITING: usize = 16 << 10;
/// The same, if texts are kept.
const WAITING_TEXT: usize = 128 << 10;
/// A longer step is added to the history at once, in bytes.
const LONG_STEP: usize = 4 << 10;

/// The turn histories of the sessions that were active last, in memory. Few sessions are ever stopped, so steps wait as they
/// were sent, and become a history when one is needed.
#[derive(Default)]
pub(crate) struct TurnHistories {
    form: TurnForm,
    sessions: HashMap<(Project, SessionId), WaitingTurns>,
    pushes: u64,
}

#[derive(Default)]
struct WaitingTurns {
    used: u64,
    /// What came before the steps that wait.
    history: TurnHistory,
    waiting: VecDeque<WaitingStep>,
    size: usize,
    /// Number of turns so far.
    turns: u64,
}

struct WaitingStep {
    json: Box<[u8]>,
    is_turn: bool,
}

impl WaitingTurns {
    fn push(&mut self, step: &Step, json: &[u8], form: TurnForm) {
        let is_turn = match &step.body {
            Body::Turn(_) => true,
            Body::Result(_) => false,
            Body::End => {
                *self = Self { used: self.used, history: TurnHistory::new(form), ..Self::default() };
                return;
            }
            _ => return,
        };
        let json: Box<[u8]> = match &step.body {
            Body::Result(_) if json.len() > LONG_STEP => without_output(step),
            _ if json.len() > LONG_STEP => {
                self.history = self.all();
                (self.waiting, self.size) = (VecDeque::new(), 0);
                self.history.push(step);
                self.turns += u64::from(is_turn);
                return;
            }
            _ => json.into(),
        };
        self.turns += u64::from(is_turn);
        self.size += json.len();
        self.waiting.push_back(WaitingStep { json, is_turn });
        let most = if form == TurnForm::Text { WAITING_TEXT } else { WAITING };
        while self.size > most {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.size -= oldest.json.len();
            // What came before would leave a gap.
            self.history = TurnHistory::new(form);
        }
    }

    /// Returns the history, with the steps that wait.
    fn all(&self) -> TurnHistory {
        let mut history = self.history.clone();
        let waiting = self.waiting.iter().filter(|step| step.is_turn).count() as u64;
        history.skip_to(self.turns.saturating_sub(waiting));
        for step in self.waiting.iter().filter_map(|step| read_step(&step.json).ok()) {
            history.push(&step);
        }
        history
    }
}

/// Returns a result without what came back, which isn't part of a history.
fn without_output(step: &Step) -> Box<[u8]> {
    let mut step = step.clone();
    if let Body::Result(result) = &mut step.body {
        result.output = serde_json::Value::Null;
    }
    serde_json::to_vec(&step).unwrap_or_default().into()
}

impl TurnHistories {
    pub(crate) fn new(form: TurnForm) -> Self {
        Self { form, ..Self::default() }
    }

    /// Adds a step, with its text as it was sent, to its session's history.
    pub(crate) fn push(&mut self, project: &Project, step: &Step, json: &[u8]) {
        self.pushes += 1;
        let key = (project.clone(), step.session.clone());
        if !self.sessions.contains_key(&key) && self.sessions.len() == SESSIONS {
            self.drop_oldest_half();
        }
        let form = self.form;
        let new = || WaitingTurns { history: TurnHistory::new(form), ..WaitingTurns::default() };
        let turns = self.sessions.entry(key).or_insert_with(new);
        turns.used = self.pushes;
        turns.push(step, json, form);
    }

    /// Returns the history of a session.
    pub(crate) fn of(&self, project: &Project, session: &SessionId) -> Option<TurnHistory> {
        self.sessions.get(&(project.clone(), session.clone())).map(WaitingTurns::all)
    }

    /// Forgets a session.
    pub(crate) fn forget(&mut self, project: &Project, session: &SessionId) {
        self.sessions.remove(&(project.clone(), session.clone()));
    }

    fn drop_oldest_half(&mut self) {
        let mut used: Vec<u64> = self.sessions.values().map(|turns| turns.used).collect();
        let middle = used.len() / 2;
        let (_, median, _) = used.select_nth_unstable(middle);
        let median = *median;
        self.sessions.retain(|_, turns| turns.used >= median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(all: &mut TurnHistories, step: &Step) {
        all.push(&Project::default(), step, &serde_json::to_vec(step).unwrap());
    }

    #[test]
    fn the_sessions_used_last_stay() {
        let (mut all, project) = (TurnHistories::default(), Project::default());
        for n in 0..=SESSIONS {
            push(&mut all, &Step::text(format!("s{n}"), "a"));
            push(&mut all, &Step::text("busy", "a"));
        }
        assert!(all.sessions.len() <= SESSIONS && all.of(&project, &"s0".into()).is_none());
        assert_eq!(all.of(&project, &"busy".into()).unwrap().count(), SESSIONS as u64 + 1);
    }

    /// Whether steps wait or are added at once, the history is the same.
    #[test]
    fn steps_that_wait_become_the_same_history() {
        let mut steps = Vec::new();
        for n in 0..30 {
            let long = if n % 10 == 5 { 6_000 } else { 50 };
            let args = serde_json::json!({"command": format!("ls {}", "x".repeat(long + n))});
            steps.push(Step::call("s", "bash", args).with_id(format!("c{n}")));
            let output = "y".repeat(long);
            steps.push(Step::result("s", n % 2 == 0, output).for_call(format!("c{n}")));
        }
        let (mut all, mut expected) = (TurnHistories::default(), TurnHistory::new(TurnForm::Short));
        for step in &steps {
            push(&mut all, step);
            expected.push(step);
        }
        assert_eq!(all.of(&Project::default(), &"s".into()).unwrap(), expected);
    }

    #[test]
    fn a_long_session_takes_little_memory_and_knows_how_long_it_is() {
        let mut all = TurnHistories::default();
        for n in 0..10_000 {
            push(&mut all, &Step::text("s", format!("turn {n}")));
        }
        let turns = &all.sessions[&(Project::default(), "s".into())];
        assert!(turns.size <= WAITING);
        let history = all.of(&Project::default(), &"s".into()).unwrap();
        let last = history.turns().last().unwrap();
        assert_eq!((history.count(), last.turn, last.text.as_str()), (10_000, 10_000, "turn 9999"));
    }
}
