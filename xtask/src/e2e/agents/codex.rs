//! Codex.

use std::io;

use serde_json::{Value, json};

use super::{Agent, EndHook, PROMPT, Package, Start, add_settings, strings};
use crate::e2e::cases::Case;
use crate::e2e::place::{self, Place};
use crate::e2e::stand_in::{Answer, BLOCK, NUDGE, StandIn, TIMEOUT, Want};

pub(super) struct Codex;

const EVENTS: [&str; 2] = ["PreToolUse", "PostToolUse"];

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn package(&self) -> Option<Package> {
        Some(Package { folder: "codex", name: "@openai/codex", version: "0.166.0", program: "codex" })
    }

    fn start(&self, place: &Place, port: u16) -> io::Result<Start> {
        let config = format!(
            "model = \"fake-model\"\nmodel_provider = \"fake\"\ncheck_for_update_on_startup = false\n\n\
             [model_providers.fake]\nname = \"fake\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
             wire_api = \"responses\"\nenv_key = \"FAKE_API_KEY\"\n\n\
             [analytics]\nenabled = false\n"
        );
        place::write(&place.home.join(".codex/config.toml"), &config)?;
        Ok(Start {
            arguments: strings([
                "exec",
                "--skip-git-repo-check",
                "--dangerously-bypass-approvals-and-sandbox",
                // Hooks that no person has reviewed are silently skipped without it.
                "--dangerously-bypass-hook-trust",
                PROMPT,
            ]),
            environment: vec![("FAKE_API_KEY", "fake".to_owned())],
        })
    }

    fn ends_by_signal_only(&self) -> bool {
        true
    }

    fn cannot(&self, case: Case) -> Option<&'static str> {
        (case == Case::TurnSimilarity).then_some("`codex exec` doesn't print a hook's message for people")
    }

    fn further(&self, arguments: &[String]) -> Option<Vec<String>> {
        let (exec, rest) = arguments.split_first()?;
        let (prompt, options) = rest.split_last()?;
        let words = strings(["resume", "--last"]);
        Some([vec![exec.clone()], options.to_vec(), words, vec![prompt.clone()]].concat())
    }

    fn end_hook(&self) -> Option<EndHook> {
        Some(EndHook { settings: ".codex/hooks.json", event: "Stop", matcher: None })
    }

    fn stand_in(&self, place: &Place, want: Want) -> io::Result<StandIn> {
        let handler =
            json!([{"hooks": [{"type": "command", "command": "deloop hook codex", "timeout": TIMEOUT}]}]);
        let hooks: Value = EVENTS.iter().map(|event| (event.to_string(), handler.clone())).collect();
        add_settings(&place.home.join(".codex/hooks.json"), json!({"hooks": hooks}))?;
        let answers = match want {
            Want::Quiet => vec![],
            Want::Nudge => vec![Answer::once(
                "PostToolUse",
                json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": NUDGE}}),
            )],
            Want::Block => vec![Answer::always(
                "PreToolUse",
                json!({"hookSpecificOutput": {
                    "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": BLOCK
                }}),
            )],
            // No answer ends a turn, a signal does.
            Want::Stop => vec![Answer::act("PostToolUse", "kill -INT $PPID; sleep 1")],
        };
        Ok(StandIn { before: "PreToolUse", stays: false, answers })
    }
}
