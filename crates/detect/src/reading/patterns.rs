//! Names that deloop recognizes: test files, plan files, tools for plans and subagents, and the states of a task.

use std::collections::HashMap;

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

impl PatternOf {
    /// Returns whether these are names of files, which are compared by wildcards.
    fn of_files(self) -> bool {
        matches!(self, Self::TestFile | Self::PlanFile)
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl PatternList {
    fn fits_file(&self, path: &str) -> bool {
        let mut parts = path.rsplit(['/', '\\']);
        let name = parts.next().unwrap_or_default();
        self.patterns.iter().any(|pattern| matches_wildcard(pattern, name))
            || parts.any(|folder| self.folders.iter().any(|f| f == folder))
    }
}

/// What a tool, an argument, a field or a state is by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NameKinds(u16);

impl NameKinds {
    pub(crate) fn has(self, of: PatternOf) -> bool {
        self.0 & of.bit() != 0
    }
}

/// The longest name that is looked up, in letters and digits.
const LONGEST_NAME: usize = 40;

/// Returns the kinds of all names in the lists, for [`Vocabulary::kinds`].
pub(super) fn name_kinds(lists: &[PatternList]) -> HashMap<String, NameKinds> {
    let mut kinds: HashMap<String, NameKinds> = HashMap::new();
    for list in lists.iter().filter(|list| !list.of.of_files()) {
        for name in &list.patterns {
            kinds.entry(name.clone()).or_default().0 |= list.of.bit();
        }
    }
    kinds
}

impl Vocabulary {
    /// Returns whether a name is of this kind.
    pub(crate) fn is_a(&self, of: PatternOf, name: &str) -> bool {
        if of.of_files() {
            return self.lists().patterns.iter().any(|list| list.of == of && list.fits_file(name));
        }
        self.kinds(name).has(of)
    }

    /// Returns all kinds that a name is of, but those of files.
    pub(crate) fn kinds(&self, name: &str) -> NameKinds {
        // Most names are written as the lists write them.
        if name.len() <= LONGEST_NAME && name.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return self.name_kinds().get(name.as_bytes()).copied().unwrap_or_default();
        }
        let (mut letters, mut length, mut last) = ([0; LONGEST_NAME], 0, 0);
        for byte in name.bytes() {
            if byte == b'_' && last == b'_' {
                // The name of an MCP tool includes its server: mcp__SERVER__TOOL.
                length = 0;
            } else if byte.is_ascii_alphanumeric() {
                if let Some(letter) = letters.get_mut(length) {
                    *letter = byte.to_ascii_lowercase();
                }
                length += 1;
            }
            last = byte;
        }
        letters.get(..length).and_then(|name| self.name_kinds().get(name)).copied().unwrap_or_default()
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
                assert!(vocabulary.is_a(list.of, example), "{}: {example}", list.name);
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
