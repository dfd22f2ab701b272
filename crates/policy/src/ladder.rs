use std::borrow::Cow;
use std::collections::BTreeMap;

use deloop_types::{Action, Role};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A list of rungs: which action to take at which count, with which message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Ladder {
    /// What the rungs' `at` counts.
    pub by: RungUnit,
    /// With `by = "occurrence"`: forget a pattern when its last occurrence is this many calls back.
    pub forget: u64,
    /// Maximum number of messages to the agent per session; 0 means no limit.
    pub limit: u64,
    /// The message that the agent gets if it ignores all messages of the rungs and nothing stronger may follow, because of the mode
    /// or because the evidence isn't hard: each time the count has doubled. It may also contain `{warning}`, its number, and `{since}`, what the session has cost since the first message.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reminder: String,
    /// Send events at every step with a finding. Without it, they are sent once per rung and episode, as alerts always are.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub every_event: bool,
    /// What a person sees at every finding, instead of a line that deloop writes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_message: String,
    /// Put its message before that of another finding, if both are due at one step. Action and level are the stronger one's.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
    /// The rungs, lowest first.
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
    /// How often the same pattern was found; each full cycle counts once.
    Occurrence,
    /// How serious the detector considers the finding. Several agents may reach the rungs in turn, so one isn't sent the
    /// messages of all rungs below.
    Severity,
}

/// One rung of a [`Ladder`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Rung {
    /// The count from which the rung applies. Without it, that of the rung before; for the first rung, whatever the detector
    /// reports.
    pub at: u64,
    /// With `rules = "episodes"`: minimum number of turns since the ladder's last message.
    pub after: u64,
    /// The rung's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The action to take.
    pub action: Action,
    /// The message, with placeholders: `{count}`, `{tool}`, `{pattern}`, `{alternatives}`, `{workers}`,
    /// `{summary}` (for people), `{told}` and `{advice}` (for the agent), `{unit}`, `{setting}`, `{similarity}`.
    pub message: String,
    /// Alternative messages, by the variant that the detector reports.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub variants: BTreeMap<String, String>,
    /// The sentence of the message that announces what deloop does. In mode `nudge` it isn't done, so the sentence is left
    /// out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub consequence: String,
    /// The role under which the message is added to the conversation.
    pub role: Role,
    /// The status of the run, on `stop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// On `stop`: delete the session's stored state.
    pub clear: bool,
    /// Add a task update to the decision.
    pub task_update: bool,
}

impl Rung {
    /// Returns a text of this rung without its consequence, for a mode in which that doesn't follow.
    pub(crate) fn without_consequence<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let found = if self.consequence.is_empty() { None } else { text.split_once(&self.consequence) };
        found.map_or(Cow::Borrowed(text), |(before, after)| {
            Cow::Owned(format!("{}{after}", before.trim_end()))
        })
    }
}

impl Ladder {
    /// Gives each rung without a count that of the rung before.
    pub(crate) fn fill_counts(&mut self) {
        let mut last = 0;
        for rung in &mut self.rungs {
            if rung.at == 0 {
                rung.at = last;
            }
            last = rung.at;
        }
    }

    /// Returns the highest rung that this count reaches, with its level (from 1).
    #[must_use]
    pub fn reach(&self, count: u64) -> Option<(u32, &Rung)> {
        let index = self.rungs.iter().rposition(|rung| count >= rung.at)?;
        Some((u32::try_from(index + 1).unwrap_or(u32::MAX), &self.rungs[index]))
    }
}
