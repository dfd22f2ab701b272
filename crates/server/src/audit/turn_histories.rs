use std::collections::{HashMap, VecDeque};

use deloop_formats::read_step;
use deloop_types::{Body, SessionId, Step};

use super::turn_history::{AnsweredCall, TurnForm, TurnHistory};
use crate::project::Project;

/// Number of sessions whose turns are kept.
const SESSIONS: usize = 5_000;
/// How much is kept of a session's steps until its turns are needed, in bytes.
const WAITING: usize = 16 << 10;
/// The same, if texts are kept.
const WAITING_TEXT: usize = 128 << 10;
/// A longer turn is added to the history at once, in bytes.
const LONG_TURN: usize = 4 << 10;

/// The turn histories of the sessions that were active last, in memory. Few sessions are ever stopped, so turns wait as they
/// were sent, and become a history when one is needed.
#[derive(Default)]
pub(crate) struct TurnHistories {
    form: TurnForm,
    projects: HashMap<Project, HashMap<SessionId, WaitingTurns>>,
    sessions: usize,
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

enum WaitingStep {
    /// As it was sent.
    Turn(Box<[u8]>),
    Answer(AnsweredCall),
}

impl WaitingStep {
    fn size(&self) -> usize {
        match self {
            Self::Turn(json) => json.len(),
            Self::Answer(_) => size_of::<Self>(),
        }
    }

    fn is_turn(&self) -> bool {
        matches!(self, Self::Turn(_))
    }
}

impl WaitingTurns {
    fn push(&mut self, step: &Step, json: &[u8], form: TurnForm) {
        let waiting = match &step.body {
            Body::Turn(_) if json.len() > LONG_TURN => {
                self.history = self.all();
                (self.waiting, self.size) = (VecDeque::new(), 0);
                self.history.push(step);
                self.turns += 1;
                return;
            }
            Body::Turn(_) => WaitingStep::Turn(json.into()),
            Body::Result(result) => WaitingStep::Answer(AnsweredCall::of(result, step.agent.as_deref())),
            Body::End => {
                *self = Self { used: self.used, history: TurnHistory::new(form), ..Self::default() };
                return;
            }
            _ => return,
        };
        self.turns += u64::from(waiting.is_turn());
        self.size += waiting.size();
        self.waiting.push_back(waiting);
        let most = if form == TurnForm::Text { WAITING_TEXT } else { WAITING };
        while self.size > most {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.size -= oldest.size();
            // What came before would leave a gap.
            self.history = TurnHistory::new(form);
        }
    }

    /// Returns the history, with the steps that wait.
    fn all(&self) -> TurnHistory {
        let mut history = self.history.clone();
        let waiting = self.waiting.iter().filter(|step| step.is_turn()).count() as u64;
        history.skip_to(self.turns.saturating_sub(waiting));
        for step in &self.waiting {
            match step {
                WaitingStep::Answer(answer) => history.push_answer(answer),
                WaitingStep::Turn(json) => read_step(json).iter().for_each(|step| history.push(step)),
            }
        }
        history
    }
}

impl TurnHistories {
    pub(crate) fn new(form: TurnForm) -> Self {
        Self { form, ..Self::default() }
    }

    /// Adds a step, with its text as it was sent, to its session's history.
    pub(crate) fn push(&mut self, project: &Project, step: &Step, json: &[u8]) {
        self.pushes += 1;
        let (form, used) = (self.form, self.pushes);
        if let Some(turns) = self.find(project, &step.session) {
            turns.used = used;
            turns.push(step, json, form);
            return;
        }
        if self.sessions == SESSIONS {
            self.drop_oldest_half();
        }
        let mut turns = WaitingTurns { used, history: TurnHistory::new(form), ..WaitingTurns::default() };
        turns.push(step, json, form);
        self.projects.entry(project.clone()).or_default().insert(step.session.clone(), turns);
        self.sessions += 1;
    }

    fn find(&mut self, project: &Project, session: &SessionId) -> Option<&mut WaitingTurns> {
        self.projects.get_mut(project)?.get_mut(session)
    }

    /// Returns the history of a session.
    pub(crate) fn of(&self, project: &Project, session: &SessionId) -> Option<TurnHistory> {
        self.projects.get(project)?.get(session).map(WaitingTurns::all)
    }

    /// Forgets a session.
    pub(crate) fn forget(&mut self, project: &Project, session: &SessionId) {
        let removed = self.projects.get_mut(project).and_then(|sessions| sessions.remove(session));
        self.sessions -= usize::from(removed.is_some());
    }

    fn drop_oldest_half(&mut self) {
        let all = self.projects.values().flat_map(HashMap::values);
        let mut used: Vec<u64> = all.map(|turns| turns.used).collect();
        let middle = used.len() / 2;
        let (_, median, _) = used.select_nth_unstable(middle);
        let median = *median;
        self.projects.retain(|_, sessions| {
            sessions.retain(|_, turns| turns.used >= median);
            !sessions.is_empty()
        });
        self.sessions = self.projects.values().map(HashMap::len).sum();
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
        assert!(all.sessions <= SESSIONS && all.of(&project, &"s0".into()).is_none());
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
        let turns = all.find(&Project::default(), &"s".into()).unwrap();
        assert!(turns.size <= WAITING);
        let history = all.of(&Project::default(), &"s".into()).unwrap();
        let last = history.turns().last().unwrap();
        assert_eq!((history.count(), last.turn, last.text.as_str()), (10_000, 10_000, "turn 9999"));
    }
}
