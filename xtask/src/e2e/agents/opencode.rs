//! opencode, whose hooks are functions of a plugin.

use std::io;

use serde_json::json;

use super::{Agent, OTHER_MODEL, PROMPT, Package, Start, add_settings, strings};
use crate::e2e::place::{self, Place};
use crate::e2e::stand_in::{Answer, BLOCK, NUDGE, STOP, StandIn, TIMEOUT, Want};

pub(super) struct Opencode;

const PLUGIN: &str = include_str!("opencode_plugin.js");

impl Agent for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn package(&self) -> Option<Package> {
        Some(Package { folder: "opencode", name: "opencode-ai", version: "1.18.33", program: "opencode" })
    }

    fn start(&self, place: &Place, port: u16) -> io::Result<Start> {
        let model = json!({"tool_call": true, "limit": {"context": 200_000, "output": 8000}});
        let settings = json!({
            "model": "fake/fake-model",
            "small_model": "fake/fake-model",
            "permission": {"*": "allow"},
            "share": "disabled",
            "autoupdate": false,
            "provider": {"fake": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "fake",
                "options": {"baseURL": format!("http://127.0.0.1:{port}/v1"), "apiKey": "fake"},
                "models": {"fake-model": model, OTHER_MODEL: model}
            }}
        });
        add_settings(&place.home.join(".config/opencode/opencode.json"), settings)?;
        // It wants to fetch the types of its plugins first, and tries for over a minute unless it is told no at once.
        let npmrc = format!("registry=http://127.0.0.1:{port}/\nfetch-retries=0\n");
        place::write(&place.home.join(".npmrc"), &npmrc)?;
        Ok(Start {
            arguments: strings(["run", "--title", "e2e", PROMPT]),
            environment: [
                "OPENCODE_DISABLE_AUTOUPDATE",
                "OPENCODE_DISABLE_MODELS_FETCH",
                "OPENCODE_DISABLE_LSP_DOWNLOAD",
                "OPENCODE_DISABLE_DEFAULT_PLUGINS",
            ]
            .map(|name| (name, "1".to_owned()))
            .to_vec(),
        })
    }

    fn other_model(&self) -> &'static str {
        "fake/other-model"
    }

    fn folds_turns(&self) -> bool {
        true
    }

    fn remembers(&self) -> bool {
        true
    }

    fn hears_late(&self) -> bool {
        true
    }

    fn stand_in(&self, place: &Place, want: Want) -> io::Result<StandIn> {
        let plugin = PLUGIN.replace("TIMEOUT", &(TIMEOUT * 1000).to_string());
        place::write(&place.home.join(".config/opencode/plugins/deloop.js"), &plugin)?;
        let answers = match want {
            Want::Quiet => vec![],
            Want::Nudge => vec![Answer::once("after", json!({"append": NUDGE}))],
            Want::Block => vec![Answer::always("before", json!({"refuse": BLOCK}))],
            Want::Stop => vec![Answer::always("after", json!({"stop": STOP}))],
        };
        Ok(StandIn { before: "before", stays: true, answers })
    }
}
