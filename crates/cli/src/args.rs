//! What can be typed: the one definition that help, completions and the man page come from.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use deloop_formats::FORMATS;
use deloop_formats::hooks::{HOOK_AGENTS, hook_agent};
use deloop_types::Mode;

use crate::doctor::{DOCTOR_HELP, DoctorArgs};
use crate::install::args::{INSTALL_HELP, InstallArgs, StatusArgs, UninstallArgs};
use crate::live::args::{
    ALLOW_HELP, AllowArgs, LOG_HELP, LogArgs, PAUSE_HELP, PauseArgs, ResumeArgs, WRONG_HELP, WrongArgs,
};
use crate::run::args::{RUN_HELP, RunArgs};
use crate::scan::args::{CompareArgs, ScanArgs, ShowArgs};
use crate::trust::{TRUST_HELP, TrustArgs};

const SCAN_HELP: &str = "\
Examples:
  deloop scan                                   all sessions on this machine
  deloop scan --since 30d --html report.html    an HTML report
  deloop scan ~/runs/*.jsonl run.traj.zst --json
  my-agent --dump | deloop scan - --fail-on block

Escape sequences are removed from session text, and keys and tokens are masked. `--redact` also
hides arguments and results. Nothing leaves your machine.

Exit codes: 0 success; 1 a loop reached the level of --fail-on; 2 failure, or a path you named
could not be read.";

const EVAL_HELP: &str = "\
Examples:
  deloop eval sessions/labels.jsonl                     the profile `default`
  deloop eval a/labels.jsonl b/labels.jsonl --ablate    two sets, and what each detector adds
  deloop eval labels.jsonl --corpus sessions/ -p default -p mine.toml --verbose

A label is a JSON line; a session may have several:
  {\"path\":…,\"label\":\"loop|legit|none|borderline\",\"onset_turn\":N,\"last_turn\":N}

Turns count from 0. Actions close to each other are one alarm. An alarm is right if it falls between
6 turns before the onset of a loop and 2 turns after its end. An alarm on honest work, on a session
without a label or before a loop is false.

Exit codes: 0 success; 2 failure, or a file or session with a label could not be read.";

/// Notices when an AI agent is stuck in a loop, and gets it out.
#[derive(Debug, Parser)]
#[command(
    name = "deloop",
    version,
    about,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 it ran; 2 it could not run, or some of its input could not be read.\n\
                  DELOOP=off in the environment switches all of it off."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What deloop can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find loops in the sessions of the agents on your machine
    #[command(after_help = SCAN_HELP)]
    Scan(ScanArgs),
    /// Show one session around its loops, and what deloop would have done
    #[command(after_help = "Examples:\n  \
        deloop show 3f2a1c9e\n  \
        deloop show run.jsonl --profile doom-loop --all\n  \
        deloop show run.jsonl --all --evidence\n  \
        deloop show example-tests\n\n\
        ⟲ marks what repeats, ▲ what deloop would have done.")]
    Show(ShowArgs),
    /// Compare two profiles or configurations on the same sessions
    #[command(after_help = "Examples:\n  \
        deloop compare --a default --b doom-loop\n  \
        deloop compare --a default --b my-deloop.toml ~/runs --since 30d\n\n\
        A name is a built-in profile. A file is a configuration on top of the profile it names.")]
    Compare(CompareArgs),
    /// Play a stuck session that deloop nudges, blocks and stops
    Demo(DemoArgs),
    /// Read Steps, answer each with a Decision
    #[command(after_help = "Examples:\n  \
        deloop stream --profile doom-loop steps.jsonl\n  \
        my-agent | deloop stream --events events.jsonl\n\n\
        One JSON object a line, both ways; `deloop schema step` and `deloop schema decision` describe them.\n\
        Every non-blank line gets one answer. A line that cannot be read gets {\"error\":…,\"line\":N}, and the exit code is 2 at the end.")]
    Stream(StreamArgs),
    /// Print session files of any format as Steps
    #[command(after_help = "Examples:\n  \
        deloop steps ~/.claude/projects/*/3f2a1c9e*.jsonl | jq -r 'select(.type==\"turn\").calls[].tool'\n  \
        deloop steps run.traj.zst | deloop stream --profile doom-loop\n  \
        my-agent --dump | deloop steps - --format openai-messages\n\n\
        Prints one JSON object per line (see `deloop schema step`). Nothing is masked: the output has\n\
        every key and token that the session has. Problems go to standard error.\n\n\
        Exit codes: 0 success; 2 failure, or a file is missing or no session.")]
    Steps(StepsArgs),
    /// Put deloop into the settings of agents, so that they are guarded from their next session on
    #[command(after_help = INSTALL_HELP)]
    Install(InstallArgs),
    /// Take deloop out of the settings of agents
    #[command(
        after_help = "Examples:\n  deloop uninstall claude-code\n  deloop uninstall --scope project\n\n\
        Only deloop's own entries go. If nothing else changed since, the file is again what it was, byte for byte."
    )]
    Uninstall(UninstallArgs),
    /// Show which agents are installed, which have deloop hooks, and when each hook last ran
    Status(StatusArgs),
    /// Be the hook of an agent: one event on stdin, the reply on stdout
    Hook(HookArgs),
    /// Delete stored session data
    Purge(PurgeArgs),
    /// List the profiles, or print one as a template for your own
    Profiles(ProfilesArgs),
    /// List the session formats that can be read, or tell of one
    #[command(after_help = "Examples:\n  deloop formats\n  deloop formats claude-code")]
    Formats(FormatsArgs),
    /// Rehearse a stuck session through every installed hook, and say what is wrong
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Run an agent unattended and stop it if it gets stuck
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Show what was decided lately, and why
    #[command(after_help = LOG_HELP)]
    Log(LogArgs),
    /// Explain why a decision was made, or what a detector finds
    #[command(after_help = "Examples:\n  deloop explain d3f2a1         a decision of `deloop log`\n  \
        deloop explain no-progress    a detector, with examples")]
    Explain(ExplainArgs),
    /// Say that a decision was wrong: that pattern is left alone, and a redacted label is kept
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
    /// Measure profiles on labelled sessions: loops found, false alarms per 1,000 calls, precision, recall, delay
    #[command(after_help = EVAL_HELP)]
    Eval(EvalArgs),
    /// Print what deloop knows about tools, commands and outputs
    #[command(after_help = "Your own lists go into `[vocabulary]` of your configuration, in the same form; \
        `without = [\"NAME\"]` there switches a list off.")]
    Vocabulary,
    /// Let a configuration in a folder apply, until it changes
    #[command(after_help = TRUST_HELP)]
    Trust(TrustArgs),
    /// Show where the configuration comes from and what it amounts to
    Config(ConfigArgs),
    /// Print a JSON Schema
    Schema(SchemaArgs),
    /// Print a completion script for a shell
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
    /// Session files, folders, globs, or `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Read every file as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|f| f.name())))]
    pub(crate) format: Option<String>,
}

