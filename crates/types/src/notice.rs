#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Action, SessionId};

/// A message to a controlling agent about an agent that it started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct ControllerNotice {
    /// The session that the notice is about.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub session: SessionId,
    /// The worker or subagent, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The step of that session.
    pub step: u64,
    /// The action that was decided about it.
    pub action: Action,
    /// The rung of the ladder.
    pub level: u32,
    /// The reason.
    pub message: String,
}

impl ControllerNotice {
    /// Creates a notice about a step of a session.
    #[must_use]
    pub fn new(session: SessionId, step: u64, action: Action, level: u32, message: String) -> Self {
        Self { session, agent: None, step, action, level, message }
    }
}
