//! Claude Code. The stop that always works is the one from `PostToolBatch`.

use deloop_types::{Action, Decision, Outcome, ToolResult};
use serde_json::{Map, Value, json};

use crate::Base;
use crate::agents::claude_code::{is_task_notification, of_failure, of_response, of_shown};
use crate::hooks::rehearsal;
use crate::hooks::reply::{line, message};
use crate::hooks::snake::{Sent, kind, text};
use crate::hooks::wiring::{FailOpen, HandlerShape, JsonHooks, Settings, TIMEOUT, Wiring};
use crate::hooks::{Encoded, HookAgent, HookCall, HookError, HookEvent, HookKind, PromptAuthor};

pub(crate) struct ClaudeCodeHook;

impl HookAgent for ClaudeCodeHook {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn alias(&self) -> Option<&'static str> {
        Some("claude")
    }

    fn verified(&self) -> bool {
        true
    }

    fn wiring(&self) -> &'static Wiring {
        &Wiring {
            resume: "claude --resume {session}",
            model: "--model",
            programs: &["claude"],
            base: Base::Variable("CLAUDE_CONFIG_DIR", ".claude"),
            user: "settings.json",
            project: ".claude/settings.json",
            file: Settings::Json(JsonHooks {
                events: &[
                    "PreToolUse",
                    "PostToolUse",
                    "PostToolUseFailure",
                    "PostToolBatch",
                    "UserPromptSubmit",
                    "Stop",
                    "SubagentStop",
                    "PreCompact",
                    "SessionStart",
                    "SessionEnd",
                ],
                shape: HandlerShape::Group { matcher: None },
                command: "command",
                timeout: ("timeout", TIMEOUT),
                typed: true,
                named: false,
                version: None,
                fail_open: FailOpen::ByItself,
            }),
            then: "",
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<HookEvent, HookError> {
        let sent = Sent::read(bytes)?;
        let mut event = sent.event(PromptAuthor::Human, kind)?;
        event.mark_notice(is_task_notification);
        event.attended = match sent.permission_mode.as_str() {
            Some("bypassPermissions" | "dontAsk") => Some(false),
            Some("default" | "acceptEdits" | "plan") => Some(true),
            _ => None,
        };
        match event.kind {
            HookKind::PostCall => {
                let outcome = Some(of_response(tool(&event), &sent.tool_response));
                answer(&mut event, ToolResult::new(sent.tool_response).with_outcome(outcome));
            }
            HookKind::Failure => {
                let stopped = sent.is_interrupt == Value::Bool(true);
                let told = of_failure(tool(&event), sent.error.as_str().unwrap_or_default());
                let outcome = Some(if stopped { Outcome::Cancelled } else { told });
                answer(&mut event, ToolResult::new(sent.error).with_outcome(outcome));
            }
            HookKind::Batch => event.calls = sent.tool_calls.iter().filter_map(batched).collect(),
            _ => {}
        }
        Ok(event)
    }

    fn rehearsal(&self, session: &str, lap: u32) -> Vec<Value> {
        let failed = json!({"error": "Exit code 2\nmake: *** No rule to make target"});
        let call = rehearsal::event(session, "", lap, json!({"tool_response": "Error: Exit code 2"}));
        vec![
            rehearsal::event(session, "PreToolUse", lap, Value::Null),
            rehearsal::event(session, "PostToolUseFailure", lap, failed),
            rehearsal::event(session, "PostToolBatch", lap, json!({"tool_calls": [call]})),
        ]
    }

    fn subagent_transcript(&self, session: &str, subagent: &str) -> Option<String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let folder = session.strip_suffix(".jsonl").filter(|_| subagent.chars().all(is_plain))?;
        Some(format!("{folder}/subagents/agent-{subagent}.jsonl"))
    }

    fn encode(&self, event: &HookEvent, decision: &Decision) -> Encoded {
        use Action::{Ask, Block, Continue, Nudge, Stop, Warn};
        use HookKind::{Batch, Failure, PostCall, PreCall, Prompt, SessionStart};
        let mut specific = Map::new();
        let mut out = Map::new();
        let carried = match (event.kind, decision.action) {
            (_, Continue) => return Encoded::nothing(),
            (PreCall | PostCall | Failure | Batch | Prompt | SessionStart | HookKind::Stop, Warn) => Warn,
            (PreCall, Ask | Block | Stop) => {
                let deed = if decision.action == Ask { "ask" } else { "deny" };
                specific.insert("permissionDecision".to_owned(), json!(deed));
                specific.insert("permissionDecisionReason".to_owned(), json!(message(decision)));
                decision.action
            }
            // At the end of a turn it outweighs another hook that keeps the agent going.
            (PostCall | Batch | HookKind::Stop, Stop) => Stop,
            // A message for the model would keep it going as well, so only the person gets it.
            (HookKind::Stop, Nudge | Ask | Block) if event.continued => Warn,
            // A session that was ended for good takes no further prompt.
            (Prompt, Stop) => {
                out.insert("decision".to_owned(), json!("block"));
                out.insert("reason".to_owned(), json!(message(decision)));
                Stop
            }
            // `continue: false` is ignored after a failure; the batch that follows stops.
            (Failure, Stop) => return Encoded::nothing(),
            (PreCall | PostCall | Failure | Batch | Prompt | SessionStart, _) => {
                specific.insert("additionalContext".to_owned(), json!(message(decision)));
                Nudge
            }
            _ => return Encoded::nothing(),
        };
        if carried == Stop {
            // Alone it would let a call that is about to be made run first: hence the refusal as well.
            out.insert("continue".to_owned(), json!(false));
            out.insert("stopReason".to_owned(), json!(message(decision)));
        }
        if !specific.is_empty() {
            specific.insert("hookEventName".to_owned(), json!(event.name));
            out.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
        }
        out.insert("systemMessage".to_owned(), json!(line(decision, carried)));
        Encoded::json(out, carried)
    }
}

fn answer(event: &mut HookEvent, result: ToolResult) {
    if let Some(call) = event.calls.first_mut() {
        call.result = Some(result);
    }
}

/// The tool that an event is about.
fn tool(event: &HookEvent) -> &str {
    event.calls.first().map_or("", |call| call.call.tool.as_str())
}

/// One call of a batch, with what the model sees of its result: whether it went well is only told in words.
fn batched(sent: &Sent) -> Option<HookCall> {
    let said = text(&sent.tool_response).unwrap_or_default();
    let call = sent.call()?;
    let mut result = ToolResult::default();
    result.outcome = of_shown(&call.tool, &said);
    result.output = sent.tool_response.clone();
    Some(HookCall { call, result: Some(result), in_transcript: None })
}
