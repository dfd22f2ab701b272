//! The field names that several agents share with Claude Code.

use deloop_types::{Call, Millis, limits};
use serde::Deserialize;
use serde_json::Value;

use crate::json::bounded::read_json;

use super::{HookCall, HookError, HookEvent, HookKind, HookPrompt, PromptAuthor};

/// An event as it is sent. Every field may be absent or of an unexpected type. Fields that aren't understood are
/// ignored, so that a new version of an agent costs at most the fields that it changed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sent {
    session_id: Value,
    agent_id: Value,
    transcript_path: Value,
    cwd: Value,
    pub(crate) permission_mode: Value,
    hook_event_name: Value,
    timestamp: Value,
    tool_name: Value,
    tool_input: Value,
    tool_use_id: Value,
    tool_call_id: Value,
    pub(crate) tool_response: Value,
    pub(crate) tool_result: Value,
    pub(crate) error: Value,
    pub(crate) is_interrupt: Value,
    pub(crate) tool_calls: Vec<Sent>,
    prompt: Value,
    prompt_id: Value,
    pub(crate) source: Value,
    pub(crate) trigger: Value,
    stop_hook_active: Value,
    last_assistant_message: Value,
    prompt_response: Value,
}

/// Returns a non-empty string.
pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|s| !s.is_empty()).map(str::to_owned)
}

/// Returns a name, shortened if necessary.
pub(crate) fn name_in(value: &Value) -> Option<String> {
    text(value).map(limits::name)
}

impl Sent {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, HookError> {
        read_json(bytes).map_err(|e| HookError(format!("the event isn't JSON in the expected form: {e}")))
    }

    /// Returns whether it names its event.
    pub(crate) fn is_named(&self) -> bool {
        self.hook_event_name.is_string()
    }

    /// Converts the event; `kind` maps its name to a kind. Calls have no results yet.
    pub(crate) fn event(
        &self,
        by: PromptAuthor,
        kind: impl FnOnce(&str) -> HookKind,
    ) -> Result<HookEvent, HookError> {
        let name = name_in(&self.hook_event_name);
        let name = name.ok_or_else(|| HookError("the event has no `hook_event_name`".to_owned()))?;
        let session = name_in(&self.session_id);
        let kind = kind(&name);
        Ok(HookEvent {
            kind,
            continued: kind == HookKind::Stop && self.stop_hook_active == Value::Bool(true),
            session: session.ok_or_else(|| HookError(format!("the event `{name}` has no `session_id`")))?,
            subagent: name_in(&self.agent_id),
            calls: self.call().map(|call| self.hook_call(call)).into_iter().collect(),
            prompt: text(&self.prompt).map(|text| HookPrompt { text, by }),
            turn: text(&self.prompt_id),
            said: text(&self.last_assistant_message).or_else(|| text(&self.prompt_response)),
            transcript: text(&self.transcript_path),
            cwd: text(&self.cwd),
            attended: None,
            again: false,
            ts: self.timestamp.as_i64().map(Millis).or_else(|| Millis::parse(self.timestamp.as_str()?)),
            name,
        })
    }

    fn hook_call(&self, call: Call) -> HookCall {
        let in_transcript = text(&self.tool_call_id).filter(|id| call.id.as_ref() != Some(id));
        HookCall { call, result: None, in_transcript }
    }

    /// Returns the call it is about.
    pub(crate) fn call(&self) -> Option<Call> {
        let id = text(&self.tool_use_id).or_else(|| text(&self.tool_call_id));
        Some({
            let mut made = Call::new(text(&self.tool_name)?, self.tool_input.clone());
            made.id = id;
            made
        })
    }
}

/// Returns the kind for an event name of Claude Code.
pub(crate) fn kind(name: &str) -> HookKind {
    match name {
        "PreToolUse" => HookKind::PreCall,
        "PostToolUse" => HookKind::PostCall,
        "PostToolUseFailure" => HookKind::Failure,
        "PostToolBatch" => HookKind::Batch,
        "UserPromptSubmit" => HookKind::Prompt,
        "Stop" | "SubagentStop" => HookKind::Stop,
        "PreCompact" => HookKind::Compact,
        "SessionStart" => HookKind::SessionStart,
        "SessionEnd" => HookKind::SessionEnd,
        _ => HookKind::Other,
    }
}
