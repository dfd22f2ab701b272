//! `deloop hook`, with a subcommand for every agent in the list.

use std::path::PathBuf;

use clap::{Args, FromArgMatches, Subcommand, ValueEnum};
use deloop_formats::hooks::{HOOK_AGENTS, hook_agent};

use super::RuleArgs;

/// `deloop hook`
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) agent: HookCommand,
}

/// The subcommands of `deloop hook`.
#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Check one action against the behavioral profile
    #[command(after_help = BEHAVIORAL_EXAMPLES)]
    Behavioral(BehavioralArgs),
    /// One of [`deloop_formats::hooks::HOOK_AGENTS`].
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
    /// Let this `deloop serve` decide: https://HOST[:PORT], or http on this machine [default: `server.url` of your own
    /// configuration]. Steps are sent to it; while it is away, deloop decides on this machine
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
}

impl Subcommand for AgentHook {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        HOOK_AGENTS.iter().fold(command, |command, agent| {
            let unverified = if agent.verified() { "" } else { " (unverified: never tested with the agent)" };
            let about = format!("Handle a hook event of {}{unverified}", agent.title());
            let one = clap::Command::new(agent.name()).aliases(agent.alias());
            // The arguments bring a description of their own.
            command.subcommand(AgentHookArgs::augment_args(one).about(about).long_about(None))
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

const BEHAVIORAL_EXAMPLES: &str = "Examples:
  Before an action (`pre-execute` is the default):
  echo '{\"taskId\":\"t1\",\"toolName\":\"Read\",\"args\":{\"path\":\"a.ts\"}}' | deloop hook behavioral

  After it, with its result:
  echo '{\"taskId\":\"t1\",\"toolName\":\"Read\",\"args\":{\"path\":\"a.ts\"},\"success\":false,\"error\":\"ENOENT\"}' |
    deloop hook behavioral post-execute

  As hook files of a skill, with their schemas:
  deloop hook behavioral --print-shim pre-execute > hooks/pre-execute.cjs
  deloop hook behavioral --print-shim post-execute > hooks/post-execute.cjs
  deloop schema input > schemas/input.schema.json
  deloop schema output > schemas/output.schema.json

The input is checked against its schema. A missing taskId is exit code 2.";

/// When the hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookPhase {
    /// Before an action: print its level of escalation
    PreExecute,
    /// After an action: add its result
    PostExecute,
    /// After a session: delete its tasks. The input is `{"sessionId":"..."}`
    SessionEnd,
}

/// `deloop hook behavioral`
#[derive(Debug, Args)]
pub(crate) struct BehavioralArgs {
    /// When the hook runs
    #[arg(value_enum, value_name = "WHEN", default_value = "pre-execute")]
    pub(crate) phase: HookPhase,
    /// Print a hook file in JavaScript that calls deloop, and do nothing else
    #[arg(long, value_enum, value_name = "WHEN")]
    pub(crate) print_shim: Option<HookPhase>,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// The folder that keeps tasks between calls [default: the state folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// The file for loop-detection events [default: tool-events.jsonl in the memory or state folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) tool_events: Option<PathBuf>,
    /// The folder of learnings.md and issues.md [default: `memory.folder` of the configuration]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) memory: Option<PathBuf>,
    /// Minutes without an action after which a task is over and starts afresh
    #[arg(long, value_name = "MINUTES", default_value_t = 60)]
    pub(crate) task_idle: u64,
}
