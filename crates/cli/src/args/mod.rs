//! The command line: help, completions and the man page all come from this definition.

mod eval;
mod hook;
mod rules;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use deloop_formats::FORMATS;

use self::eval::EVAL_HELP;
pub(crate) use self::eval::EvalArgs;
pub(crate) use self::hook::{AgentHook, BehavioralArgs, HookArgs, HookCommand, HookPhase};
pub(crate) use self::rules::{ModeArg, RuleArgs};

#[cfg(feature = "serve")]
use crate::alerts::{ALERTS_HELP, AlertsArgs};
#[cfg(feature = "serve")]
use crate::audit::args::{AUDIT_HELP, AuditArgs};
#[cfg(feature = "serve")]
use crate::budget::{BUDGET_HELP, BudgetArgs};
use crate::doctor::{DOCTOR_HELP, DoctorArgs};
use crate::embedding::args::{EmbedArgs, SIMILARITY_HELP, SimilarityArgs};
use crate::install::args::{INSTALL_HELP, InstallArgs, StatusArgs, UninstallArgs};
#[cfg(feature = "serve")]
use crate::keys::{KEYS_HELP, KeysArgs};
use crate::live::args::{
    ALLOW_HELP, AllowArgs, LOG_HELP, LogArgs, PAUSE_HELP, PauseArgs, ResumeArgs, STATE_HELP, SWARM_HELP,
    StateArgs, SwarmArgs, WRONG_HELP, WrongArgs,
};
use crate::prices::args::{PRICES_HELP, PricesArgs};
#[cfg(feature = "serve")]
use crate::report::{REPORT_HELP, ReportArgs};
use crate::run::args::{RUN_HELP, RunArgs};
use crate::run::watchdog::WatchdogArgs;
use crate::say::{SAY_HELP, SayArgs};
use crate::scan::args::{CompareArgs, ScanArgs, ShowArgs};
#[cfg(feature = "serve")]
use crate::serve::{SERVE_HELP, ServeArgs};
use crate::sessions::LinkArgs;
use crate::trust::{TRUST_HELP, TrustArgs};

