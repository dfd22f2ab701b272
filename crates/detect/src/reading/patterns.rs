//! Names that deloop recognizes: test files, plan files, tools for plans and subagents, and the states of a task.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Vocabulary;

/// What the names in a [`PatternList`] are names of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PatternOf {
    /// Files that contain tests.
    #[default]
    TestFile,
    /// Files that contain a plan.
    PlanFile,
    /// Tools that write a plan or one of its items.
    PlanTool,
    /// Tools that set the state of a task.
    TaskTool,
    /// Tools that start a subagent.
    SpawnTool,
    /// States of a task that is being worked on.
    Started,
    /// States of a task that is over.
    Done,
    /// Fields that hold the state of something.
    StateField,
    /// States that pass by themselves, and fields that are true as long as one lasts.
    Pending,
    /// Fields that are false until something is ready.
    Ready,
    /// Arguments that describe a call, and aren't part of what it does.
    Description,
    /// Arguments that limit a call or ask for more rights. They matter only if it ran into the limit.
    Limit,
    /// Arguments that name a place on this machine.
    LocalPlace,
}

/// Names of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PatternList {
    /// The list's name.
    pub name: String,
    /// What these are names of.
    pub of: PatternOf,
    /// For files: names without folders, in which `*` matches anything. For tools and states: whole names, in lower
    /// case, without `_`, `-` or spaces.
    pub patterns: Vec<String>,
    /// For files: folders; every file below one of them is in this list.
    pub folders: Vec<String>,
    /// Why the list exists.
    pub why: String,
    /// Example names that are in the list.
    pub examples: Vec<String>,
}

impl PatternList {
    fn fits(&self, text: &str) -> bool {
        match self.of {
            PatternOf::TestFile | PatternOf::PlanFile => {
                let mut parts = text.rsplit(['/', '\\']);
                let name = parts.next().unwrap_or_default();
                self.patterns.iter().any(|pattern| matches_wildcard(pattern, name))
                    || parts.any(|folder| self.folders.iter().any(|f| f == folder))
            }
            _ => {
                // The name of an MCP tool includes its server: mcp__SERVER__TOOL.
                let own = text.rsplit("__").next().unwrap_or(text);
                let letters =
                    || own.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.to_ascii_lowercase());
                self.patterns.iter().any(|pattern| letters().eq(pattern.bytes()))
            }
        }
    }
}

impl Vocabulary {
    /// Returns whether a name is of this kind.
    pub(crate) fn is_a(&self, of: PatternOf, name: &str) -> bool {
        self.lists().patterns.iter().any(|list| list.of == of && list.fits(name))
    }
}

/// Returns whether a name matches a pattern in which `*` stands for any characters, in time linear in the name for each
/// `*`.
fn matches_wildcard(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            let Some(at) = rest.find(middle) else { return false };
            rest = &rest[at + middle.len()..];
        }
    }
    match last {
        Some(end) => rest.ends_with(end),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lists;
    use super::*;

    #[test]
    fn every_list_has_a_reason_and_examples_that_are_in_it() {
        let vocabulary = Vocabulary::builtin();
        for list in &vocabulary.lists().patterns {
            assert!(!list.why.is_empty() && !list.examples.is_empty(), "{}", list.name);
            for example in &list.examples {
                assert!(list.fits(example) && vocabulary.is_a(list.of, example), "{}: {example}", list.name);
            }
        }
        for no in ["src/latest.java", "src/contest.go", "testing.md", "src/spec.rs", "inspect/a.rb"] {
            assert!(!vocabulary.is_a(PatternOf::TestFile, no), "{no}");
        }
        for no in ["planet.md", "src/plans.rs", "README.md"] {
            assert!(!vocabulary.is_a(PatternOf::PlanFile, no), "{no}");
        }
    }

    #[test]
    fn wildcards() {
        for (pattern, name) in
            [("a*c", "abc"), ("*", ""), ("*.test.*", "x.test.ts"), ("a", "a"), ("a**b", "ab")]
        {
            assert!(matches_wildcard(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("a*c", "ab"), ("a", "ab"), ("*.test.*", "test.ts"), ("a*a", "a")] {
            assert!(!matches_wildcard(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn own_lists_add_and_names_switch_off() {
        let own = PatternList {
            name: "mine".to_owned(),
            of: PatternOf::TestFile,
            patterns: vec!["check-*.sh".to_owned()],
            ..PatternList::default()
        };
        let lists = Lists { patterns: vec![own], without: vec!["plan-files".to_owned()], ..Lists::default() };
        let vocabulary = Vocabulary::new(&lists);
        assert!(vocabulary.is_a(PatternOf::TestFile, "ci/check-all.sh"));
        assert!(vocabulary.is_a(PatternOf::TestFile, "a_test.go"));
        assert!(!vocabulary.is_a(PatternOf::PlanFile, "PLAN.md"));
    }
}
