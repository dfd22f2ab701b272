//! The agents: how each is installed, started without a person, and spoken to by hooks.

mod claude_code;
mod codex;
mod copilot;
mod gemini;
mod harness;
mod opencode;
mod qwen;

use std::io;
use std::path::Path;

use serde_json::Value;

use super::cases::Case;
use super::place::{self, Place, STUCK};
use super::stand_in::{StandIn, Want};

/// What npm brings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Package {
    /// Its folder under `target/e2e/agents`.
    pub(super) folder: &'static str,
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    pub(super) program: &'static str,
}

/// How an agent is started.
pub(super) struct Start {
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(&'static str, String)>,
}

/// The event at the end of a turn, at which a hook can keep an agent going.
pub(super) struct EndHook {
    /// The settings, in the agent's home.
    pub(super) settings: &'static str,
    pub(super) event: &'static str,
    /// What the agent needs in a group of hooks besides the hooks.
    pub(super) matcher: Option<&'static str>,
}

/// One agent.
pub(super) trait Agent: Sync {
    /// As in `deloop hook NAME`.
    fn name(&self) -> &'static str;

    /// What npm brings; none if this program is the agent itself.
    fn package(&self) -> Option<Package>;

    /// Writes the settings that a run without a person needs, and says how to start it: the model is on this port of loopback.
    fn start(&self, place: &Place, port: u16) -> io::Result<Start>;

    /// Writes the settings that make it call the stand-in, and says what the stand-in answers.
    fn stand_in(&self, place: &Place, want: Want) -> io::Result<StandIn>;

    /// Where a hook can keep it from ending its turn.
    fn end_hook(&self) -> Option<EndHook> {
        None
    }

    /// The commands it repeats, in turn.
    fn stuck_on(&self) -> &'static [&'static str] {
        &[STUCK]
    }

    /// Whether no hook can end its run, so that deloop has to be the one that started it.
    fn ends_by_signal_only(&self) -> bool {
        false
    }

    /// Whether its guard is one process that remembers by itself, and so needs no state folder to refuse calls.
    fn remembers(&self) -> bool {
        false
    }

    /// Whether a prompt can't carry a message, so that the first call does.
    fn hears_late(&self) -> bool {
        false
    }

    /// The name of a second model, as its command line takes it.
    fn other_model(&self) -> &'static str {
        OTHER_MODEL
    }

    /// Whether deloop can take turns out of what its model is sent.
    fn folds_turns(&self) -> bool {
        false
    }

    /// The arguments for a further prompt in the session that these started, if it can be continued without a person.
    fn further(&self, _arguments: &[String]) -> Option<Vec<String>> {
        None
    }

    /// Whether the cases of the documents run unless others are named.
    fn shows_documents(&self) -> bool {
        false
    }

    /// Whether deloop's own `install` knows it.
    fn is_installable(&self) -> bool {
        true
    }

    /// Why the agent has no way to do what this case asks for.
    fn cannot(&self, _case: Case) -> Option<&'static str> {
        None
    }
}

/// Every agent, in the order of the table.
pub(super) const AGENTS: [&dyn Agent; 7] = [
    &claude_code::ClaudeCode,
    &codex::Codex,
    &gemini::Gemini,
    &qwen::Qwen,
    &copilot::Copilot,
    &opencode::Opencode,
    &harness::Harness,
];

/// A model that no agent uses unless it is told to.
pub(super) const OTHER_MODEL: &str = "other-model";

/// What every agent is asked to do.
const PROMPT: &str = "Please get the widget built.";

/// Adds these keys to a file of settings, keeping what is there.
fn add_settings(path: &Path, more: Value) -> io::Result<()> {
    let mut settings = match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(_) => serde_json::json!({}),
    };
    if let (Some(settings), Value::Object(more)) = (settings.as_object_mut(), more) {
        settings.extend(more);
    }
    place::write(path, &format!("{settings:#}\n"))
}

fn strings<const N: usize>(arguments: [&str; N]) -> Vec<String> {
    arguments.map(str::to_owned).to_vec()
}
