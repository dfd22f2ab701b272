//! Gemini CLI. It has a dialect of its own, and a message before a call is ignored: it has to wait for the result.

use deloop_types::{Action, Decision, ToolResult};
use serde_json::{Map, Value, json};

use crate::Base;
use crate::agents::gemini_cli::of_status;
use crate::hooks::rehearsal;
use crate::hooks::reply::{line, message};
use crate::hooks::snake::Sent;
use crate::hooks::wiring::{FailOpen, HandlerShape, JsonHooks, Settings, TIMEOUT, Wiring};
use crate::hooks::{Encoded, HookAgent, HookError, HookEvent, HookKind, PromptAuthor};

pub(crate) struct GeminiCliHook;

impl HookAgent for GeminiCliHook {
    fn name(&self) -> &'static str {
        "gemini-cli"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn alias(&self) -> Option<&'static str> {
        Some("gemini")
    }

    fn verified(&self) -> bool {
        true
    }

    fn wiring(&self) -> &'static Wiring {
        &Wiring {
            resume: "gemini --resume {session}",
            model: "-m",
            programs: &["gemini"],
            base: Base::Variable("GEMINI_CLI_HOME", ""),
            user: ".gemini/settings.json",
            project: ".gemini/settings.json",
            file: Settings::Json(JsonHooks {
                events: &[
                    "BeforeTool",
                    "AfterTool",
                    "BeforeAgent",
                    "AfterAgent",
                    "SessionStart",
                    "SessionEnd",
                ],
                shape: HandlerShape::Group { matcher: Some("*") },
                command: "command",
                timeout: ("timeout", TIMEOUT * 1000),
                typed: true,
                named: true,
                version: None,
                fail_open: FailOpen::Exec,
            }),
            then: "",
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<HookEvent, HookError> {
        let sent = Sent::read(bytes)?;
        // A hook that keeps the agent going does it with a prompt like any other.
        let mut event = sent.event(PromptAuthor::HumanUntilContinued, |name| match name {
            "BeforeTool" => HookKind::PreCall,
            "AfterTool" => HookKind::PostCall,
            "BeforeAgent" => HookKind::Prompt,
            "AfterAgent" => HookKind::Stop,
            // It comes before every request to the model, whether anything is compressed or not; a person who asks for
            // it means it.
            "PreCompress" if sent.trigger.as_str() == Some("manual") => HookKind::Compact,
            "SessionStart" => HookKind::SessionStart,
            "SessionEnd" => HookKind::SessionEnd,
            _ => HookKind::Other,
        })?;
        // Its own loop guard speaks to the model in this way.
        if let Some(prompt) = event.prompt.as_mut().filter(|a| a.text.starts_with("System: ")) {
            prompt.by = PromptAuthor::Harness;
        }
        if event.kind == HookKind::PostCall
            && let Some(call) = event.calls.first_mut()
        {
            call.result = Some(result(&call.call.tool, &sent.tool_response));
        }
        Ok(event)
    }

    fn rehearsal(&self, session: &str, lap: u32) -> Vec<Value> {
        let tool = "run_shell_command";
        let response = json!({"tool_name": tool, "tool_response": {"llmContent": "make: *** No rule to make target\nExit Code: 2"}});
        vec![
            rehearsal::event(session, "BeforeTool", lap, json!({"tool_name": tool})),
            rehearsal::event(session, "AfterTool", lap, response),
        ]
    }

    fn encode(&self, event: &HookEvent, decision: &Decision) -> Encoded {
        use Action::{Block, Continue, Nudge, Stop, Warn};
        use HookKind::{PostCall, PreCall, Prompt};
        let mut out = Map::new();
        let carried = match (event.kind, decision.action) {
            (_, Continue) => return Encoded::nothing(),
            (PreCall | PostCall | Prompt | HookKind::Stop, Warn) => Warn,
            (PreCall, Block) => {
                out.insert("decision".to_owned(), json!("deny"));
                out.insert("reason".to_owned(), json!(message(decision)));
                Block
            }
            // A message for the model would keep it going as well, so only the person gets it.
            (HookKind::Stop, Nudge | Action::Ask | Block) if event.continued => Warn,
            // At the end of a turn it outweighs another hook that keeps the agent going.
            (PreCall | PostCall | HookKind::Stop, Stop) => {
                out.insert("continue".to_owned(), json!(false));
                out.insert("stopReason".to_owned(), json!(message(decision)));
                Stop
            }
            (PostCall | Prompt, _) => {
                let context = json!({"hookEventName": event.name, "additionalContext": message(decision)});
                out.insert("hookSpecificOutput".to_owned(), context);
                Nudge
            }
            _ => return Encoded::nothing(),
        };
        out.insert("systemMessage".to_owned(), json!(line(decision, carried)));
        Encoded::json(out, carried)
    }
}

fn result(tool: &str, response: &Value) -> ToolResult {
    let content = response.get("llmContent").unwrap_or(response);
    let failed = response.get("error").is_some_and(|e| !e.is_null());
    let status = if failed { "error" } else { "success" };
    let outcome = of_status(status, tool, content.as_str().unwrap_or_default());
    let output = match content.as_str() {
        Some(text) => {
            // Numbers of processes change from call to call.
            let lines = text.lines().filter(|l| !l.starts_with("Process Group PGID:"));
            Value::String(lines.collect::<Vec<_>>().join("\n"))
        }
        None => content.clone(),
    };
    ToolResult::new(output).with_outcome(outcome)
}
