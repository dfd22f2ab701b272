//! Qwen Code.

use std::io;

use serde_json::{Value, json};

use super::{Agent, EndHook, PROMPT, Package, Start, add_settings, strings};
use crate::e2e::cases::Case;
use crate::e2e::place::{Place, STUCK};
use crate::e2e::stand_in::{Answer, BLOCK, NUDGE, STOP, StandIn, TIMEOUT, Want};

pub(super) struct Qwen;

const EVENTS: [&str; 4] = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit"];

impl Agent for Qwen {
    fn name(&self) -> &'static str {
        "qwen"
    }

    fn package(&self) -> Option<Package> {
        Some(Package { folder: "qwen", name: "@qwen-code/qwen-code", version: "0.24.4", program: "qwen" })
    }

    fn start(&self, place: &Place, port: u16) -> io::Result<Start> {
        let settings = json!({
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
            "security": {"auth": {"selectedType": "openai"}},
            "model": {"name": "fake-model"}
        });
        add_settings(&place.home.join(".qwen/settings.json"), settings)?;
        Ok(Start {
            arguments: strings(["-p", PROMPT, "--yolo", "--output-format", "stream-json"]),
            environment: vec![
                // It overrides a hook that keeps it going, after eight times unless this says otherwise.
                ("QWEN_CODE_STOP_HOOK_BLOCK_CAP", "100".to_owned()),
                ("OPENAI_API_KEY", "fake".to_owned()),
                ("OPENAI_BASE_URL", format!("http://127.0.0.1:{port}/v1")),
                ("OPENAI_MODEL", "fake-model".to_owned()),
            ],
        })
    }

    /// Its own guard ends a run at the fifth identical call, and no setting keeps it from that: so it goes in circles.
    fn stuck_on(&self) -> &'static [&'static str] {
        &[STUCK, "sh check.sh widget"]
    }

    fn cannot(&self, case: Case) -> Option<&'static str> {
        match case {
            Case::Behavioral | Case::DoomLoop | Case::TurnHash => {
                Some("Qwen Code itself ends the run at the fifth identical call")
            }
            Case::TurnSimilarity => Some("`qwen -p` doesn't print a hook's message for people"),
            _ => None,
        }
    }

    fn end_hook(&self) -> Option<EndHook> {
        Some(EndHook { settings: ".qwen/settings.json", event: "Stop", matcher: None })
    }

    fn stand_in(&self, place: &Place, want: Want) -> io::Result<StandIn> {
        let handler = json!([{"hooks": [{
            "type": "command", "command": "deloop hook qwen", "name": "deloop", "timeout": TIMEOUT * 1000
        }]}]);
        let hooks: Value = EVENTS.iter().map(|event| (event.to_string(), handler.clone())).collect();
        add_settings(&place.home.join(".qwen/settings.json"), json!({"hooks": hooks}))?;
        let answers = match want {
            Want::Quiet => vec![],
            Want::Nudge => ["PostToolUse", "PostToolUseFailure"]
                .map(|event| {
                    let context = json!({"hookEventName": event, "additionalContext": NUDGE});
                    Answer::once(event, json!({"hookSpecificOutput": context}))
                })
                .to_vec(),
            Want::Block => vec![Answer::always(
                "PreToolUse",
                json!({"hookSpecificOutput": {
                    "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": BLOCK
                }}),
            )],
            // It fires before every question to the model, not only at what a person typed.
            Want::Stop => {
                vec![Answer::always("UserPromptSubmit", json!({"continue": false, "stopReason": STOP}))]
            }
        };
        Ok(StandIn { before: "PreToolUse", stays: false, answers })
    }
}
