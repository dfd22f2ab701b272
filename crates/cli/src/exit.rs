//! Exit codes, and how a subcommand ends that could not do its work.

/// It ran.
pub(crate) const OK: u8 = 0;
/// It ran, and found what `--fail-on` asked about, or `deloop doctor` found something wrong.
pub(crate) const FOUND: u8 = 1;
/// It could not run, or a part of its input could not be read.
pub(crate) const COULD_NOT_RUN: u8 = 2;

/// `deloop run`: deloop stopped the agent. No agent is known to end with it, and no shell gives it a meaning.
pub(crate) const STOPPED: u8 = 86;
/// `deloop run`: the agent could not be started.
pub(crate) const NOT_STARTED: u8 = 126;
/// `deloop run`: there is no such agent.
pub(crate) const NOT_FOUND: u8 = 127;

/// Why a subcommand ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read our output has gone: nothing is wrong.
    ClosedPipe,
    /// What is wrong, and how to fix it.
    Message(String),
}

impl Failure {
    /// A failure with this message.
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
