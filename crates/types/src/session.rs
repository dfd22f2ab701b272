use serde::{Deserialize, Serialize};

/// Identifies one run of one agent and its subagents. Sessions don't influence each other,
/// unless they belong to the same swarm.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Returns the id as it appears in JSON.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for SessionId {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl<S: Into<String>> From<S> for SessionId {
    /// Converts a name. One longer than [`limits::NAME`](crate::limits::NAME) is shortened.
    fn from(id: S) -> Self {
        Self(crate::limits::name(id.into()))
    }
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
