//! Edits, plans and tasks of made-up sessions.

use serde_json::{Value, json};

use super::Rng;

/// How a plan is kept.
pub(super) enum Planning {
    /// In a file.
    File(&'static str),
    /// In a tool's list, with or without ids.
    List(bool),
}

impl Planning {
    pub fn choose(rng: &mut Rng) -> Self {
        match rng.below(4) {
            0 => Self::List(true),
            1 => Self::List(false),
            _ => Self::File(rng.pick(&["PLAN.md", "docs/plans/login.md", "TODO.md"])),
        }
    }
}

pub(super) fn test_run(rng: &mut Rng, shell: &str) -> Value {
    let command = rng.pick(&["cargo test", "pytest -q", "npm test"]);
    json!({"tool": shell, "args": {"command": command}})
}

pub(super) fn edit(rng: &mut Rng, file: &str) -> Value {
    let (old, new) = (format!("x = {}", rng.below(9)), format!("x = {}", rng.below(9)));
    let path = if rng.percent(20) { format!("./{file}") } else { file.to_owned() };
    match rng.below(5) {
        0 => json!({"tool": "Write", "args": {"file_path": path, "content": new}}),
        1 => {
            let patch =
                format!("*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch");
            json!({"tool": "apply_patch", "args": {"input": patch}})
        }
        _ => json!({"tool": "Edit", "args": {"file_path": path, "old_string": old, "new_string": new}}),
    }
}

pub(super) fn plan(rng: &mut Rng, planning: &Planning) -> Value {
    match planning {
        Planning::File(file) => plan_file(rng, file),
        Planning::List(ids) => plan_list(rng, *ids),
    }
}

fn body(rng: &mut Rng) -> String {
    let mark = rng.pick(&["", "- [ ] ", "- [x] "]);
    format!("{mark}{}", rng.pick(&["use a file", "use a table", "ask first"]))
}

fn plan_file(rng: &mut Rng, file: &str) -> Value {
    let heading = rng.pick(&["## Storage", "## Storage", "## API"]);
    let args = match rng.below(5) {
        0 => {
            let text = format!("# Plan\n## Storage\n{}\n\n## API\n{}\n", body(rng), body(rng));
            return json!({"tool": "Write", "args": {"file_path": file, "content": text}});
        }
        1 => json!({"old_string": body(rng), "new_string": body(rng)}),
        2 => {
            let old = body(rng);
            json!({"new_string": format!("{heading}\n{old}\n{}", body(rng)), "old_string": format!("{heading}\n{old}")})
        }
        _ => {
            json!({"old_string": format!("{heading}\n{}", body(rng)), "new_string": format!("{heading}\n{}", body(rng))})
        }
    };
    let mut call = json!({"tool": "Edit", "args": args});
    call["args"]["file_path"] = json!(file);
    call
}

fn plan_list(rng: &mut Rng, ids: bool) -> Value {
    let texts = ["read", "fix", "test", "ask", "look", "stop", "plan"];
    let items: Vec<Value> = (0..1 + rng.below(3))
        .map(|at| {
            let state = rng.pick(&["pending", "in_progress", "completed"]);
            let mut item =
                json!({"content": format!("{} {}", rng.pick(&texts), rng.below(3)), "status": state});
            if ids {
                item["id"] = json!(at.to_string());
            }
            item
        })
        .collect();
    json!({"tool": "TodoWrite", "args": {"todos": items}})
}

pub(super) fn task(rng: &mut Rng) -> Value {
    let state = rng.pick(&["in_progress", "in_progress", "in_progress", "completed", "pending"]);
    let mut args = json!({"taskId": rng.below(2).to_string(), "status": state});
    if rng.percent(20) {
        args["subject"] = json!(rng.pick(&["login", "logout"]));
    }
    json!({"tool": "TaskUpdate", "args": args})
}
