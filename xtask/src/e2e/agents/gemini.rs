//! Gemini CLI.

use std::io;

use serde_json::{Value, json};

use super::{Agent, EndHook, PROMPT, Package, Start, add_settings, strings};
use crate::e2e::place::Place;
use crate::e2e::stand_in::{Answer, BLOCK, NUDGE, STOP, StandIn, TIMEOUT, Want};

pub(super) struct Gemini;

const EVENTS: [&str; 2] = ["BeforeTool", "AfterTool"];

impl Agent for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn package(&self) -> Option<Package> {
        Some(Package { folder: "gemini", name: "@google/gemini-cli", version: "0.61.0", program: "gemini" })
    }

    fn start(&self, place: &Place, port: u16) -> io::Result<Start> {
        let settings = json!({
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            // Its own guard would end the loop after four calls.
            "model": {"name": "gemini-2.5-flash", "disableLoopDetection": true}
        });
        add_settings(&place.home.join(".gemini/settings.json"), settings)?;
        Ok(Start {
            arguments: strings(["-p", PROMPT, "--yolo", "--output-format", "stream-json"]),
            environment: vec![
                ("GEMINI_API_KEY", "fake".to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", format!("http://127.0.0.1:{port}")),
                ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ],
        })
    }

    fn end_hook(&self) -> Option<EndHook> {
        Some(EndHook { settings: ".gemini/settings.json", event: "AfterAgent", matcher: Some("*") })
    }

    fn stand_in(&self, place: &Place, want: Want) -> io::Result<StandIn> {
        // Any exit code but 0 and 1 with a word on stderr refuses the call: a missing program would refuse them all.
        // On a timeout only the shell is killed, and its child would keep the agent waiting: hence `exec`.
        let command = "command -v deloop >/dev/null || exit 0; exec deloop hook gemini 2>/dev/null";
        let handler = json!([{"matcher": "*", "hooks": [{
            "type": "command", "command": command, "name": "deloop", "timeout": TIMEOUT * 1000
        }]}]);
        let hooks: Value = EVENTS.iter().map(|event| (event.to_string(), handler.clone())).collect();
        add_settings(&place.home.join(".gemini/settings.json"), json!({"hooks": hooks}))?;
        let answers = match want {
            Want::Quiet => vec![],
            Want::Nudge => vec![Answer::once(
                "AfterTool",
                json!({"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": NUDGE}}),
            )],
            Want::Block => {
                vec![Answer::always("BeforeTool", json!({"decision": "deny", "reason": BLOCK}))]
            }
            Want::Stop => {
                vec![Answer::always("AfterTool", json!({"continue": false, "stopReason": STOP}))]
            }
        };
        Ok(StandIn { before: "BeforeTool", stays: false, answers })
    }
}