const SCAN_HELP: &str = "\
Examples:
  deloop scan                                   all sessions of the agents on this machine
  deloop scan --since 30d --html report.html    a report to open in a browser
  deloop scan ~/runs/*.jsonl run.traj.zst --json
  my-agent --dump | deloop scan - --fail-on block

Escape sequences in sessions are not printed, and anything that looks like a key or token is
masked. `--redact` leaves out arguments and results. Nothing leaves your machine.

Exit codes: 0 success; 1 a loop reached the level of --fail-on; 2 the scan failed, or a file you
named couldn't be read.";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "deloop",
    version,
    // Without a text this would be the description of the crate.
    about = "Detect and break loops in AI agents",
    arg_required_else_help = true,
    after_help = "Exit codes: 0 success; 2 the command failed, or part of its input couldn't be read.\n\
                  Set DELOOP=off in the environment to turn deloop off."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find loops in the stored sessions of the agents on this machine
    #[command(after_help = SCAN_HELP)]
    Scan(ScanArgs),
    /// Show the loops of one session and what deloop would have done about them
    #[command(after_help = "Examples:\n  \
        deloop show 3f2a1c9e\n  \
        deloop show run.jsonl --profile doom-loop --all\n  \
        deloop show run.jsonl --all --evidence\n  \
        deloop show example-tests\n\n\
        ⟲ marks steps that repeat, ▲ what deloop would have done.")]
    Show(ShowArgs),
    /// Compare two profiles or configurations on the same sessions
    #[command(after_help = "Examples:\n  \
        deloop compare --a default --b doom-loop\n  \
        deloop compare --a default --b my-deloop.toml ~/runs --since 30d\n\n\
        A name is a built-in profile. A file is a configuration, applied on top of the profile it names.")]
    Compare(CompareArgs),
    /// Replay a stuck session and show how deloop handles it
    Demo(DemoArgs),
    /// Read Steps from a file or stdin and answer each with a Decision
    #[command(after_help = "Examples:\n  \
        deloop stream --profile doom-loop steps.jsonl\n  \
        my-agent | deloop stream --events events.jsonl\n\n\
        Input and output are JSON, one object per line; `deloop schema step` and `deloop schema decision` describe them.\n\
        Every non-blank line gets one answer. An unreadable line gets {\"error\":…,\"line\":N}, and the exit code is 2 at the end.")]
    Stream(StreamArgs),
    /// Answer Steps with Decisions over HTTP, for many agents at once
    #[cfg(feature = "serve")]
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// List and test the routes of the server's alerts
    #[cfg(feature = "serve")]
    #[command(after_help = ALERTS_HELP)]
    Alerts(AlertsArgs),
    /// Create, list and revoke the keys of a server
    #[cfg(feature = "serve")]
    #[command(after_help = KEYS_HELP)]
    Keys(KeysArgs),
    /// Verify, search, export or purge the audit log of a server
    #[cfg(feature = "serve")]
    #[command(after_help = AUDIT_HELP)]
    Audit(AuditArgs),
    /// Show what a server's agents spent on a day, or how often they loop
    #[cfg(feature = "serve")]
    #[command(after_help = REPORT_HELP)]
    Report(ReportArgs),
    /// Show a server's budgets, or let a project or session spend more for a while
    #[cfg(feature = "serve")]
    #[command(after_help = BUDGET_HELP)]
    Budget(BudgetArgs),
    /// Send a message to an agent that reports to a server
    #[command(after_help = SAY_HELP)]
    Say(SayArgs),
    /// Convert session files of any format to Steps
    #[command(after_help = "Examples:\n  \
        deloop steps ~/.claude/projects/*/3f2a1c9e*.jsonl | jq -r 'select(.type==\"turn\").calls[].tool'\n  \
        deloop steps run.traj.zst | deloop stream --profile doom-loop\n  \
        my-agent --dump | deloop steps - --format openai-messages\n\n\
        Prints one JSON object per line; `deloop schema step` describes them. Nothing is redacted: keys and tokens in a\n\
        session are in the output. Unreadable parts are reported on stderr.\n\n\
        Exit codes: 0 success; 2 the command failed, or a file is missing or not a session.")]
    Steps(StepsArgs),
    /// Add deloop hooks to the settings of your agents
    #[command(after_help = INSTALL_HELP)]
    Install(InstallArgs),
    /// Remove deloop hooks from the settings of your agents
    #[command(
        after_help = "Examples:\n  deloop uninstall claude-code\n  deloop uninstall --scope project\n\n\
        Removes only deloop's own entries. If nothing else has changed since, the file is restored byte for byte."
    )]
    Uninstall(UninstallArgs),
    /// Show which agents are installed, which have deloop hooks, and when each hook last ran
    Status(StatusArgs),
    /// Handle one hook event: reads it from stdin and writes the reply to stdout
    Hook(HookArgs),
    /// Delete stored session data
    #[command(after_help = "Examples:\n  deloop purge 3f2a1c9e    one session, its decisions and labels\n  \
        deloop purge --yes       everything\n\n\
        Deletes sessions, decisions, swarms, labels, hand-offs and logs. Keeps patterns of `deloop allow`, trusted\n\
        configurations and installed hooks.")]
    Purge(PurgeArgs),
    /// List model prices, or update them from a file or URL
    #[command(after_help = PRICES_HELP)]
    Prices(PricesArgs),
    /// List the built-in profiles, or print one as a template for your own
    Profiles(ProfilesArgs),
    /// List the session formats that deloop reads, or describe one
    #[command(after_help = "Examples:\n  deloop formats\n  deloop formats claude-code")]
    Formats(FormatsArgs),
    /// Check the set-up by replaying a stuck session through every installed hook
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Run an agent unattended and stop it if it gets stuck
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Show recent decisions and the reason for each
    #[command(after_help = LOG_HELP)]
    Log(LogArgs),
    /// Show what deloop currently knows of a running session: calls in a row, ladders, stops
    #[command(after_help = STATE_HELP)]
    State(StateArgs),
    /// List, show or clear swarms: workers whose calls are counted together
    #[command(after_help = SWARM_HELP)]
    Swarm(SwarmArgs),
    /// Explain a decision or a detector
    #[command(after_help = "Examples:\n  deloop explain d3f2a1         a decision from `deloop log`\n  \
        deloop explain no-progress    a detector, with examples")]
    Explain(ExplainArgs),
    /// Report a wrong decision: deloop ignores that pattern and keeps a redacted label
    #[command(after_help = WRONG_HELP)]
    Wrong(WrongArgs),
    /// Pause deloop for one session or for all sessions
    #[command(after_help = PAUSE_HELP)]
    Pause(PauseArgs),
    /// End a pause
    Resume(ResumeArgs),
    /// Ignore calls that match a pattern
    #[command(after_help = ALLOW_HELP)]
    Allow(AllowArgs),
    /// Score profiles on labelled sessions: loops found, false alarms, precision, recall, delay
    #[command(after_help = EVAL_HELP)]
    Eval(EvalArgs),
    /// Print the word lists that deloop uses to classify tools, commands and outputs
    #[command(
        after_help = "To add lists of your own, put them under `[vocabulary]` in your configuration, in the same form. \
        `without = [\"NAME\"]` there turns a list off."
    )]
    Vocabulary,
    /// Show how similar two texts are, by words and by embeddings
    #[command(after_help = SIMILARITY_HELP)]
    Similarity(SimilarityArgs),
    /// Compute embeddings for a hook that doesn't wait for them
    #[command(hide = true)]
    Embed(EmbedArgs),
    /// End the agent of a `deloop run` that was killed
    #[command(hide = true)]
    Watchdog(WatchdogArgs),
    /// Trust the configuration in a folder until it changes
    #[command(after_help = TRUST_HELP)]
    Trust(TrustArgs),
    /// Print the effective configuration and the files it comes from
    Config(ConfigArgs),
    /// Print a JSON Schema
    Schema(SchemaArgs),
    /// Print a completion script for your shell
    #[command(
        after_help = "Example: deloop completions bash > ~/.local/share/bash-completion/completions/deloop"
    )]
    Completions(CompletionsArgs),
    /// Print the man page
    Man(ManArgs),
}