/// Which rules apply.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RuleArgs {
    /// The profile: one of `deloop profiles`, or a TOML file
    #[arg(long, short, value_name = "PROFILE", env = "DELOOP_PROFILE")]
    pub(crate) profile: Option<String>,
    /// The configuration file; else deloop.toml or deloop.yaml in the user's config folder, and the nearest one upward
    /// from here if you trust it (`deloop trust`)
    #[arg(long, value_name = "FILE", env = "DELOOP_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// How far deloop may go
    #[arg(long, value_enum, env = "DELOOP_MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// A person is there to be asked
    #[arg(long)]
    pub(crate) attended: bool,
}

/// [`Mode`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// Decide and record, do nothing
    Shadow,
    /// Nudge at most
    Nudge,
    /// Do what the profile says
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

/// `deloop demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

/// `deloop formats`
#[derive(Debug, Args)]
pub(crate) struct FormatsArgs {
    /// The format
    pub(crate) name: Option<String>,
}

/// `deloop stream`
#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// Append events (loop_detected, nudge, block, session.terminated, cost.attributed, …) to this file, a line each
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Go on from this checkpoint if it exists, and write it at the end
    #[arg(long, value_name = "FILE")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Speak for the plugin of this agent: nudge where nothing says otherwise, and note for `deloop status` and
    /// `deloop log` what was decided
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The Steps; standard input if none is named
    pub(crate) file: Option<PathBuf>,
}

/// `deloop hook`
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) agent: HookAgent,
}

