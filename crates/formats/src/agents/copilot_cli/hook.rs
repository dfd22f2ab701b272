//! Copilot CLI. It fails closed: a non-zero exit code refuses the call, so the code is always 0. It speaks two
//! dialects: events that are registered with a capital letter come with the names that Claude Code uses, the others
//! and every permission request in its own. Only a permission request can end the run.

use deloop_types::{Action, Call, Decision, Millis, Outcome, ToolResult};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Base;
use crate::agents::copilot_cli::of_text;
use crate::hooks::rehearsal;
use crate::hooks::reply::message;
use crate::hooks::snake::{self, name_in, text};
use crate::hooks::wiring::{FailOpen, HandlerShape, JsonHooks, Settings, TIMEOUT, Wiring};
use crate::hooks::{Encoded, HookAgent, HookCall, HookError, HookEvent, HookKind, HookPrompt, PromptAuthor};
use crate::json::bounded::read_json;
use crate::timeout::refine;

pub(crate) struct CopilotCliHook;

/// Its own dialect; most events of it do not say their names.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CopilotEvent {
    hook_name: Value,
    session_id: Value,
    timestamp: Value,
    cwd: Value,
    tool_name: Value,
    tool_args: Value,
    tool_input: Value,
    tool_result: Value,
    prompt: Value,
    initial_prompt: Value,
    reason: Value,
    source: Value,
}

impl HookAgent for CopilotCliHook {
    fn name(&self) -> &'static str {
        "copilot-cli"
    }

    fn title(&self) -> &'static str {
        "Copilot CLI"
    }

    fn alias(&self) -> Option<&'static str> {
        Some("copilot")
    }

    fn verified(&self) -> bool {
        true
    }

    fn wiring(&self) -> &'static Wiring {
        &Wiring {
            resume: "copilot --resume {session}",
            model: "--model",
            programs: &["copilot"],
            base: Base::Variable("COPILOT_HOME", ".copilot"),
            user: "hooks/deloop.json",
            project: ".github/hooks/deloop.json",
            file: Settings::Json(JsonHooks {
                events: &[
                    "PreToolUse",
                    "PermissionRequest",
                    "PostToolUse",
                    "UserPromptSubmit",
                    "Stop",
                    "PreCompact",
                    "SessionStart",
                    "SessionEnd",
                ],
                shape: HandlerShape::Flat,
                command: "bash",
                timeout: ("timeoutSec", TIMEOUT),
                typed: true,
                named: false,
                version: Some(1),
                fail_open: FailOpen::OrZero,
            }),
            then: "",
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<HookEvent, HookError> {
        let sent = snake::Sent::read(bytes)?;
        if !sent.is_named() {
            return own_dialect(bytes);
        }
        let mut event = sent.event(PromptAuthor::Human, |name| match name {
            "ErrorOccurred" => HookKind::Other,
            "UserPromptSubmitted" => HookKind::Prompt,
            "AgentStop" => HookKind::Stop,
            "PermissionRequest" => HookKind::Permission,
            name => snake::kind(name),
        })?;
        if event.kind == HookKind::PostCall
            && let Some(call) = event.calls.first_mut()
        {
            call.result =
                Some(result(&call.call.tool, &sent.tool_result, "result_type", "text_result_for_llm"));
        }
        Ok(event)
    }

    fn rehearsal(&self, session: &str, lap: u32) -> Vec<Value> {
        let text = "make: *** No rule to make target\n<shellId: 0 completed with exit code 2>";
        let result = json!({"result_type": "success", "text_result_for_llm": text});
        let ask = json!({"hookName": "permissionRequest", "sessionId": session, "toolName": "bash",
            "toolInput": {"command": rehearsal::COMMAND}});
        let unnamed = |name: &str, more: Value| {
            let mut event = rehearsal::event(session, name, lap, more);
            event["tool_use_id"] = Value::Null;
            event
        };
        vec![unnamed("PreToolUse", Value::Null), ask, unnamed("PostToolUse", json!({"tool_result": result}))]
    }

    fn encode(&self, event: &HookEvent, decision: &Decision) -> Encoded {
        use Action::{Ask, Block, Continue, Nudge, Stop, Warn};
        use HookKind::{Permission, PostCall, PreCall};
        let mut out = Map::new();
        let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
        let carried = match (event.kind, decision.action) {
            // It has no way to tell the person without telling the agent.
            (_, Continue | Warn) => return Encoded::nothing(),
            // The permission request that follows ends the run; if none came the last time, refuse.
            (PreCall, Stop) if !event.again => return Encoded::nothing(),
            (PreCall, Ask | Block | Stop) => {
                put("permissionDecision", json!(if decision.action == Ask { "ask" } else { "deny" }));
                put("permissionDecisionReason", json!(message(decision)));
                decision.action.min(Block)
            }
            (Permission, Stop) => {
                put("behavior", json!("deny"));
                put("message", json!(message(decision)));
                put("interrupt", json!(true));
                Stop
            }
            (PreCall | PostCall, _) => {
                put("additionalContext", json!(message(decision)));
                Nudge
            }
            _ => return Encoded::nothing(),
        };
        Encoded::json(out, carried)
    }
}

