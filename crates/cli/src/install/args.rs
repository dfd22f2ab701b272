//! What can be typed after `deloop install`, `uninstall` and `status`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use deloop_formats::hooks::installables;

use crate::args::ModeArg;

pub(crate) const INSTALL_HELP: &str = "\
Examples:
  deloop install claude-code                        from its next session on, a stuck agent is told so
  deloop install codex gemini-cli --mode enforce    told, then refused, then ended
  deloop install --dry-run                          every agent on this machine: shows the changes, makes none
  deloop install claude-code --scope project        for everybody who works in this folder

Settings are merged: what else is in the file stays as it is, byte for byte, and a copy of the file as it was before
is kept next to it (NAME.deloop-backup). Codex runs hooks only after you approved them in /hooks.";

/// `deloop install`
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// The agents; all that are found on this machine if none is named
    #[arg(value_name = "AGENT", value_parser = agents())]
    pub(crate) agents: Vec<String>,
    /// Whose settings are changed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: Scope,
    /// How far deloop may go; else what the configuration says, and `nudge` where it says nothing
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// The profile: one of `deloop profiles`, or a TOML file
    #[arg(long, short, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `deloop uninstall`
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// The agents; all that deloop is installed in if none is named
    #[arg(value_name = "AGENT", value_parser = agents())]
    pub(crate) agents: Vec<String>,
    /// Whose settings are changed
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: Scope,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `deloop status`
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whose settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// The user's, for every folder
    #[default]
    User,
    /// Those of the folder this is started in
    Project,
}

impl Scope {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

fn agents() -> PossibleValuesParser {
    let value = |agent: deloop_formats::hooks::Installable| {
        let unverified = if agent.verified { "" } else { " (unverified: written after its documentation)" };
        PossibleValue::new(agent.name).help(format!("{}{unverified}", agent.title)).aliases(agent.alias)
    };
    PossibleValuesParser::new(installables().map(value))
}
