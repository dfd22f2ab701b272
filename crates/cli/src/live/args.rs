//! What can be typed after `deloop log`, `state`, `swarm`, `wrong`, `pause`, `resume` and `allow`.

use clap::{Args, Subcommand, ValueEnum};

use crate::args::RuleArgs;

pub(crate) const LOG_HELP: &str = "\
Examples:
  deloop log                          the last 20 decisions, newest last
  deloop log --since 2h --agent codex
  deloop log --session 3f2a -n 100 --json
  deloop log --summary                totals and, with a holdout, whether messages help
  deloop log --weekly                 how often each agent and project loops, with a trend

Each line shows the time (UTC), agent, session, action, what repeated, whether the message was
delivered, what the agent did next, and the decision's id for `deloop explain` and `deloop wrong`.

`--weekly` counts each loop once, in the week deloop first acted on it. Loops that you marked as
wrong don't count. The trend compares the loops per session of the last 4 weeks with the 4 weeks
before; it is steady unless the change is larger than chance would explain.";

pub(crate) const STATE_HELP: &str = "\
Examples:
  deloop state 3f2a                                  every agent of the session
  deloop state 3f2a --agent reviewer --profile doom-loop
  deloop state 3f2a --json | jq .consecutiveCount

Shows the last tool, how many calls in a row were the same, the rungs that the agent has reached,
and whether it was stopped. Calls in a row are counted by profiles that use repeated-call or
repeated-target, such as doom-loop. Nothing is changed.";

pub(crate) const SWARM_HELP: &str = "\
Examples:
  deloop swarm                        the swarms and the call each of them makes most
  deloop swarm show nightly           how often each call was made, and by which workers
  deloop swarm show nightly --json | jq '.fingerprints[0].workers'
  deloop swarm clear nightly          the swarm has finished: count from zero

Sessions join a swarm through DELOOP_SWARM in their environment, or `[swarm]` in the configuration:
  DELOOP_SWARM=nightly claude -p 'fix the tests'";

pub(crate) const WRONG_HELP: &str = "\
Examples:
  deloop wrong d3f2a1                                  it was legitimate work: ignore it
  deloop wrong d3f2a1 --was legit --note 'waits for the deployment'
  deloop wrong d3f2a1 --was loop                       it was a loop after all

deloop ignores that pattern in that session from now on. It also adds a line to labels.jsonl in
the state folder and saves the session there, with every word replaced by a placeholder. You can
then measure profiles on your own sessions:
  deloop eval ~/.local/state/deloop/labels.jsonl
Nothing leaves your machine.";

pub(crate) const PAUSE_HELP: &str = "\
Examples:
  deloop pause                  all sessions, for 30 minutes
  deloop pause --for 2h 3f2a    one session
  deloop resume                 ends all pauses

deloop still watches a paused session, and `deloop log` shows what it would have done. After the
pause the ladder starts over: the agent gets a nudge first.";

pub(crate) const ALLOW_HELP: &str = "\
Examples:
  deloop allow 'Bash npm run watch*'
  deloop allow 'mcp__ci__status'
  deloop allow --list
  deloop allow --remove 'mcp__ci__status'

The first word is the tool, the rest its main argument as `deloop log` shows it. `*` matches any
text, `?` one character. deloop ignores matching calls in every session.";

/// `deloop log`
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// Only sessions whose id starts with this
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Only decisions since then: 2h, 3d, or a date
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only this agent
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Show the newest N
    #[arg(short, value_name = "N", default_value_t = 20)]
    pub(crate) n: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep printing new decisions
    #[arg(long, conflicts_with = "summary")]
    pub(crate) follow: bool,
    /// Print totals: what was decided and done and, with a holdout, whether messages help
    #[arg(long)]
    pub(crate) summary: bool,
    /// Print how often each agent and project loops per week, and the trend
    #[arg(long, conflicts_with_all = ["summary", "follow", "since"])]
    pub(crate) weekly: bool,
}

/// `deloop state`
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    /// The session's id, or the start of it
    pub(crate) session: String,
    /// Only this subagent
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Print one JSON object per agent
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

/// `deloop swarm`
#[derive(Debug, Args)]
pub(crate) struct SwarmArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SwarmCommand>,
}

/// The subcommands of `deloop swarm`.
#[derive(Debug, Subcommand)]
pub(crate) enum SwarmCommand {
    /// Show the calls that a swarm makes most, and the workers that made them
    #[command(after_help = "Example: deloop swarm show nightly --json")]
    Show {
        /// The swarm's name
        name: String,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Delete the counts of a swarm, for example after it has finished
    #[command(after_help = "Example: deloop swarm clear nightly")]
    Clear {
        /// The swarm's name
        name: String,
    },
}

/// `deloop wrong`
#[derive(Debug, Args)]
pub(crate) struct WrongArgs {
    /// The decision's id, or the start of it
    pub(crate) id: String,
    /// What the session really was at that point
    #[arg(long, value_enum, default_value_t = Was::Legit)]
    pub(crate) was: Was,
    /// Why; stored verbatim
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

/// What a person says of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Was {
    /// It repeats, but makes progress
    Legit,
    /// It doesn't repeat
    None,
    /// It loops
    Loop,
    /// Hard to say; not scored
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
    /// How long: 30m, 2h, 1d
    #[arg(long = "for", value_name = "TIME", default_value = "30m")]
    pub(crate) time: String,
    /// The session's id, or the start of it [default: all sessions]
    pub(crate) session: Option<String>,
}

/// `deloop resume`
#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The session's id, or the start of it [default: all pauses]
    pub(crate) session: Option<String>,
}

/// `deloop allow`
#[derive(Debug, Args)]
pub(crate) struct AllowArgs {
    /// The tool, then optionally its main argument
    #[arg(required_unless_present = "list")]
    pub(crate) pattern: Option<String>,
    /// List the patterns
    #[arg(long, conflicts_with_all = ["pattern", "remove"])]
    pub(crate) list: bool,
    /// Remove the pattern
    #[arg(long)]
    pub(crate) remove: bool,
}
