//! Cursor. Written after its documentation; never run against the real program. It cannot be stopped: every further
//! call is refused.

use deloop_types::{Action, Call, Decision, Outcome, ToolResult};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Base;
use crate::hooks::rehearsal;
use crate::hooks::reply::{line, message};
use crate::hooks::snake::{name_in, text};
use crate::hooks::wiring::{FailOpen, HandlerShape, JsonHooks, Settings, TIMEOUT, Wiring};
use crate::hooks::{Encoded, HookAgent, HookCall, HookError, HookEvent, HookKind, HookPrompt, PromptAuthor};
use crate::json::bounded::read_json;

pub(crate) struct CursorHook;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CursorEvent {
    conversation_id: Value,
    hook_event_name: Value,
    transcript_path: Value,
    cwd: Value,
    tool_name: Value,
    tool_input: Value,
    tool_use_id: Value,
    tool_output: Value,
    error_message: Value,
    failure_type: Value,
    prompt: Value,
}

impl HookAgent for CursorHook {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn title(&self) -> &'static str {
        "Cursor"
    }

    fn verified(&self) -> bool {
        false
    }

    fn wiring(&self) -> &'static Wiring {
        &Wiring {
            resume: "cursor-agent --resume {session}",
            model: "",
            programs: &["cursor-agent", "cursor"],
            base: Base::Home,
            user: ".cursor/hooks.json",
            project: ".cursor/hooks.json",
            file: Settings::Json(JsonHooks {
                events: &[
                    "preToolUse",
                    "postToolUse",
                    "postToolUseFailure",
                    "beforeSubmitPrompt",
                    "stop",
                    "subagentStop",
                    "preCompact",
                    "sessionStart",
                    "sessionEnd",
                ],
                shape: HandlerShape::Flat,
                command: "command",
                timeout: ("timeout", TIMEOUT),
                typed: false,
                named: false,
                version: Some(1),
                fail_open: FailOpen::ByItself,
            }),
            then: "based on Cursor's documentation and never tested with Cursor itself: check `deloop status` after its next session",
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<HookEvent, HookError> {
        let sent: CursorEvent = read_json(bytes)
            .map_err(|e| HookError(format!("the event isn't JSON in the expected form: {e}")))?;
        let name = text(&sent.hook_event_name);
        let name = name.ok_or_else(|| HookError("the event has no `hook_event_name`".to_owned()))?;
        let kind = match name.as_str() {
            "preToolUse" => HookKind::PreCall,
            "postToolUse" => HookKind::PostCall,
            "postToolUseFailure" => HookKind::Failure,
            "beforeSubmitPrompt" => HookKind::Prompt,
            "stop" | "subagentStop" => HookKind::Stop,
            "preCompact" => HookKind::Compact,
            "sessionStart" => HookKind::SessionStart,
            "sessionEnd" => HookKind::SessionEnd,
            _ => HookKind::Other,
        };
        let result = match kind {
            HookKind::PostCall => Some((exit(&sent.tool_output), sent.tool_output)),
            HookKind::Failure => Some((failed(&sent.failure_type), sent.error_message)),
            _ => None,
        };
        let result = result.map(|(outcome, output)| ToolResult::new(output).with_outcome(Some(outcome)));
        let call = text(&sent.tool_name).map(|tool| {
            let mut made = Call::new(tool, sent.tool_input);
            made.id = text(&sent.tool_use_id);
            made
        });
        let session = name_in(&sent.conversation_id);
        Ok(HookEvent {
            kind,
            session: session
                .ok_or_else(|| HookError(format!("the event `{name}` has no `conversation_id`")))?,
            calls: call
                .into_iter()
                .map(|call| HookCall { call, result: result.clone(), in_transcript: None })
                .collect(),
            prompt: text(&sent.prompt).map(|text| HookPrompt { text, by: PromptAuthor::Human }),
            transcript: text(&sent.transcript_path),
            cwd: text(&sent.cwd),
            name,
            ..HookEvent::default()
        })
    }

    fn rehearsal(&self, session: &str, lap: u32) -> Vec<Value> {
        // A command that fails is no failure of the tool.
        let output = r#"{"output":"make: *** No rule to make target","exitCode":2}"#;
        [("preToolUse", Value::Null), ("postToolUse", json!({"tool_output": output}))]
            .into_iter()
            .map(|(name, more)| {
                let mut event = rehearsal::event(session, name, lap, more);
                event["conversation_id"] = json!(session);
                event
            })
            .collect()
    }

    fn encode(&self, event: &HookEvent, decision: &Decision) -> Encoded {
        use Action::{Ask, Block, Continue, Nudge, Stop, Warn};
        use HookKind::{PostCall, PreCall};
        let mut out = Map::new();
        let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
        let carried = match (event.kind, decision.action) {
            (_, Continue | Warn) => return Encoded::nothing(),
            (PreCall, Ask | Block | Stop) => {
                let carried = decision.action.min(Block);
                put("permission", json!(if carried == Ask { "ask" } else { "deny" }));
                put("user_message", json!(line(decision, carried)));
                put("agent_message", json!(message(decision)));
                carried
            }
            (PostCall, _) => {
                put("additional_context", json!(message(decision)));
                Nudge
            }
            _ => return Encoded::nothing(),
        };
        Encoded::json(out, carried)
    }
}

/// How a tool that ran ended: a command says so in the JSON of its output.
fn exit(output: &Value) -> Outcome {
    let parsed = output.as_str().and_then(|text| read_json::<Value>(text.as_bytes()).ok());
    let code = parsed.as_ref().unwrap_or(output).get("exitCode").and_then(Value::as_i64);
    if code.is_some_and(|code| code != 0) { Outcome::Error } else { Outcome::Ok }
}

fn failed(kind: &Value) -> Outcome {
    match kind.as_str() {
        Some("timeout") => Outcome::Timeout,
        Some("permission_denied") => Outcome::Denied,
        _ => Outcome::Error,
    }
}
