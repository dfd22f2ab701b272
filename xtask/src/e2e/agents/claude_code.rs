//! Claude Code.

use std::io;

use serde_json::{Value, json};

use super::{Agent, EndHook, PROMPT, Package, Start, add_settings, strings};
use crate::e2e::place::Place;
use crate::e2e::stand_in::{Answer, BLOCK, NUDGE, STOP, StandIn, TIMEOUT, Want};

pub(super) struct ClaudeCode;

const EVENTS: [&str; 4] = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch"];

impl Agent for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn package(&self) -> Option<Package> {
        Some(Package {
            folder: "claude-code",
            name: "@anthropic-ai/claude-code",
            version: "2.1.325",
            program: "claude",
        })
    }

    fn start(&self, _place: &Place, port: u16) -> io::Result<Start> {
        Ok(Start {
            // Root may not skip permissions, so the tools are named.
            arguments: strings([
                "-p",
                PROMPT,
                "--allowedTools",
                "Bash,Read,Write,Edit",
                "--output-format",
                "stream-json",
                "--verbose",
            ]),
            environment: vec![
                ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}")),
                ("ANTHROPIC_API_KEY", "fake".to_owned()),
                // It overrides a hook that keeps it going, after eight times unless this says otherwise.
                ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", "1000".to_owned()),
                ("DISABLE_TELEMETRY", "1".to_owned()),
                ("DISABLE_ERROR_REPORTING", "1".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ],
        })
    }

    fn further(&self, arguments: &[String]) -> Option<Vec<String>> {
        Some([strings(["--continue"]), arguments.to_vec()].concat())
    }

    fn shows_documents(&self) -> bool {
        true
    }

    fn end_hook(&self) -> Option<EndHook> {
        Some(EndHook { settings: ".claude/settings.json", event: "Stop", matcher: None })
    }

    fn stand_in(&self, place: &Place, want: Want) -> io::Result<StandIn> {
        let handler = json!([{"hooks": [{"type": "command", "command": "deloop hook claude-code", "timeout": TIMEOUT}]}]);
        let hooks: Value = EVENTS.iter().map(|event| (event.to_string(), handler.clone())).collect();
        add_settings(&place.home.join(".claude/settings.json"), json!({"hooks": hooks}))?;
        let specific = |event: &str, key: &str, text: &str| json!({"hookSpecificOutput": {"hookEventName": event, key: text}});
        let answers = match want {
            Want::Quiet => vec![],
            // A command that fails fires the Failure event instead of PostToolUse.
            Want::Nudge => ["PostToolUse", "PostToolUseFailure"]
                .map(|event| Answer::once(event, specific(event, "additionalContext", NUDGE)))
                .to_vec(),
            Want::Block => {
                let mut deny = specific("PreToolUse", "permissionDecision", "deny");
                deny["hookSpecificOutput"]["permissionDecisionReason"] = BLOCK.into();
                vec![Answer::always("PreToolUse", deny)]
            }
            Want::Stop => vec![Answer::always(
                "PostToolBatch",
                json!({"continue": false, "stopReason": STOP, "systemMessage": STOP}),
            )],
        };
        Ok(StandIn { before: "PreToolUse", stays: false, answers })
    }
}
