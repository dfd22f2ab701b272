//! Tasks that are not completed.

use serde_json::Value;

use super::edits::text;
use crate::canonical::canonical;
use crate::step::Call;

/// The task a worker is at, and how many calls it made for it since the last progress.
#[derive(Default)]
pub(super) struct Tasks {
    current: Option<String>,
    calls: u64,
    done: usize,
}

impl Tasks {
    pub fn progress(&mut self) {
        self.calls = 0;
    }

    /// Enters a call; the number of calls of its task from the eleventh on.
    pub fn call(&mut self, task: Option<&str>, call: &Call) -> Option<u64> {
        if let Some(task) = task {
            self.start(Some(format!("field {task}")));
        }
        if self.tool(task.is_some(), call) || self.current.is_none() {
            return None;
        }
        self.calls += 1;
        (self.calls > 10).then_some(self.calls)
    }

    fn start(&mut self, task: Option<String>) {
        if self.current != task {
            self.current = task;
            self.calls = 0;
        }
    }

    /// Whether the call starts or completes a task.
    fn tool(&mut self, named: bool, call: &Call) -> bool {
        let tools = ["TaskUpdate", "task_update", "TodoWrite", "todo_write", "update_plan", "write_todos"];
        if !tools.contains(&call.tool.as_str()) {
            return false;
        }
        let list = ["todos", "plan"].iter().find_map(|key| call.args[*key].as_array());
        let items: Vec<&Value> = list.map_or_else(|| vec![&call.args], |list| list.iter().collect());
        let is = |item: &Value, states: &[&str]| item["status"].as_str().is_some_and(|s| states.contains(&s));
        let done: Vec<&&Value> = items.iter().filter(|item| is(item, &["completed", "done"])).collect();
        let completed = if list.is_some() {
            let before = std::mem::replace(&mut self.done, done.len());
            done.len() > before
        } else {
            !done.is_empty()
        };
        if completed {
            self.calls = 0;
        }
        if named {
            return completed;
        }
        let started = items.iter().find(|item| is(item, &["in_progress"])).map(|item| name(item));
        let ends = list.is_some() || done.iter().any(|item| Some(name(item)) == self.current);
        match started {
            Some(task) if Some(&task) != self.current.as_ref() => {
                self.start(Some(task));
                true
            }
            None if ends => {
                self.start(None);
                true
            }
            _ => completed,
        }
    }
}

/// An item's id; without one, what it says.
fn name(item: &Value) -> String {
    for key in ["id", "taskId"] {
        if !item[key].is_null() {
            return format!("id {}", text(&item[key]));
        }
    }
    let mut item = item.clone();
    if let Some(members) = item.as_object_mut() {
        members.remove("status");
        members.remove("activeForm");
    }
    canonical(&item)
}