fn own_dialect(bytes: &[u8]) -> Result<HookEvent, HookError> {
    let sent: CopilotEvent =
        read_json(bytes).map_err(|e| HookError(format!("the event isn't JSON in the expected form: {e}")))?;
    let name = text(&sent.hook_name).unwrap_or_else(|| sent.guess().to_owned());
    let kind = match name.as_str() {
        "preToolUse" => HookKind::PreCall,
        "permissionRequest" => HookKind::Permission,
        "postToolUse" => HookKind::PostCall,
        "userPromptSubmitted" => HookKind::Prompt,
        "agentStop" | "subagentStop" => HookKind::Stop,
        "preCompact" => HookKind::Compact,
        "sessionStart" => HookKind::SessionStart,
        "sessionEnd" => HookKind::SessionEnd,
        _ => HookKind::Other,
    };
    let session = name_in(&sent.session_id);
    let tool = text(&sent.tool_name);
    let result = (kind == HookKind::PostCall).then(|| {
        result(tool.as_deref().unwrap_or_default(), &sent.tool_result, "resultType", "textResultForLlm")
    });
    let args = if sent.tool_args.is_null() { sent.tool_input } else { sent.tool_args };
    let call = tool.map(|tool| Call::new(tool, arguments(args)));
    Ok(HookEvent {
        kind,
        session: session.ok_or_else(|| HookError(format!("the event `{name}` has no `sessionId`")))?,
        calls: call
            .into_iter()
            .map(|call| HookCall { call, result: result.clone(), in_transcript: None })
            .collect(),
        prompt: text(&sent.prompt).map(|text| HookPrompt { text, by: PromptAuthor::Human }),
        cwd: text(&sent.cwd),
        ts: sent.timestamp.as_i64().map(Millis),
        name,
        ..HookEvent::default()
    })
}

impl CopilotEvent {
    /// The event's name by what is in it.
    fn guess(&self) -> &'static str {
        if !self.tool_result.is_null() {
            "postToolUse"
        } else if !self.tool_name.is_null() {
            "preToolUse"
        } else if !self.prompt.is_null() {
            "userPromptSubmitted"
        } else if !self.reason.is_null() {
            "sessionEnd"
        } else if !self.source.is_null() || !self.initial_prompt.is_null() {
            "sessionStart"
        } else {
            ""
        }
    }
}

/// Arguments come as JSON or as JSON in a string.
fn arguments(sent: Value) -> Value {
    match sent.as_str().and_then(|s| read_json(s.as_bytes()).ok()) {
        Some(inner) => inner,
        None => sent,
    }
}

fn result(tool: &str, sent: &Value, kind: &str, said: &str) -> ToolResult {
    let said = sent.get(said).unwrap_or(sent);
    let kind = sent.get(kind).and_then(Value::as_str);
    let mut outcome = match kind {
        Some("failure") => Outcome::Error,
        Some("denied" | "rejected") => Outcome::Denied,
        _ => Outcome::Ok,
    };
    // A command that fails is a success to it; only the text says how it ended.
    if outcome == Outcome::Ok
        && let Some(told) = said.as_str().and_then(|said| of_text(tool, said))
    {
        outcome = told;
    }
    let outcome = refine(outcome, said.as_str().unwrap_or_default());
    ToolResult::new(said.clone()).with_outcome(Some(outcome))
}
