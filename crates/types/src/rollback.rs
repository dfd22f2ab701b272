#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of steps that repeat themselves, to be taken out of the conversation, and the one line that takes their place.
/// A model that reads the same turn many times tends to write it again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Rollback {
    /// The first step of the range: the turn with which the repetition began.
    pub from_step: u64,
    /// The last step of the range, which is before the step that was decided about.
    pub to_step: u64,
    /// What happened in these steps, for the model.
    pub summary: String,
}

impl Rollback {
    /// Creates the rollback of the steps `from_step` to `to_step`, both included.
    pub fn new(from_step: u64, to_step: u64, summary: impl Into<String>) -> Self {
        Self { from_step, to_step, summary: summary.into() }
    }
}
