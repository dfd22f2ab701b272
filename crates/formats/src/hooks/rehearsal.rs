//! A canonical stuck session in each agent's format: the same command, failing the same way each time.

use serde_json::{Value, json};

/// The repeated command.
pub(crate) const COMMAND: &str = "make check";

/// Returns an event in Claude Code's format, with additional fields.
pub(crate) fn event(session: &str, name: &str, lap: u32, more: Value) -> Value {
    let mut event = json!({
        "session_id": session, "hook_event_name": name, "cwd": "/", "permission_mode": "bypassPermissions",
        "tool_name": "Bash", "tool_input": {"command": COMMAND}, "tool_use_id": format!("call-{lap}"),
    });
    if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
        event.extend(more);
    }
    event
}

/// Returns the events of one lap in Codex's format.
pub(crate) fn plain(session: &str, lap: u32) -> Vec<Value> {
    let response =
        json!({"tool_response": "Process exited with code 2\nOutput:\nmake: *** No rule to make target"});
    vec![event(session, "PreToolUse", lap, Value::Null), event(session, "PostToolUse", lap, response)]
}
