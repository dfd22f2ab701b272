//! What can be typed after `deloop log`, `wrong`, `pause`, `resume` and `allow`.

use clap::{Args, ValueEnum};

pub(crate) const LOG_HELP: &str = "\
Examples:
  deloop log                          the last 20 decisions, newest last
  deloop log --since 2h --agent codex
  deloop log --session 3f2a -n 100 --json
  deloop log --summary                how often agents left the loop after they were told

A line is: when (UTC), agent, session, what was done, what repeated, whether it reached the agent and what the agent
did next, and the decision's id for `deloop explain` and `deloop wrong`.";

pub(crate) const WRONG_HELP: &str = "\
Examples:
  deloop wrong d3f2a1                                  it was honest work: leave it alone
  deloop wrong d3f2a1 --was legit --note 'waits for the deployment'
  deloop wrong d3f2a1 --was loop                       it was a loop after all

Nothing more is done about that pattern in that session. A line is added to labels.jsonl in the state folder, and the
session beside it with every word replaced by a stand-in, so that
  deloop eval ~/.local/state/deloop/labels.jsonl
measures profiles on your own sessions. Nothing leaves this machine.";

pub(crate) const PAUSE_HELP: &str = "\
Examples:
  deloop pause                  every session, for 30 minutes
  deloop pause --for 2h 3f2a    one session
  deloop resume                 goes on at once

A paused session is still watched, and `deloop log` shows what would have been done. When the pause is over, the
agent is told first again, whatever would have been done meanwhile.";

pub(crate) const ALLOW_HELP: &str = "\
Examples:
  deloop allow 'Bash npm run watch*'
  deloop allow 'mcp__ci__status'
  deloop allow --list
  deloop allow --remove 'mcp__ci__status'

The first word is the tool, the rest its main argument as `deloop log` shows it; `*` stands for any text, `?` for one
character. Calls that match are not looked at, in every session.";

/// `deloop log`
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Only sessions whose names begin so
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Not older than this: 2h, 3d, or a date
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only this agent
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// At most so many, the newest
    #[arg(short, value_name = "N", default_value_t = 20)]
    pub(crate) n: usize,
    /// One JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Go on with what is decided from now on
    #[arg(long, conflicts_with = "summary")]
    pub(crate) follow: bool,
    /// Only sums: what was done, and what agents did next
    #[arg(long)]
    pub(crate) summary: bool,
}

/// `deloop wrong`
#[derive(Debug, Args)]
pub(crate) struct WrongArgs {
    /// The decision, or the beginning of its id
    pub(crate) id: String,
    /// What the session really was at that point
    #[arg(long, value_enum, default_value_t = Was::Legit)]
    pub(crate) was: Was,
    /// Why, in your words; it is kept as it is
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

/// What a person says of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Was {
    /// It repeats visibly, and makes progress
    Legit,
    /// It does not even repeat
    None,
    /// It loops
    Loop,
    /// Hard to say; left out of scores
    Borderline,
}

impl Was {
    /// As it stands in a label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Legit => "legit",
            Self::None => "none",
            Self::Loop => "loop",
            Self::Borderline => "borderline",
        }
    }
}

/// `deloop pause`
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// For how long: 30m, 2h, 1d
    #[arg(long = "for", value_name = "TIME", default_value = "30m")]
    pub(crate) time: String,
    /// The session, or the beginning of its name; every session if none is named
    pub(crate) session: Option<String>,
}

/// `deloop resume`
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session, or the beginning of its name; all pauses if none is named
    pub(crate) session: Option<String>,
}

/// `deloop allow`
#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// The tool, and after a space what its main argument looks like
    #[arg(required_unless_present = "list")]
    pub(crate) pattern: Option<String>,
    /// Show what is allowed
    #[arg(long, conflicts_with_all = ["pattern", "remove"])]
    pub(crate) list: bool,
    /// Look at these calls again
    #[arg(long)]
    pub(crate) remove: bool,
}
