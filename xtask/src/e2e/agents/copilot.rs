//! Copilot CLI.

use std::io;

use serde_json::{Value, json};

use super::{Agent, PROMPT, Package, Start, add_settings, strings};
use crate::e2e::cases::Case;
use crate::e2e::place::Place;
use crate::e2e::stand_in::{Answer, BLOCK, NUDGE, STOP, StandIn, TIMEOUT, Want};

pub(super) struct Copilot;

const EVENTS: [&str; 3] = ["PreToolUse", "PostToolUse", "PermissionRequest"];

impl Agent for Copilot {
    fn name(&self) -> &'static str {
        "copilot"
    }

    fn package(&self) -> Option<Package> {
        Some(Package { folder: "copilot", name: "@github/copilot", version: "1.0.102", program: "copilot" })
    }

    fn start(&self, _place: &Place, port: u16) -> io::Result<Start> {
        Ok(Start {
            arguments: strings(["-p", PROMPT, "--allow-all-tools"]),
            environment: vec![
                ("COPILOT_PROVIDER_BASE_URL", format!("http://127.0.0.1:{port}/v1")),
                ("COPILOT_PROVIDER_TYPE", "openai".to_owned()),
                ("COPILOT_PROVIDER_API_KEY", "fake".to_owned()),
                ("COPILOT_MODEL", "fake-model".to_owned()),
                ("COPILOT_OFFLINE", "true".to_owned()),
            ],
        })
    }

    fn cannot(&self, case: Case) -> Option<&'static str> {
        (case == Case::TurnSimilarity).then_some("Copilot CLI has no way to warn the person alone")
    }

    fn hears_late(&self) -> bool {
        true
    }

    fn stand_in(&self, place: &Place, want: Want) -> io::Result<StandIn> {
        // A hook that fails refuses the call, whatever its exit code.
        let command = "deloop hook copilot 2>/dev/null || exit 0";
        let handler = json!([{"type": "command", "bash": command, "timeoutSec": TIMEOUT}]);
        let hooks: Value = EVENTS.iter().map(|event| (event.to_string(), handler.clone())).collect();
        add_settings(&place.home.join(".copilot/hooks/deloop.json"), json!({"version": 1, "hooks": hooks}))?;
        let answers = match want {
            Want::Quiet => vec![],
            Want::Nudge => vec![Answer::once("PostToolUse", json!({"additionalContext": NUDGE}))],
            Want::Block => vec![Answer::always(
                "PreToolUse",
                json!({"permissionDecision": "deny", "permissionDecisionReason": BLOCK}),
            )],
            // This one event comes in the other dialect, with `hookName`, however it is registered.
            Want::Stop => vec![Answer::always(
                "permissionRequest",
                json!({"behavior": "deny", "message": STOP, "interrupt": true}),
            )],
        };
        Ok(StandIn { before: "PreToolUse", stays: false, answers })
    }
}
