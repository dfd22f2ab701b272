//! Codex. An unknown key drops the whole answer, so nothing is written that it does not know; it cannot be stopped
//! in the middle of a turn, so every further call is refused.

use deloop_types::{Action, Decision, ToolResult};
use serde_json::{Map, Value, json};

use crate::Base;
use crate::agents::codex::{failure_from_printed, is_subagent_notification};
use crate::hooks::reply::{line, message};
use crate::hooks::snake::{Sent, kind};
use crate::hooks::wiring::{FailOpen, HandlerShape, JsonHooks, Settings, TIMEOUT, Wiring};
use crate::hooks::{Encoded, HookAgent, HookError, HookEvent, HookKind, PromptAuthor};

pub(crate) struct CodexHook;

impl HookAgent for CodexHook {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex"
    }

    fn verified(&self) -> bool {
        true
    }

    fn wiring(&self) -> &'static Wiring {
        &Wiring {
            resume: "codex resume {session}",
            model: "-m",
            programs: &["codex"],
            base: Base::Variable("CODEX_HOME", ".codex"),
            user: "hooks.json",
            project: ".codex/hooks.json",
            file: Settings::Json(JsonHooks {
                events: &[
                    "PreToolUse",
                    "PostToolUse",
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
            then: "start codex and approve the hooks in /hooks: until you approve them, Codex silently skips them",
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<HookEvent, HookError> {
        let sent = Sent::read(bytes)?;
        let mut event = sent.event(PromptAuthor::Human, kind)?;
        event.mark_notice(is_subagent_notification);
        event.attended = match sent.permission_mode.as_str() {
            Some("bypassPermissions" | "dontAsk") => Some(false),
            Some("default" | "acceptEdits" | "plan") => Some(true),
            _ => None,
        };
        if event.kind == HookKind::PostCall
            && let Some(call) = event.calls.first_mut()
        {
            // The exit code is not told, except in the words of some tools.
            let outcome = sent.tool_response.as_str().and_then(failure_from_printed);
            call.result = Some(ToolResult::new(sent.tool_response).with_outcome(outcome));
        }
        Ok(event)
    }

    fn encode(&self, event: &HookEvent, decision: &Decision) -> Encoded {
        use Action::{Block, Continue, Nudge, Stop, Warn};
        use HookKind::{PostCall, PreCall, Prompt};
        let mut specific = Map::new();
        let mut out = Map::new();
        let carried = match (event.kind, decision.action) {
            (_, Continue) => return Encoded::nothing(),
            (PreCall | PostCall | Prompt | HookKind::Stop, Warn) => Warn,
            // At the end of a turn it outweighs another hook that keeps the agent going.
            (HookKind::Stop, Stop) => {
                out.insert("continue".to_owned(), json!(false));
                out.insert("stopReason".to_owned(), json!(message(decision)));
                Stop
            }
            // A message for the model would keep it going as well, so only the person gets it.
            (HookKind::Stop, _) if event.continued => Warn,
            (PreCall, Block | Stop) => {
                specific.insert("permissionDecision".to_owned(), json!("deny"));
                specific.insert("permissionDecisionReason".to_owned(), json!(message(decision)));
                Block
            }
            // A session that was ended for good takes no further prompt; a turn that runs can't be ended.
            (Prompt, Stop) => {
                out.insert("continue".to_owned(), json!(false));
                out.insert("stopReason".to_owned(), json!(message(decision)));
                Block
            }
            (PreCall | PostCall | Prompt, _) => {
                specific.insert("additionalContext".to_owned(), json!(message(decision)));
                Nudge
            }
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