/// Whose hook.
#[derive(Debug, Subcommand)]
pub(crate) enum HookAgent {
    /// Check one action against the behavioral profile
    #[command(after_help = "Example:\n  \
        echo '{\"taskId\":\"t1\",\"toolName\":\"Read\",\"args\":{\"file_path\":\"a.ts\"}}' | deloop hook behavioral\n\n\
        `deloop schema hook-input` and `deloop schema hook-output` describe the JSON. Without a taskId the exit code is 2.")]
    Behavioral(BehavioralArgs),
    /// An agent of [`deloop_formats::hooks::HOOK_AGENTS`].
    #[command(flatten)]
    Agent(AgentHook),
}

/// `deloop hook AGENT`, for every agent in the list.
#[derive(Debug)]
pub(crate) struct AgentHook {
    pub(crate) agent: String,
    pub(crate) args: AgentHookArgs,
}

/// The options of an agent's hook.
#[derive(Debug, Args)]
pub(crate) struct AgentHookArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
}

impl Subcommand for AgentHook {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        HOOK_AGENTS.iter().fold(command, |command, agent| {
            let unverified =
                if agent.verified() { "" } else { " (unverified: written after its documentation)" };
            let one = clap::Command::new(agent.name())
                .about(format!("Be the hook of {}{unverified}", agent.title()))
                .aliases(agent.alias());
            command.subcommand(AgentHookArgs::augment_args(one))
        })
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        hook_agent(name).is_some()
    }
}

impl FromArgMatches for AgentHook {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let Some((agent, inner)) = matches.subcommand() else {
            return Err(clap::Error::new(clap::error::ErrorKind::MissingSubcommand));
        };
        Ok(Self { agent: agent.to_owned(), args: AgentHookArgs::from_arg_matches(inner)? })
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `deloop hook behavioral`
#[derive(Debug, Args)]
pub(crate) struct BehavioralArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// Where tasks are remembered between calls; else the user's state folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// Where the loop-detection event goes; else tool-events.jsonl in the memory or state folder
    #[arg(long, value_name = "FILE")]
    pub(crate) tool_events: Option<PathBuf>,
    /// The folder of learnings.md and issues.md; else `memory.folder` of the configuration
    #[arg(long, value_name = "FOLDER")]
    pub(crate) memory: Option<PathBuf>,
}

/// `deloop purge`
#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// The session; everything if none is named
    pub(crate) session: Option<String>,
}

/// `deloop profiles`
#[derive(Debug, Args)]
pub(crate) struct ProfilesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ProfilesCommand>,
}

/// What to do with profiles.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfilesCommand {
    /// Print a profile as TOML
    #[command(after_help = "Example: deloop profiles show doom-loop > deloop.toml")]
    Show {
        /// Its name
        name: String,
    },
}

/// `deloop explain`
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// A detector, or the id of a decision or its beginning; all detectors are listed if none is named
    pub(crate) name: Option<String>,
}

/// `deloop eval`
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Labels files with one JSON object per line; each is a set, named after its folder
    #[arg(required = true, value_name = "LABELS")]
    pub(crate) labels: Vec<PathBuf>,
    /// The folder that the paths in the labels are relative to [default: the folder of the labels file]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) corpus: Option<PathBuf>,
    /// A profile or a TOML file; repeat it to measure several
    #[arg(long = "profile", short, value_name = "PROFILE")]
    pub(crate) profiles: Vec<String>,
    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List every action behind a false alarm or a missed loop
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Leave out sessions without a label
    #[arg(long)]
    pub(crate) labelled_only: bool,
    /// Show what changes when one detector or rule at a time is switched off
    #[arg(long)]
    pub(crate) ablate: bool,
    /// Measure against the resource-abuse labels instead of the loop labels; leaves out sessions without one
    #[arg(long)]
    pub(crate) resource_abuse: bool,
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
    /// Of what
    #[arg(value_enum)]
    pub(crate) of: SchemaOf,
}

/// What has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// deloop.toml and deloop.yaml
    Config,
    /// What goes into `deloop stream`
    Step,
    /// What comes out of `deloop stream`
    Decision,
    /// The lines of `--events`
    Event,
    /// What `deloop scan --json` prints
    Scan,
    /// What `deloop compare --json` prints
    Compare,
    /// What goes into `deloop hook behavioral`
    HookInput,
    /// What comes out of `deloop hook behavioral`
    HookOutput,
    /// The lines of tool-events.jsonl
    ToolEvent,
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
    /// Write one page per subcommand into this folder instead
    pub(crate) folder: Option<PathBuf>,
}
