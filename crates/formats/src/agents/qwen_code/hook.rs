//! Qwen Code. It calls `UserPromptSubmit` before every request to the model: only there it can be stopped, and only
//! the first one of a turn is a person's text; the others are empty, of the same `prompt_id`, or both.

use deloop_types::{Action, Decision, Outcome, ToolResult};
use serde_json::{Map, Value, json};

use crate::Base;
use crate::hooks::rehearsal;
use crate::hooks::reply::{line, message};
use crate::hooks::snake::{Sent, kind};
use crate::hooks::wiring::{FailOpen, HandlerShape, JsonHooks, Settings, TIMEOUT, Wiring};
use crate::hooks::{Encoded, HookAgent, HookError, HookEvent, HookKind, PromptAuthor};
use crate::text::is_element;
use crate::timeout::refine;

pub(crate) struct QwenCodeHook;

impl HookAgent for QwenCodeHook {
    fn name(&self) -> &'static str {
        "qwen-code"
    }

    fn title(&self) -> &'static str {
        "Qwen Code"
    }

    fn alias(&self) -> Option<&'static str> {
        Some("qwen")
    }

    fn verified(&self) -> bool {
        true
    }

    fn wiring(&self) -> &'static Wiring {
        &Wiring {
            resume: "qwen --resume {session}",
            model: "-m",
            programs: &["qwen"],
            base: Base::Variable("QWEN_HOME", ".qwen"),
            user: "settings.json",
            project: ".qwen/settings.json",
            file: Settings::Json(JsonHooks {
                events: &[
                    "PreToolUse",
                    "PostToolUse",
                    "PostToolUseFailure",
                    "UserPromptSubmit",
                    "Stop",
                    "SubagentStop",
                    "PreCompact",
                    "SessionStart",
                    "SessionEnd",
                ],
                shape: HandlerShape::Group { matcher: None },
                command: "command",
                timeout: ("timeout", TIMEOUT * 1000),
                typed: true,
                named: true,
                version: None,
                fail_open: FailOpen::ByItself,
            }),
            then: "",
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<HookEvent, HookError> {
        let sent = Sent::read(bytes)?;
        let mut event = sent.event(PromptAuthor::HumanWhenNew, kind)?;
        event.mark_notice(|text| is_element(text, "task-notification"));
        event.attended = match sent.permission_mode.as_str() {
            Some("yolo" | "bypassPermissions") => Some(false),
            Some("default" | "plan" | "auto-edit" | "auto_edit" | "acceptEdits") => Some(true),
            _ => None,
        };
        let (outcome, output) = match event.kind {
            HookKind::PostCall => (Outcome::Ok, sent.tool_response),
            HookKind::Failure if sent.is_interrupt == Value::Bool(true) => (Outcome::Cancelled, sent.error),
            HookKind::Failure => (Outcome::Error, sent.error),
            _ => return Ok(event),
        };
        let outcome = refine(outcome, output.as_str().unwrap_or_default());
        if let Some(call) = event.calls.first_mut() {
            call.result = Some(ToolResult::new(output).with_outcome(Some(outcome)));
        }
        Ok(event)
    }

    fn rehearsal(&self, session: &str, lap: u32) -> Vec<Value> {
        let failed = json!({"error": "make: *** No rule to make target\nExit Code: 2"});
        let ask = json!({"prompt": if lap == 1 { "Check it" } else { "" }, "prompt_id": "p1"});
        vec![
            rehearsal::event(session, "UserPromptSubmit", lap, ask),
            rehearsal::event(session, "PreToolUse", lap, Value::Null),
            rehearsal::event(session, "PostToolUseFailure", lap, failed),
        ]
    }

    fn encode(&self, event: &HookEvent, decision: &Decision) -> Encoded {
        use Action::{Ask, Block, Continue, Nudge, Stop, Warn};
        use HookKind::{Failure, PostCall, PreCall, Prompt};
        let mut specific = Map::new();
        let mut out = Map::new();
        let carried = match (event.kind, decision.action) {
            (_, Continue) => return Encoded::nothing(),
            (PreCall | PostCall | Failure | Prompt | HookKind::Stop, Warn) => Warn,
            // A message for the model would keep it going as well, so only the person gets it.
            (HookKind::Stop, Nudge | Ask | Block) if event.continued => Warn,
            (PreCall, Ask | Block | Stop) => {
                let deed = if decision.action == Ask { "ask" } else { "deny" };
                specific.insert("permissionDecision".to_owned(), json!(deed));
                specific.insert("permissionDecisionReason".to_owned(), json!(message(decision)));
                decision.action.min(Block)
            }
            // At the end of a turn it outweighs another hook that keeps the agent going.
            (Prompt | HookKind::Stop, Stop) => {
                out.insert("continue".to_owned(), json!(false));
                out.insert("stopReason".to_owned(), json!(message(decision)));
                Stop
            }
            (PostCall | Failure | Prompt, _) => {
                specific.insert("additionalContext".to_owned(), json!(message(decision)));
                Nudge
            }
            // A message before a call is ignored: it waits for the result.
            _ => return Encoded::nothing(),
        };
        if !specific.is_empty() {
            specific.insert("hookEventName".to_owned(), json!(event.name));
            out.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
        }
        out.insert("systemMessage".to_owned(), json!(line(decision, carried)));
        Encoded::json(out, carried)
    }
}
