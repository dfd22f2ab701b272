use std::collections::BTreeMap;

use deloop_types::{Action, Role};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// At which count which action is taken, with which message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Ladder {
    /// What the rungs' `at` counts.
    pub by: RungUnit,
    /// By occurrence: a pattern is forgotten when its last occurrence is this many calls back.
    pub forget: u64,
    /// How often the agent is told at most, in one session; 0 is without limit.
    pub limit: u64,
    /// Lowest first.
    pub rungs: Vec<Rung>,
}

/// What a rung's `at` counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RungUnit {
    /// The finding's own count.
    #[default]
    Count,
    /// How often the same pattern was found, one full lap counting once.
    Occurrence,
}

/// One rung of a [`Ladder`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Rung {
    /// From which count on.
    pub at: u64,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is done.
    pub action: Action,
    /// What is said, with placeholders: `{count}`, `{tool}`, `{pattern}`, `{alternatives}`, `{workers}`,
    /// `{summary}` (for people), `{told}` and `{advice}` (for the agent), `{unit}`, `{similarity}`.
    pub message: String,
    /// Other messages, for what a detector tells apart.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, String>,
    /// In whose name it is said.
    pub role: Role,
    /// How the run ended, on `stop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// On `stop`: what was remembered of the session is forgotten.
    pub clear: bool,
    /// The decision carries an update of the task.
    pub task_update: bool,
}

impl Ladder {
    /// The highest rung that this count reaches, with its level (from 1).
    #[must_use]
    pub fn reach(&self, count: u64) -> Option<(u32, &Rung)> {
        let index = self.rungs.iter().rposition(|rung| count >= rung.at)?;
        Some((u32::try_from(index + 1).unwrap_or(u32::MAX), &self.rungs[index]))
    }
}
