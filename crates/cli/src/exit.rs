//! Exit codes, and the failures of subcommands.

/// Success.
pub(crate) const OK: u8 = 0;
/// Success, and `--fail-on` matched or `deloop doctor` found a problem.
pub(crate) const FOUND: u8 = 1;
/// The command failed, or part of its input couldn't be read.
pub(crate) const COULD_NOT_RUN: u8 = 2;

/// `deloop run`: deloop stopped the agent. No agent is known to end with it, and no shell gives it a meaning.
pub(crate) const STOPPED: u8 = 86;
/// `deloop run --on-stop person`: deloop stopped the agent, and a person must continue.
pub(crate) const HANDED_OVER: u8 = 87;
/// `deloop run`: nothing happened for too long, and deloop ended the agent.
pub(crate) const STALLED: u8 = 88;
/// `deloop run`: the agent could not be started.
pub(crate) const NOT_STARTED: u8 = 126;
/// `deloop run`: there is no such agent.
pub(crate) const NOT_FOUND: u8 = 127;

/// Why a subcommand ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of the output is gone, which isn't an error.
    ClosedPipe,
    /// An error message that names the fix.
    Message(String),
}

impl Failure {
    /// Creates a failure with this message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Message(error.to_string())
        }
    }
}

impl From<deloop_policy::DocumentError> for Failure {
    fn from(error: deloop_policy::DocumentError) -> Self {
        Self::Message(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() { std::io::Error::from(error).into() } else { Self::Message(error.to_string()) }
    }
}
