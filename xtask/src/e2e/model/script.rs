//! What the fake model says: the same call for ever, or a session written down turn by turn.

use serde_json::{Value, json};

/// One thing the model wants done, before it is known which tools the agent offers.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Shell(String),
    Read { path: String },
    Write { path: String, content: String },
    Edit { path: String, old: String, new: String },
}

/// One answer of the model.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    Text(String),
    Acts(Vec<Act>),
    /// Words, then calls.
    Both(String, Vec<Act>),
}

/// Every answer of the model, in order.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// `max` times the next of these acts, over and over, then a closing text.
    Loop { acts: Vec<Act>, max: usize },
    /// These turns, then a closing text.
    Turns(Vec<Turn>),
    /// The next of these acts, over and over, until a request holds `told`; then `instead`, whose output holds `done`, and a
    /// closing text.
    UntilTold { acts: Vec<Act>, told: &'static str, instead: Act, done: &'static str },
    /// No answer, ever.
    Silent,
}

/// What the model says when it has nothing left to do.
pub(crate) const CLOSING: &str = "All of it is done.";

impl Script {
    /// The answer to the request number `index` that offered a shell, from 0.
    pub(crate) fn turn(&self, index: usize, request: &Value) -> Turn {
        let turn = match self {
            Self::Loop { acts, max } => acts
                .iter()
                .cycle()
                .nth(index)
                .filter(|_| index < *max)
                .map(|act| Turn::Acts(vec![act.clone()])),
            Self::Turns(turns) => turns.get(index).cloned(),
            Self::Silent => None,
            Self::UntilTold { acts, told, instead, done } => {
                let request = request.to_string();
                let next =
                    if request.contains(told) { Some(instead) } else { acts.iter().cycle().nth(index) };
                next.filter(|_| !request.contains(done)).map(|act| Turn::Acts(vec![act.clone()]))
            }
        };
        turn.unwrap_or_else(|| Turn::Text(CLOSING.to_owned()))
    }
}

/// A call of a tool that the agent has offered.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) args: Value,
}

/// The shells of the agents, with the shape of their arguments.
const SHELLS: [&str; 6] = ["Bash", "exec_command", "shell_command", "shell", "bash", "run_shell_command"];

/// Whether a request that offers these tools belongs to the session, and not to some side errand
/// of the agent such as finding a title.
pub(crate) fn has_shell(tools: &[String]) -> bool {
    SHELLS.iter().any(|shell| offers(tools, shell))
}

/// The act as a call of one of these tools: the agent's own for files, its shell for what it has none for.
pub(crate) fn call(act: &Act, tools: &[String], id: String) -> Option<Call> {
    let native = match act {
        Act::Shell(command) => return shell(command, tools, id),
        Act::Read { path } => [
            ("Read", json!({"file_path": path})),
            ("read_file", json!({"file_path": path})),
            ("view", json!({"path": path})),
            ("read", json!({"filePath": path})),
        ]
        .to_vec(),
        Act::Write { path, content } => [
            ("Write", json!({"file_path": path, "content": content})),
            ("write_file", json!({"file_path": path, "content": content})),
            ("create", json!({"path": path, "file_text": content})),
            ("write", json!({"filePath": path, "content": content})),
        ]
        .to_vec(),
        Act::Edit { path, old, new } => edits(path, old, new).to_vec(),
    };
    // Copilot and opencode share the name `edit` and differ in the arguments; the neighbour tells them apart.
    let copilot = offers(tools, "view");
    for (tool, args) in native {
        let fits = tool != "edit" || args.get(if copilot { "path" } else { edit_key(tools) }).is_some();
        if fits && offers(tools, tool) {
            return Some(Call { id, tool: tool.to_owned(), args });
        }
    }
    shell(&as_command(act), tools, id)
}

fn edits(path: &str, old: &str, new: &str) -> [(&'static str, Value); 5] {
    [
        ("Edit", json!({"file_path": path, "old_string": old, "new_string": new})),
        (
            "replace",
            json!({"file_path": path, "old_string": old, "new_string": new, "instruction": "set the value"}),
        ),
        ("edit", json!({"path": path, "old_str": old, "new_str": new})),
        ("edit", json!({"filePath": path, "oldString": old, "newString": new})),
        ("edit", json!({"file_path": path, "old_string": old, "new_string": new})),
    ]
}

fn edit_key(tools: &[String]) -> &'static str {
    if offers(tools, "run_shell_command") { "file_path" } else { "filePath" }
}

fn shell(command: &str, tools: &[String], id: String) -> Option<Call> {
    let tool = SHELLS.into_iter().find(|shell| offers(tools, shell))?;
    let args = match tool {
        "exec_command" => json!({"cmd": command}),
        "shell" => json!({"command": ["bash", "-c", command]}),
        "shell_command" => json!({"command": command}),
        "run_shell_command" => json!({"command": command, "description": "run it", "is_background": false}),
        _ => json!({"command": command, "description": "run it"}),
    };
    Some(Call { id, tool: tool.to_owned(), args })
}

fn as_command(act: &Act) -> String {
    match act {
        Act::Shell(command) => command.clone(),
        Act::Read { path } => format!("cat '{path}'"),
        Act::Write { path, content } => format!("printf '%s' '{content}' > '{path}'"),
        Act::Edit { path, old, new } => format!("sed -i 's/{old}/{new}/' '{path}'"),
    }
}

fn offers(tools: &[String], name: &str) -> bool {
    tools.iter().any(|tool| tool == name)
}
