use serde::{Deserialize, Serialize};

use super::{KnownFailures, SpawnTree};

/// What a session remembers across its agents. Empty until a subagent is started or a call fails the same way twice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WholeSession {
    /// Its subagents, from the first call that starts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Box<SpawnTree>>,
    /// The failures that its agents met, if the session names no project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Box<KnownFailures>>,
}

impl WholeSession {
    /// Returns whether there is nothing to remember.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tree.is_none() && self.failures.is_none()
    }
}
