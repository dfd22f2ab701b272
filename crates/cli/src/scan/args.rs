//! What can be typed after `deloop scan`, `deloop show` and `deloop compare`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use clap::builder::PossibleValuesParser;
use deloop_formats::FORMATS;
use deloop_types::Action;

use crate::args::{ModeArg, RuleArgs};

/// Which sessions are read.
#[derive(Debug, Clone, Args)]
pub(crate) struct SourceArgs {
    /// Session files, folders, globs, or `-` for standard input; the agents' own folders if none is named
    pub(crate) paths: Vec<PathBuf>,
    /// Read every file as this format instead of finding out from its beginning
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|f| f.name())))]
    pub(crate) format: Option<String>,
    /// Only sessions that were active since then: 30d, 12h, 2w, or a date like 2026-01-31
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
}

/// Which rules the sessions are judged by.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JudgeArgs {
    /// The profile: one of `deloop profiles`, or a TOML file
    #[arg(long, short, value_name = "PROFILE", env = "DELOOP_PROFILE")]
    pub(crate) profile: Option<String>,
    /// The configuration file; else deloop.toml or deloop.yaml in the user's config folder, and the nearest one upward
    /// from here if you trust it (`deloop trust`)
    #[arg(long, value_name = "FILE", env = "DELOOP_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

impl JudgeArgs {
    /// The rules for a run that is over: everything is done that the profile asks for, and nobody is there to be asked.
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
    /// Only the N loops that cost most; 0 shows all
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Print JSON; `deloop schema scan` describes it
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print one line of CSV per loop
    #[arg(long)]
    pub(crate) csv: bool,
    /// Write a report to look at into this file: one page that needs no network
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// End with exit code 1 when a loop reached this level
    #[arg(long, value_name = "LEVEL")]
    pub(crate) fail_on: Option<Level>,
    /// Leave arguments and results out of everything that is printed or written
    #[arg(long)]
    pub(crate) redact: bool,
}

/// `deloop show`
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The session: its id, the beginning of it, or its file
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
    /// Print every step, not only those around the loops
    #[arg(long)]
    pub(crate) all: bool,
    /// Print what each result is evidence of
    #[arg(long)]
    pub(crate) evidence: bool,
    /// Leave arguments and results out
    #[arg(long)]
    pub(crate) redact: bool,
}

/// `deloop compare`
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The one side: a profile of `deloop profiles`, or a configuration file
    #[arg(long, value_name = "PROFILE|CONFIG")]
    pub(crate) a: String,
    /// The other side
    #[arg(long, value_name = "PROFILE|CONFIG")]
    pub(crate) b: String,
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Only loops that reached this level: a rung (1, 2, …) or an action (warn, nudge, ask, block, stop)
    #[arg(long, value_name = "LEVEL")]
    pub(crate) min_level: Option<Level>,
    /// Only the first N differences; 0 shows all
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    /// Print JSON; `deloop schema compare` describes it
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave arguments and results out
    #[arg(long)]
    pub(crate) redact: bool,
}

/// How far a ladder must have been climbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// To this rung.
    Rung(u32),
    /// To a rung with this action.
    Action(Action),
}

impl Level {
    /// Whether a loop that got to this action on this rung has reached it.
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
