//! A canonical stuck session in the agents' dialects: the same command again and again, failing in the same way.

use serde_json::{Value, json};

/// The command that is stuck.
pub(crate) const COMMAND: &str = "make check";

/// An event in the words of Claude Code, with more fields.
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

/// As Codex says it.
pub(crate) fn plain(session: &str, lap: u32) -> Vec<Value> {
    let response =
        json!({"tool_response": "Process exited with code 2\nOutput:\nmake: *** No rule to make target"});
    vec![event(session, "PreToolUse", lap, Value::Null), event(session, "PostToolUse", lap, response)]
}
