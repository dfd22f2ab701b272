//! What the behavioral document checks besides its counter: edits, test edits, plans and tasks.

mod edits;
mod plan;
mod task;

use serde_json::Value;

use crate::shell;
use crate::step::{Call, Turn};
use crate::test_run::{failures, passed, runs_tests};
use edits::{Edit, Edits};
use plan::Plans;
use task::Tasks;

/// What one worker did: its calls with what they change, and the four checks.
#[derive(Default)]
pub(crate) struct Work {
    made: Vec<Made>,
    turns: u64,
    failures: Option<u64>,
    edits: Edits,
    test_edits: Edits,
    plans: Plans,
    tasks: Tasks,
}

/// A call, and what it changes if it does not fail.
struct Made {
    id: Option<String>,
    turn: u64,
    answered: bool,
    tests: bool,
    edits: Vec<Edit>,
    items: Option<plan::List>,
    /// Whether its changes still have to be counted.
    waits: bool,
}

/// The findings of one step: at most one a check.
#[derive(Default)]
pub(crate) struct Found {
    pub edits: Option<u64>,
    pub test_edits: Option<u64>,
    pub plans: Option<u64>,
    pub tasks: Option<u64>,
}

impl Work {
    /// A turn, or more of one: the changes of earlier turns count from now on; the new calls are entered.
    pub fn turn(&mut self, turn: &Turn) -> Found {
        let mut found = Found::default();
        if !turn.continued {
            self.turns += 1;
            let open: Vec<usize> = (0..self.made.len()).filter(|at| self.made[*at].waits).collect();
            found = self.count(&open);
        }
        for call in &turn.calls {
            let tasks = self.tasks.call(turn.task.as_deref(), call);
            found.tasks = found.tasks.max(tasks);
            let edits = edits::of(call);
            let items = plan::list(call);
            self.made.push(Made {
                id: call.id.clone(),
                turn: self.turns,
                answered: false,
                tests: is_test(call),
                waits: !edits.is_empty() || items.is_some(),
                edits,
                items,
            });
        }
        found
    }

    pub fn result(&mut self, result: &Value) -> Found {
        let at = match result["id"].as_str() {
            Some(id) => self.made.iter().rposition(|made| made.id.as_deref() == Some(id)),
            None => {
                let turn = self.made.iter().rev().find(|made| !made.answered).map(|made| made.turn);
                self.made.iter().position(|made| !made.answered && Some(made.turn) == turn)
            }
        };
        let Some(at) = at.filter(|at| !self.made[*at].answered) else {
            return Found::default();
        };
        self.made[at].answered = true;
        if self.made[at].tests
            && let Some(green) = passed(result)
        {
            let failures = if green { Some(0) } else { failures(result) };
            let fewer = failures.zip(self.failures).is_some_and(|(now, before)| now < before);
            self.failures = failures;
            if green || fewer {
                self.edits.forget();
                self.tasks.progress();
            }
            if green {
                self.test_edits.forget();
            }
        }
        if !self.made[at].waits {
            return Found::default();
        }
        if undone(result) {
            self.made[at].waits = false;
            return Found::default();
        }
        self.count(&[at])
    }

    fn count(&mut self, calls: &[usize]) -> Found {
        let mut found = Found::default();
        for at in calls {
            let made = &mut self.made[*at];
            made.waits = false;
            found.edits = found.edits.max(self.edits.count(&made.edits, |_| true));
            found.test_edits = found.test_edits.max(self.test_edits.count(&made.edits, edits::is_test_file));
            found.plans = found.plans.max(self.plans.count(&made.edits, made.items.as_ref()));
        }
        Found {
            edits: found.edits.filter(|count| *count >= 3),
            test_edits: found.test_edits.filter(|count| *count >= 3),
            plans: found.plans.filter(|count| *count >= 3),
            tasks: None,
        }
    }
}

fn is_test(call: &Call) -> bool {
    call.tool == "run_tests" || shell::command(call).is_some_and(|command| runs_tests(&command))
}

/// Whether the call changed nothing: it failed, was refused or was called off.
fn undone(result: &Value) -> bool {
    let named =
        matches!(result["outcome"].as_str(), Some("error" | "timeout" | "invalid" | "denied" | "cancelled"));
    let unnamed = result["outcome"].is_null()
        && (result["ok"] == false || result["ok"].is_null() && result["error_type"].is_string());
    named || unnamed
}
