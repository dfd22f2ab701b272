//! Installs deloop in an agent: which settings file to use, what to write there, and what to remove again.
//!
//! Pure: takes the text of a file and returns its new text. Everything that isn't deloop's stays, byte for byte.

mod json;
pub(crate) mod line;

use super::HOOK_AGENTS;
use crate::Base;
use crate::agents::opencode::plugin;

pub use json::JsonHooks;
pub(crate) use json::{FailOpen, HandlerShape};
pub use line::{HookLine, Installed};

/// Seconds that an agent waits for deloop, which is longer than deloop waits for its own database.
pub(crate) const TIMEOUT: u32 = 5;

/// Where an agent's settings are, and how they make it call deloop.
#[derive(Debug)]
pub struct Wiring {
    /// The command that resumes the session `{session}`.
    pub resume: &'static str,
    /// The flag that chooses the model; empty if it isn't known.
    pub model: &'static str,
    /// The programs that start it, most common first.
    pub programs: &'static [&'static str],
    /// The folder of the user's settings.
    pub base: Base,
    /// The user's settings file, relative to that folder.
    pub user: &'static str,
    /// A project's settings file, relative to the project's folder.
    pub project: &'static str,
    /// The type of the file.
    pub file: Settings,
    /// What the user must know or do before it works; empty if nothing.
    pub then: &'static str,
}

/// The type of a settings file.
#[derive(Debug)]
pub enum Settings {
    /// JSON, possibly with comments, that also contains other settings.
    Json(JsonHooks),
    /// A program of its own, with this text.
    Plugin(&'static str),
}

/// A program that deloop can be installed into.
#[derive(Debug, Clone, Copy)]
pub struct Installable {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// Another name that people type.
    pub alias: Option<&'static str>,
    /// Whether it has been tested with the real program.
    pub verified: bool,
    /// How to install it.
    pub wiring: &'static Wiring,
}

/// Why a settings file is left unchanged. The message names the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WiringError(pub String);

impl std::fmt::Display for WiringError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WiringError {}

/// Lists every program that deloop can be installed into: those with a hook, and opencode, which has plugins instead.
pub fn installables() -> impl Iterator<Item = Installable> {
    let hooked = HOOK_AGENTS.iter().map(|agent| Installable {
        name: agent.name(),
        title: agent.title(),
        alias: agent.alias(),
        verified: agent.verified(),
        wiring: agent.wiring(),
    });
    hooked.chain([plugin::OPENCODE])
}

/// Returns the program with this name or alias.
#[must_use]
pub fn installable(name: &str) -> Option<Installable> {
    installables().find(|agent| agent.name == name || agent.alias == Some(name))
}

impl Installable {
    /// Returns the text with deloop's entries, each of them once; `None` stands for a missing file.
    ///
    /// # Errors
    /// When the agent couldn't read the text.
    pub fn install(&self, text: Option<&str>, line: &HookLine) -> Result<String, WiringError> {
        match &self.wiring.file {
            Settings::Json(hooks) => hooks.install(self, text, line),
            Settings::Plugin(program) => plugin::install(program, text, line),
        }
    }

    /// Returns the text without deloop's entries; `None` when nothing would be left.
    ///
    /// # Errors
    /// When the agent couldn't read the text.
    pub fn uninstall(&self, text: &str) -> Result<Option<String>, WiringError> {
        match &self.wiring.file {
            Settings::Json(hooks) => hooks.uninstall(self, text),
            Settings::Plugin(_) => Ok(if plugin::is_ours(text) { None } else { Some(text.to_owned()) }),
        }
    }

    /// Returns how these settings call deloop; `None` when they don't.
    ///
    /// # Errors
    /// When the agent couldn't read the text.
    pub fn installed(&self, text: &str) -> Result<Option<Installed>, WiringError> {
        match &self.wiring.file {
            Settings::Json(hooks) => hooks.installed(self, text),
            Settings::Plugin(_) => Ok(plugin::installed(text)),
        }
    }

    /// Returns whether this is one of its names.
    pub(crate) fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.alias == Some(name)
    }
}
