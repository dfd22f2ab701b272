//! The arguments of `deloop run`.

use std::path::PathBuf;

use clap::Args;

use crate::args::ModeArg;

pub(crate) const RUN_HELP: &str = "\
Examples:
  deloop run -- codex exec 'fix the tests'
  deloop run --handoff handoff.md -- claude -p 'fix the tests' || echo \"ended with $?\"

The agent needs deloop hooks (`deloop install AGENT`). When deloop stops the run, the agent gets a
moment to exit by itself. Then deloop interrupts it, terminates it after the grace time, and
finally kills it together with everything it started. A hand-off file says what was tried, where
it looped and how to continue; its path is printed on standard error.

Exit codes: 86 deloop stopped the run; 126 the agent couldn't be started; 127 it wasn't found;
otherwise the agent's own code, or 128+N if signal N ended it.";

/// `deloop run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The strongest action deloop may take
    #[arg(long, value_enum, default_value = "enforce")]
    pub(crate) mode: ModeArg,
    /// Write the hand-off to this file [default: a file in the state folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) handoff: Option<PathBuf>,
    /// How long the agent gets to exit after each signal
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    pub(crate) grace: f64,
    /// The agent and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "AGENT")]
    pub(crate) command: Vec<std::ffi::OsString>,
}
