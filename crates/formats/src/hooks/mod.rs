//! Agents that call deloop as a hook: their events become [`HookEvent`]s, and a Decision becomes their reply.
//!
//! Pure: bytes in, text and an exit code out. Every agent has its own strict encoder, because each ignores or
//! rejects another's format.

mod event;
pub(crate) mod rehearsal;
pub(crate) mod reply;
mod seen;
pub(crate) mod snake;
#[cfg(test)]
mod tests;
pub(crate) mod wiring;

use deloop_types::Decision;
use serde_json::Value;

use crate::agents;

pub use event::{HookCall, HookError, HookEvent, HookKind, HookPrompt, PromptAuthor};
pub use reply::{Encoded, Reply};
pub use seen::Seen;
pub use wiring::{
    HookLine, Installable, Installed, JsonHooks, Settings, Wiring, WiringError, installable, installables,
};

/// A program that calls deloop at certain points in its work.
pub trait HookAgent: Send + Sync {
    /// Returns its name on the command line.
    fn name(&self) -> &'static str;

    /// Returns its display name.
    fn title(&self) -> &'static str;

    /// Returns whether [`HookAgent::encode`] has been tested with the real program.
    fn verified(&self) -> bool;

    /// Returns another name that people type.
    fn alias(&self) -> Option<&'static str> {
        None
    }

    /// Returns where and how its settings call deloop.
    fn wiring(&self) -> &'static Wiring;

    /// Parses an event that the program sends.
    ///
    /// # Errors
    /// When the bytes aren't an event of this program.
    fn decode(&self, bytes: &[u8]) -> Result<HookEvent, HookError>;

    /// Returns the events of one call and its result in a stuck session, as the program would send them.
    fn rehearsal(&self, session: &str, lap: u32) -> Vec<Value> {
        rehearsal::plain(session, lap)
    }

    /// Returns the transcript of a subagent, if it has one of its own next to its session's. What both are called comes
    /// from the agent.
    fn subagent_transcript(&self, _session: &str, _subagent: &str) -> Option<String> {
        None
    }

    /// Encodes the reply that makes the program carry out the decision, as far as it can at this event.
    fn encode(&self, event: &HookEvent, decision: &Decision) -> Encoded;
}

/// Every program with a hook; the only list of them.
pub static HOOK_AGENTS: &[&dyn HookAgent] = &[
    &agents::claude_code::hook::ClaudeCodeHook,
    &agents::codex::hook::CodexHook,
    &agents::gemini_cli::hook::GeminiCliHook,
    &agents::copilot_cli::hook::CopilotCliHook,
    &agents::qwen_code::hook::QwenCodeHook,
    &agents::cursor::hook::CursorHook,
];

/// Returns the program with this name or alias.
#[must_use]
pub fn hook_agent(name: &str) -> Option<&'static dyn HookAgent> {
    HOOK_AGENTS.iter().copied().find(|a| a.name() == name || a.alias() == Some(name))
}
