//! How deloop is installed in an agent: which settings file, what is written there, and what is removed again.
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

/// Seconds that an agent waits for deloop: more than deloop ever waits for its own database.
pub(crate) const TIMEOUT: u32 = 5;

/// Where an agent's settings are, and how it is told to call deloop.
#[derive(Debug)]
pub struct Wiring {
    /// What starts it again in the session that stands for `{session}`.
    pub resume: &'static str,
    /// The programs that start it, the usual one first.
    pub programs: &'static [&'static str],
    /// The folder that holds the user's settings.
    pub base: Base,
    /// The file of the user's settings, below it.
    pub user: &'static str,
    /// The file of a project's settings, below the project's folder.
    pub project: &'static str,
    /// What is in the file.
    pub file: Settings,
    /// What a person has to know or do before it works; empty if nothing.
    pub then: &'static str,
}

/// What a file of settings is.
#[derive(Debug)]
pub enum Settings {
    /// JSON, perhaps with comments, that holds other things as well.
    Json(JsonHooks),
    /// A program of its own, which this is the text of.
    Plugin(&'static str),
}

/// A program that deloop can be installed into.
#[derive(Debug, Clone, Copy)]
pub struct Installable {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Another name that people type.
    pub alias: Option<&'static str>,
    /// Whether the real program has been seen to do what deloop asks of it.
    pub verified: bool,
    /// How.
    pub wiring: &'static Wiring,
}

/// Why a file of settings is left alone; the message names what to mend.
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
    /// When the text is not what the agent reads.
    pub fn install(&self, text: Option<&str>, line: &HookLine) -> Result<String, WiringError> {
        match &self.wiring.file {
            Settings::Json(hooks) => hooks.install(self, text, line),
            Settings::Plugin(program) => plugin::install(program, text, line),
        }
    }

    /// Returns the text without deloop's entries; `None` when nothing would be left.
    ///
    /// # Errors
    /// When the text is not what the agent reads.
    pub fn uninstall(&self, text: &str) -> Result<Option<String>, WiringError> {
        match &self.wiring.file {
            Settings::Json(hooks) => hooks.uninstall(self, text),
            Settings::Plugin(_) => Ok(if plugin::is_ours(text) { None } else { Some(text.to_owned()) }),
        }
    }

    /// Returns how these settings call deloop; `None` when they don't.
    ///
    /// # Errors
    /// When the text is not what the agent reads.
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
