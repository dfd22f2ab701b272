//! What can be typed after `deloop run`.

use std::path::PathBuf;

use clap::Args;

use crate::args::ModeArg;

pub(crate) const RUN_HELP: &str = "\
Examples:
  deloop run -- codex exec 'fix the tests'
  deloop run --handoff handoff.md -- claude -p 'fix the tests' || echo \"ended with $?\"

The agent's own hooks must call deloop (`deloop install AGENT`). When deloop says stop, an agent that can end by itself
gets a moment to do so; it is then interrupted, after the grace time terminated and at last killed, with all that it started. A hand-off file
says what was tried, where it looped and how to go on; its path is printed on standard error.

Exit codes: 86 deloop stopped the run, however the agent ended then; 126 the agent could not be started; 127 it was not
found; else the agent's own, 128+N when signal N ended it.";

/// `deloop run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// How far deloop may go
    #[arg(long, value_enum, default_value = "enforce")]
    pub(crate) mode: ModeArg,
    /// Where to write what a person needs to go on; else a file in the state folder
    #[arg(long, value_name = "FILE")]
    pub(crate) handoff: Option<PathBuf>,
    /// How long the agent gets to end, after each request to do so
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub(crate) grace: f64,
    /// The agent and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "AGENT")]
    pub(crate) command: Vec<std::ffi::OsString>,
}
