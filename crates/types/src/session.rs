use serde::{Deserialize, Serialize};

/// Names one run of one agent (with its subagents). Sessions never influence each other,
/// except through a swarm they say they belong to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// The id as it stands on the wire.
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
    /// A name longer than [`limits::NAME`](crate::limits::NAME) is shortened.
    fn from(id: S) -> Self {
        Self(crate::limits::name(id.into()))
    }
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
