use std::path::PathBuf;

use clap::{Args, ValueEnum};
use deloop_types::Mode;

/// The rules to judge by.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RuleArgs {
    /// A built-in profile (see `deloop profiles`) or a TOML file
    #[arg(long, short, value_name = "PROFILE", env = "DELOOP_PROFILE")]
    pub(crate) profile: Option<String>,
    /// The configuration file [default: deloop.toml or deloop.yaml in your config folder, then the nearest trusted one
    /// in this folder or above]
    #[arg(long, value_name = "FILE", env = "DELOOP_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The strongest action deloop may take
    #[arg(long, value_enum, env = "DELOOP_MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// A person is there to answer questions
    #[arg(long)]
    pub(crate) attended: bool,
}

/// [`Mode`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// Only record decisions
    Shadow,
    /// Only message the agent
    Nudge,
    /// Do everything the profile says: message, ask, block, stop
    Enforce,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Shadow => Self::Shadow,
            ModeArg::Nudge => Self::Nudge,
            ModeArg::Enforce => Self::Enforce,
        }
    }
}
