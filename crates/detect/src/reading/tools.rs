//! Tool kinds, by tool name; users declare those that the name doesn't show.

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PatternOf, Vocabulary};

/// What a tool does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// Reads something and changes nothing.
    Read,
    /// Changes something.
    Write,
    /// Runs shell commands.
    Run,
    /// Looks for something.
    Search,
    /// Waits for something that runs elsewhere. Repeating it is normal.
    Poll,
    /// Shows the next part of something long.
    Page,
    /// Talks to a person or to another agent, or keeps notes.
    Talk,
    /// Runs tests.
    Test,
    /// Anything else.
    #[default]
    Other,
}

/// A user's declaration about one tool: `[tools.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ToolRule {
    /// What the tool does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The arguments that identify a call; the others are ignored when calls are compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// How many times the same call may be made in a row before it counts as repeated. For a poll, its budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Whether it starts a subagent. By default, its name tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawns: Option<bool>,
}

/// Everything known about tools, commands and outputs: the vocabulary and the user's declarations.
#[derive(Debug, Clone)]
pub struct Tools {
    rules: BTreeMap<String, ToolRule>,
    vocabulary: Arc<Vocabulary>,
}

impl Default for Tools {
    fn default() -> Self {
        Self::new(BTreeMap::new())
    }
}

impl Tools {
    /// Creates rules from declarations by tool name.
    #[must_use]
    pub fn new(rules: BTreeMap<String, ToolRule>) -> Self {
        Self { rules, vocabulary: Vocabulary::builtin() }
    }

    /// Replaces the vocabulary.
    #[must_use]
    pub fn speaking(mut self, vocabulary: Arc<Vocabulary>) -> Self {
        self.vocabulary = vocabulary;
        self
    }

    /// Returns the vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Returns the user's declaration about this tool.
    #[must_use]
    pub fn rule(&self, tool: &str) -> Option<&ToolRule> {
        if self.rules.is_empty() { None } else { self.rules.get(tool) }
    }

    /// Returns what a tool does: as declared, else according to its name.
    ///
    /// ```
    /// use deloop_detect::{ToolKind, Tools};
    /// let tools = Tools::default();
    /// assert_eq!(tools.kind("run_shell_command"), ToolKind::Run);
    /// assert_eq!(tools.kind("mcp__fs__read_file"), ToolKind::Read);
    /// assert_eq!(tools.kind("frobnicate"), ToolKind::Other);
    /// ```
    #[must_use]
    pub fn kind(&self, tool: &str) -> ToolKind {
        self.rule(tool).and_then(|rule| rule.kind).unwrap_or_else(|| self.vocabulary.kind(tool))
    }

    /// Returns whether a tool starts a subagent: as declared, else according to its name.
    ///
    /// ```
    /// use deloop_detect::Tools;
    /// let tools = Tools::default();
    /// assert!(tools.spawns("Agent") && tools.spawns("spawn_agent"));
    /// assert!(!tools.spawns("wait_agent") && !tools.spawns("mcp__jira__task"));
    /// ```
    #[must_use]
    pub fn spawns(&self, tool: &str) -> bool {
        let declared = self.rule(tool).and_then(|rule| rule.spawns);
        // A server's `task` may be anything that its users call a task.
        let named = || !tool.contains("__") && self.vocabulary.is_a(PatternOf::SpawnTool, tool);
        declared.unwrap_or_else(named)
    }
}

/// Splits a tool's name into words: `runTests`, `run_tests` and `run-tests` have the same two.
pub(crate) fn name_words(name: &str) -> impl Iterator<Item = &str> {
    let bytes = name.as_bytes();
    let starts = |i: usize| bytes[i].is_ascii_uppercase() && i > 0 && bytes[i - 1].is_ascii_lowercase();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() && !bytes[at].is_ascii_alphanumeric() {
            at += 1;
        }
        let start = at;
        while at < bytes.len() && bytes[at].is_ascii_alphanumeric() && (at == start || !starts(at)) {
            at += 1;
        }
        (at > start).then(|| name.get(start..at).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_kind_wins() {
        let rule = ToolRule { kind: Some(ToolKind::Poll), ..ToolRule::default() };
        let tools = Tools::new(BTreeMap::from([("bash".to_owned(), rule)]));
        assert_eq!(tools.kind("bash"), ToolKind::Poll);
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(
            name_words("runTests_now-HTTPGet").collect::<Vec<_>>(),
            ["run", "Tests", "now", "HTTPGet"]
        );
    }
}
