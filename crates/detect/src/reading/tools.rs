//! What kind of thing a tool does, by its name; users declare what the name does not tell.

use std::collections::BTreeMap;
use std::sync::Arc;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Vocabulary;

/// What a tool does, as far as repetition is concerned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// Shows something and changes nothing.
    Read,
    /// Changes something.
    Write,
    /// Runs shell commands.
    Run,
    /// Looks for something.
    Search,
    /// Waits for something that runs elsewhere: repeating it is its purpose.
    Poll,
    /// Shows the next piece of something long.
    Page,
    /// Talks to a person or to another agent, or keeps notes.
    Talk,
    /// Runs tests.
    Test,
    /// Anything else.
    #[default]
    Other,
}

/// What a user says about one tool: `[tools.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ToolRule {
    /// What the tool does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The arguments that say what a call is about; the others do not tell one call from another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// How often the same call may come in a row before it counts as repeated; for a poll, its budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

/// What is known about tools, commands and outputs: the vocabulary, and what the user declared tool by tool.
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
    /// These rules, by tool name.
    #[must_use]
    pub fn new(rules: BTreeMap<String, ToolRule>) -> Self {
        Self { rules, vocabulary: Vocabulary::builtin() }
    }

    /// The same rules with another vocabulary.
    #[must_use]
    pub fn speaking(mut self, vocabulary: Arc<Vocabulary>) -> Self {
        self.vocabulary = vocabulary;
        self
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What the user said about this tool.
    #[must_use]
    pub fn rule(&self, tool: &str) -> Option<&ToolRule> {
        if self.rules.is_empty() { None } else { self.rules.get(tool) }
    }

    /// What a tool does: as declared, else as its name says.
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
}

/// The words of a tool's name: `runTests`, `run_tests` and `run-tests` have the same two.
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
