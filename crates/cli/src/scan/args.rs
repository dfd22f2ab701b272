//! The arguments of `deloop scan`, `deloop show` and `deloop compare`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use deloop_types::Action;

use crate::args::{ModeArg, RuleArgs};
use crate::sessions::SourceArgs;

/// Which rules judge the sessions.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JudgeArgs {
    /// A profile (see `deloop profiles`) or a TOML file
    #[arg(long, short, value_name = "PROFILE", env = "DELOOP_PROFILE")]
    pub(crate) profile: Option<String>,
    /// A configuration file [default: deloop.toml or deloop.yaml in your config folder, and the nearest one in this folder
    /// or above it that you trust (`deloop trust`)]
    #[arg(long, value_name = "FILE", env = "DELOOP_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

impl JudgeArgs {
    /// Returns the rules for a run that is over: deloop does all that the profile asks for, and there is nobody to ask.
    pub(crate) fn rules(&self) -> RuleArgs {
        RuleArgs {
            profile: self.profile.clone(),
            config: self.config.clone(),
            mode: Some(ModeArg::Enforce),
            attended: false,
        }
    }
}

/// `deloop scan`
#[derive(Debug, Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
    /// Only loops that reached this level: a rung (1, 2, …) or an action (warn, nudge, ask, block, stop)
    #[arg(long, value_name = "LEVEL")]
    pub(crate) min_level: Option<Level>,
    /// Show the N costliest loops; 0 shows all [default: 20 on screen, all in JSON and CSV]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Print JSON (see `deloop schema scan`)
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print CSV, one line per loop
    #[arg(long)]
    pub(crate) csv: bool,
    /// Write a self-contained HTML report to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Exit with code 1 if a loop reached this level
    #[arg(long, value_name = "LEVEL")]
    pub(crate) fail_on: Option<Level>,
    /// Hide arguments and results
    #[arg(long)]
    pub(crate) redact: bool,
}

/// `deloop show`
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A session id, the start of one, or a file
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
    /// Show every step
    #[arg(long)]
    pub(crate) all: bool,
    /// Show what each result is evidence of
    #[arg(long)]
    pub(crate) evidence: bool,
    /// Hide arguments and results
    #[arg(long)]
    pub(crate) redact: bool,
}

/// `deloop compare`
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// A profile (see `deloop profiles`) or a configuration file
    #[arg(long, value_name = "PROFILE|CONFIG")]
    pub(crate) a: String,
    /// The profile or configuration file to compare it with
    #[arg(long, value_name = "PROFILE|CONFIG")]
    pub(crate) b: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Only loops that reached this level: a rung (1, 2, …) or an action (warn, nudge, ask, block, stop)
    #[arg(long, value_name = "LEVEL")]
    pub(crate) min_level: Option<Level>,
    /// Show the first N differences; 0 shows all [default: 20 on screen, all in JSON]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Print JSON (see `deloop schema compare`)
    #[arg(long)]
    pub(crate) json: bool,
    /// Hide arguments and results
    #[arg(long)]
    pub(crate) redact: bool,
}

/// How far up its ladder a loop must have gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// To this rung.
    Rung(u32),
    /// To a rung with this action.
    Action(Action),
}

impl Level {
    /// Returns whether an action on this rung reaches it.
    pub(crate) fn reached(self, action: Action, rung: u32) -> bool {
        match self {
            Self::Rung(least) => rung >= least,
            Self::Action(least) => action >= least,
        }
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(rung) = text.parse() {
            return Ok(Self::Rung(rung));
        }
        let action = Action::ALL.into_iter().find(|a| *a != Action::Continue && a.as_str() == text);
        action.map(Self::Action).ok_or_else(|| "a number, or one of warn, nudge, ask, block, stop".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_rung_or_an_action() {
        assert!("2".parse::<Level>().unwrap().reached(Action::Warn, 2));
        assert!(!"block".parse::<Level>().unwrap().reached(Action::Nudge, 9));
        assert!("nudge".parse::<Level>().unwrap().reached(Action::Stop, 1));
        assert!("continue".parse::<Level>().is_err());
    }
}
