//! The arguments of `deloop install`, `uninstall` and `status`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use deloop_formats::hooks::installables;

use crate::args::ModeArg;

pub(crate) const INSTALL_HELP: &str = "\
Examples:
  deloop install claude-code                        messages the agent when it gets stuck, from its next session on
  deloop install codex gemini-cli --mode enforce    messages it, then blocks calls, then stops the run
  deloop install --dry-run                          every agent on this machine: shows the changes, makes none
  deloop install claude-code --scope project        for everybody who works in this folder
  deloop install codex --server https://deloop.lan  reports to a `deloop serve`, which decides

The rest of the file stays as it is, byte for byte, and a copy of the original is kept next to it
(NAME.deloop-backup). Codex runs hooks only after you approve them in /hooks.";

/// `deloop install`
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// The agents [default: all verified agents on this machine]
    #[arg(value_name = "AGENT", value_parser = agents())]
    pub(crate) agents: Vec<String>,
    /// Which settings to change
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: Scope,
    /// The strongest action deloop may take [default: the configuration's mode, else nudge]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// A built-in profile (see `deloop profiles`) or a TOML file
    #[arg(long, short, value_name = "PROFILE")]
    pub(crate) profile: Option<String>,
    /// Let this `deloop serve` decide: https://HOST[:PORT], or http on this machine. The agent's steps are sent to it
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Show the changes without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `deloop uninstall`
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// The agents [default: all that have deloop hooks]
    #[arg(value_name = "AGENT", value_parser = agents())]
    pub(crate) agents: Vec<String>,
    /// Which settings to change
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scope: Scope,
    /// Show the changes without making them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `deloop status`
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// Your own, for every folder
    #[default]
    User,
    /// The current folder's
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
        let unverified = if agent.verified { "" } else { " (unverified: never tested with the agent)" };
        PossibleValue::new(agent.name).help(format!("{}{unverified}", agent.title)).aliases(agent.alias)
    };
    PossibleValuesParser::new(installables().map(value))
}