/// `deloop steps`
#[derive(Debug, Args)]
pub(crate) struct StepsArgs {
    /// Session files, folders or globs; `-` for stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The format of every file [default: detected]
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|f| f.name())))]
    pub(crate) format: Option<String>,
    #[command(flatten)]
    pub(crate) links: LinkArgs,
}

/// `deloop demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

/// `deloop formats`
#[derive(Debug, Args)]
pub(crate) struct FormatsArgs {
    /// The format to describe
    pub(crate) name: Option<String>,
}

/// `deloop stream`
#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// Append events (loop_detected, nudge, block, session.terminated, cost.attributed, …) to this file, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Resume from this checkpoint if it exists, and write it at the end
    #[arg(long, value_name = "FILE", conflicts_with = "agent")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Act as this agent's plugin: default to mode `nudge`, and record calls and decisions for `deloop status` and
    /// `deloop log`
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Where you can put a nudge, as a list: each nudge's `role` is one of these [default: anywhere]
    #[arg(long, value_name = "WHERE", value_delimiter = ',')]
    pub(crate) deliver: Vec<crate::stream::Deliver>,
    /// The caller can remove steps from the conversation: a decision after two ignored nudges has a `rollback`
    #[arg(long)]
    pub(crate) rollback: bool,
    /// Share sessions and swarms with streams on other machines through this Redis server: redis://HOST[:PORT][/DATABASE]
    #[arg(long, value_name = "URL", conflicts_with_all = ["agent", "checkpoint"])]
    pub(crate) store: Option<String>,
    /// Let this `deloop serve` decide: https://HOST[:PORT], or http on this machine. While it is away, deloop decides on
    /// this machine
    #[arg(long, value_name = "URL", conflicts_with_all = ["store", "checkpoint"])]
    pub(crate) server: Option<String>,
    /// The file to read [default: stdin]
    pub(crate) file: Option<PathBuf>,
}

/// `deloop purge`
#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// The session to delete [default: all sessions]
    pub(crate) session: Option<String>,
    /// Delete everything without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// `deloop profiles`
#[derive(Debug, Args)]
pub(crate) struct ProfilesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ProfilesCommand>,
}

/// The subcommands of `deloop profiles`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfilesCommand {
    /// Print a profile as TOML
    #[command(after_help = "Example: deloop profiles show doom-loop > deloop.toml")]
    Show {
        /// The profile's name
        name: String,
    },
}

/// `deloop explain`
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A detector, or the id of a decision or its first characters [default: list all detectors]
    pub(crate) name: Option<String>,
}

/// `deloop config`
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

/// `deloop schema`
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// What to describe
    #[arg(value_enum)]
    pub(crate) of: SchemaOf,
}

/// Everything that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// deloop.toml and deloop.yaml
    Config,
    /// Input of `deloop stream`
    Step,
    /// Output of `deloop stream`
    Decision,
    /// A line of `deloop stream --events`
    Event,
    /// Output of `deloop scan --json`
    Scan,
    /// Output of `deloop compare --json`
    Compare,
    /// Output of `deloop report --daily --json`
    #[cfg(feature = "serve")]
    DailyReport,
    /// Output of `deloop report --weekly --json`
    #[cfg(feature = "serve")]
    WeeklyReport,
    /// Output of `deloop budget show --json`
    #[cfg(feature = "serve")]
    Budgets,
    /// The file of `deloop run --json`
    RunResult,
    /// Input of `deloop hook behavioral`, also `input`
    #[value(alias = "input")]
    HookInput,
    /// Output of `deloop hook behavioral`, also `output`
    #[value(alias = "output")]
    HookOutput,
    /// A line of tool-events.jsonl
    ToolEvent,
    /// The HTTP API of `deloop serve`, as an OpenAPI document
    #[cfg(feature = "serve")]
    Openapi,
}

/// `deloop completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// `deloop man`
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write one page per subcommand to this folder instead
    pub(crate) folder: Option<PathBuf>,
}
