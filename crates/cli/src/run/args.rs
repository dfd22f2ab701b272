//! The arguments of `deloop run`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::args::ModeArg;
use crate::exit::Failure;

pub(crate) const RUN_HELP: &str = "\
Examples:
  deloop run -- codex exec 'fix the tests'
  deloop run --handoff handoff.md -- claude -p 'fix the tests' || echo \"ended with $?\"
  deloop run --on-stop retry --json result.json -- claude -p 'fix the tests'
  deloop run --on-stop run --then './notify.sh' -- claude -p 'fix the tests'
  deloop run --on-stop person -- claude -p 'fix the tests'
  deloop run --stall 30m -- claude -p 'fix the tests'

The agent needs deloop hooks (`deloop install AGENT`). When deloop stops the run, the agent gets a
moment to exit by itself. Then deloop interrupts it, terminates it after the grace time, and
finally kills it together with everything it started. A hand-off file says what was tried, where
it looped and how to continue; its path is printed on standard error.

An agent that hangs calls no hooks. If nothing has happened for as long as `--stall` says, and for
three times as long as ever before in the run, deloop warns at half of that time, then ends the
agent in the same way. A call that writes something, or that the agent itself gave more time,
isn't a stall.

With `--recover`, an agent that ignores two nudges is restarted instead of being blocked and stopped:
once per run, in a new session that is told what the earlier one repeated.

`--on-stop` says what happens next:
  end     deloop exits with 86, or with 88 after a stall
  retry   the same command starts again, in a new session, and its agent is told what the stopped
          one repeated; standard input is given to every attempt
  run     the command of `--then` runs in a shell, with the result so far as JSON on standard input
          and DELOOP_HANDOFF, DELOOP_STATUS, DELOOP_SESSION, DELOOP_DECISION and DELOOP_RUN_ID set
  person  at a terminal, deloop asks whether to retry, to open the session in the agent or to end;
          without one, it exits with 87

Exit codes: 86 deloop stopped the run (with `retry`: the last attempt); 87 handed over to a person;
88 deloop ended the run because nothing happened;
126 the agent couldn't be started; 127 it wasn't found; with `run`, the code of the `--then`
command; otherwise the agent's own code, or 128+N if signal N ended it.";

/// The most retries that can be asked for.
const MOST_RETRIES: i64 = 10;

/// What happens after deloop stopped the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnStop {
    /// Exit with 86
    End,
    /// Start the command again, and tell its agent what the stopped one repeated
    Retry,
    /// Run the command of --then
    Run,
    /// Ask the person at the terminal, or exit with 87
    Person,
}

/// `deloop run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The strongest action deloop may take
    #[arg(long, value_enum, default_value = "enforce")]
    pub(crate) mode: ModeArg,
    /// What happens after deloop stopped the run
    #[arg(long, value_enum, value_name = "WHAT", default_value = "end")]
    pub(crate) on_stop: OnStop,
    /// How often --on-stop retry starts the command again, at most [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=MOST_RETRIES))]
    pub(crate) retries: Option<u8>,
    /// The shell command that --on-stop run starts
    #[arg(long, value_name = "CMD")]
    pub(crate) then: Option<String>,
    /// Write the outcome to this file, as JSON (`deloop schema run-result`)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the hand-off to this file; a retry adds its number to the name [default: a file in the state folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) handoff: Option<PathBuf>,
    /// Let this `deloop serve` decide, whatever the agent's hooks and your configuration name; `off` for none
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// End the agent if nothing happens for this long, such as 30s, 90m or 3h; 0 for never [default: 2h, or 52m
    /// while a call runs; `stall` in `[run]` of your configuration]
    #[arg(long, value_name = "TIME")]
    pub(crate) stall: Option<String>,
    /// When the agent ignored two nudges: `fresh` starts it again in a new session, `model=NAME` does that with another
    /// model [default: `recover` in `[run]` of your configuration]
    #[arg(long, value_name = "HOW")]
    pub(crate) recover: Option<String>,
    /// How long the agent gets to exit after each signal
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub(crate) grace: f64,
    /// The agent and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "AGENT")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

impl RunArgs {
    /// Returns an error that names the fix if options contradict each other.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let blank = self.then.as_ref().is_some_and(|then| then.trim().is_empty());
        let problem = match (self.on_stop, self.retries, &self.then) {
            (OnStop::Run, _, None) => "--on-stop run needs a command: add --then 'CMD'",
            (OnStop::Run, _, Some(_)) if blank => "--then is empty: name the command to run",
            (on_stop, _, Some(_)) if on_stop != OnStop::Run => "--then only works with --on-stop run",
            (on_stop, Some(_), _) if on_stop != OnStop::Retry => "--retries only works with --on-stop retry",
            _ => return Ok(()),
        };
        Err(Failure::new(problem))
    }

    /// Returns how long the agent gets to exit after each signal.
    pub(super) fn grace_time(&self) -> Duration {
        let grace = if self.grace.is_finite() { self.grace.clamp(0.0, 3600.0) } else { 5.0 };
        Duration::from_secs_f64(grace)
    }

    /// Returns how many attempts there may be without a person's word.
    pub(super) fn attempts(&self) -> usize {
        if self.on_stop == OnStop::Retry { 1 + usize::from(self.retries.unwrap_or(1)) } else { 1 }
    }
}
