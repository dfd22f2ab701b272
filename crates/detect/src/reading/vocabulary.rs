use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PatternList;
use super::patterns::{NameKinds, name_kinds};
use super::shell::program_name;
use super::tools::{ToolKind, name_words};
use crate::short_hash;

/// The built-in vocabulary, as TOML.
pub const VOCABULARY: &str = include_str!("vocabulary.toml");

/// The lists of a vocabulary. `[vocabulary]` in a configuration adds to the built-in lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Lists {
    /// Names of lists to turn off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Programs that run another program: `sudo`, or with a subcommand, `uv run`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrappers: Vec<String>,
    /// What tools do, by name.
    pub tools: Vec<ToolList>,
    /// What shell commands do.
    pub commands: Vec<CommandList>,
    /// What phrases in outputs mean.
    pub phrases: Vec<PhraseList>,
    /// Names of files, tools and states.
    pub patterns: Vec<PatternList>,
}

impl Lists {
    /// Returns the names of all lists.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().map(|l| l.name.as_str());
        let commands = self.commands.iter().map(|l| l.name.as_str());
        let patterns = self.patterns.iter().map(|l| l.name.as_str());
        tools.chain(commands).chain(self.phrases.iter().map(|l| l.name.as_str())).chain(patterns)
    }
}

/// Tools of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ToolList {
    /// The list's name.
    pub name: String,
    /// What these tools do.
    pub kind: ToolKind,
    /// Whole names, in lower case, without `_`, `-` or spaces.
    pub names: Vec<String>,
    /// Words; a tool with any of them in its name is in this list.
    pub words: Vec<String>,
    /// Groups of words; a tool with one word of each group in its name is in this list.
    pub all_of: Vec<Vec<String>>,
    /// Why the list exists.
    pub why: String,
    /// Example names that are in the list.
    pub examples: Vec<String>,
}

/// What a command does, as far as it affects later outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Prepares the shell for later commands.
    Prepares,
    /// Shows something and changes nothing.
    #[default]
    Looks,
    /// Looks for something.
    Searches,
    /// Builds or checks the sources and leaves them unchanged. What it returns depends on them alone.
    Checks,
    /// Asks another machine, a service or another process, and changes nothing here.
    Remote,
    /// Unknown.
    Unknown,
    /// Waits for something that runs elsewhere, or shows its status.
    Waits,
    /// Changes something.
    Changes,
    /// Switches to another state of the work, for example another branch. Switching back is a change too.
    Switches,
}

/// Commands with the same effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CommandList {
    /// The list's name.
    pub name: String,
    /// What these commands do.
    pub effect: Effect,
    /// The programs; `*` matches any.
    pub programs: Vec<String>,
    /// Subcommands. The first argument that isn't an option must be one of them.
    pub first: Vec<String>,
    /// Arguments, at least one of which must be present.
    pub with: Vec<String>,
    /// Argument prefixes, at least one of which must be present.
    pub starts: Vec<String>,
    /// Arguments, none of which may be present.
    pub without: Vec<String>,
    /// Why the list exists.
    pub why: String,
    /// Example commands that are in the list.
    pub examples: Vec<String>,
}

/// What a phrase in an output means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// A line that contains it reports a failure.
    #[default]
    Failure,
    /// A short output that starts with it means that nothing was found.
    Nothing,
    /// A short output whose lines all contain one means that what was asked for isn't there.
    Absent,
    /// An output that contains it reports a state that passes by itself.
    Pending,
    /// A failure that contains it reports that something couldn't be reached.
    Unreachable,
}

/// Phrases with the same meaning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PhraseList {
    /// The list's name.
    pub name: String,
    /// What these phrases mean.
    pub meaning: Meaning,
    /// The phrases, in lower case.
    pub texts: Vec<String>,
    /// The standard that sets these texts. Without one, each has to occur in sessions of several projects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub standard: String,
    /// Why the list exists.
    pub why: String,
    /// Example outputs that contain one.
    pub examples: Vec<String>,
}

/// The compiled vocabulary, ready for lookups.
#[derive(Debug)]
pub struct Vocabulary {
    lists: Lists,
    names: Index<ToolKind>,
    /// The lists that can match a program. Lists for any program are in all entries and under `*`.
    programs: Index<Vec<usize>>,
    /// Programs that run another program, with the subcommands that do; empty means always.
    wrappers: Index<Vec<String>>,
    /// What tools, arguments, fields and states are by their names.
    kinds: Index<NameKinds>,
    failure: AhoCorasick,
    pending: AhoCorasick,
    unreachable: AhoCorasick,
}

/// Looks up names by hash. A call needs only a few lookups, and the standard hasher would cost more than they do.
#[derive(Debug)]
pub(super) struct Index<T>(Vec<(u64, T)>);

impl<T> Index<T> {
    fn new(entries: HashMap<String, T>) -> Self {
        let mut all: Vec<(u64, T)> =
            entries.into_iter().map(|(name, value)| (short_hash(name.as_bytes()), value)).collect();
        all.sort_unstable_by_key(|(hash, _)| *hash);
        Self(all)
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&T> {
        let hash = short_hash(name);
        self.0.binary_search_by_key(&hash, |(known, _)| *known).ok().map(|at| &self.0[at].1)
    }
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::new(&Lists::default())
    }
}

impl Effect {
    /// Returns whether it only reads what is on this machine.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(self, Self::Looks | Self::Searches | Self::Checks)
    }
}

impl Vocabulary {
    /// Returns the built-in vocabulary, compiled once.
    #[must_use]
    pub fn builtin() -> Arc<Self> {
        static BUILTIN: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| Arc::new(Vocabulary::default()));
        Arc::clone(&BUILTIN)
    }

    /// Returns the built-in vocabulary with a user's lists in front.
    #[must_use]
    pub fn new(own: &Lists) -> Self {
        let mut lists: Lists = toml::from_str(VOCABULARY).unwrap_or_default();
        lists.wrappers.extend(own.wrappers.iter().cloned());
        lists.tools.splice(0..0, own.tools.iter().cloned());
        lists.commands.splice(0..0, own.commands.iter().cloned());
        lists.phrases.extend(own.phrases.iter().cloned());
        lists.patterns.extend(own.patterns.iter().cloned());
        let without: BTreeSet<&str> = own.without.iter().map(String::as_str).collect();
        lists.tools.retain(|l| !without.contains(l.name.as_str()));
        lists.commands.retain(|l| !without.contains(l.name.as_str()));
        lists.phrases.retain(|l| !without.contains(l.name.as_str()));
        lists.patterns.retain(|l| !without.contains(l.name.as_str()));
        if without.contains("wrappers") {
            lists.wrappers.clear();
        }
        let mut names = HashMap::new();
        for list in &lists.tools {
            for name in &list.names {
                names.entry(name.clone()).or_insert(list.kind);
            }
        }
        let mut programs: HashMap<String, Vec<usize>> = HashMap::new();
        let any: Vec<usize> = indexes(&lists.commands, "*");
        let named: BTreeSet<&String> = lists.commands.iter().flat_map(|l| &l.programs).collect();
        for name in named {
            let mut rules = indexes(&lists.commands, name);
            rules.extend(&any);
            rules.sort_unstable();
            rules.dedup();
            programs.insert(name.clone(), rules);
        }
        let mut wrappers: HashMap<String, Vec<String>> = HashMap::new();
        for wrapper in &lists.wrappers {
            let (program, then) = wrapper.split_once(' ').unwrap_or((wrapper, ""));
            let subcommands = wrappers.entry(program.to_owned()).or_default();
            subcommands.extend((!then.is_empty()).then(|| then.to_owned()));
        }
        let [failure, pending, unreachable] =
            [Meaning::Failure, Meaning::Pending, Meaning::Unreachable].map(|m| automaton(&lists, m));
        let (names, programs, wrappers) = (Index::new(names), Index::new(programs), Index::new(wrappers));
        Self {
            names,
            programs,
            wrappers,
            kinds: Index::new(name_kinds(&lists.patterns)),
            failure,
            pending,
            unreachable,
            lists,
        }
    }

    /// Returns the lists it was built from.
    #[must_use]
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// Returns what a tool of this name does.
    #[must_use]
    pub fn kind(&self, tool: &str) -> ToolKind {
        // The name of an MCP tool includes its server: mcp__SERVER__TOOL.
        let own = tool.rsplit("__").next().unwrap_or(tool);
        let mut squeezed = [0_u8; 32];
        let mut length = 0;
        for byte in own.bytes().filter(u8::is_ascii_alphanumeric).take(squeezed.len()) {
            squeezed[length] = byte.to_ascii_lowercase();
            length += 1;
        }
        if let Some(kind) = self.names.get(&squeezed[..length]) {
            return *kind;
        }
        let has = |wanted: &String| name_words(own).any(|word| word.eq_ignore_ascii_case(wanted));
        let of = |list: &&ToolList| {
            list.words.iter().any(has)
                || !list.all_of.is_empty() && list.all_of.iter().all(|group| group.iter().any(has))
        };
        self.lists.tools.iter().find(of).map_or(ToolKind::Other, |list| list.kind)
    }

    /// Returns what a simple command does, given the program and its arguments, without wrappers.
    #[must_use]
    pub fn effect(&self, words: &[&str]) -> Effect {
        let Some(program) = words.first().map(|w| program_name(w)) else { return Effect::Prepares };
        let rules = self.programs.get(program.as_bytes()).or_else(|| self.programs.get(b"*"));
        let fits =
            rules.into_iter().flatten().map(|i| &self.lists.commands[*i]).find(|l| l.fits(&words[1..]));
        fits.map_or(Effect::Unknown, |list| list.effect)
    }

    /// Returns the command that a wrapper runs: `cargo test` for `sudo timeout 60 cargo test`.
    pub(crate) fn unwrapped<'w, 't>(&self, words: &'w [&'t str]) -> &'w [&'t str] {
        let mut words = words;
        while let [first, second, ..] = words
            && let Some(then) = self.wrappers.get(program_name(first).as_bytes())
            && (then.is_empty() || then.iter().any(|t| t == second))
        {
            let taken = if then.is_empty() { 1 } else { 2 };
            let option = |w: &&&str| w.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
            let skipped = words[taken..].iter().take_while(|w| option(w) || w.contains('=')).count();
            words = &words[taken + skipped..];
        }
        words
    }

    pub(super) fn name_kinds(&self) -> &Index<NameKinds> {
        &self.kinds
    }

    /// Returns the phrases that report a failure, for a search in lower-case text.
    pub(crate) fn failure_words(&self) -> &AhoCorasick {
        &self.failure
    }

    /// Returns whether a short output means that nothing was found.
    pub(crate) fn found_nothing(&self, text: &str) -> bool {
        let start: String = text.trim_start().chars().take(24).collect::<String>().to_lowercase();
        text.lines().count() <= 3
            && self.texts(Meaning::Nothing).any(|words| start.starts_with(words.as_str()))
    }

    /// Returns whether each line of a short output says that something isn't there.
    pub(crate) fn says_absent(&self, text: &str) -> bool {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        lines.all(|line| {
            let line = line.to_lowercase();
            self.texts(Meaning::Absent).any(|words| line.contains(words.as_str()))
        })
    }

    /// Returns whether lower-case text reports a state that passes by itself.
    pub(crate) fn says_pending(&self, lower: &str) -> bool {
        self.pending.is_match(lower)
    }

    /// Returns whether lower-case text reports that something couldn't be reached.
    pub(crate) fn says_out_of_reach(&self, lower: &str) -> bool {
        self.unreachable.is_match(lower)
    }

    fn texts(&self, meaning: Meaning) -> impl Iterator<Item = &String> {
        self.lists.phrases.iter().filter(move |l| l.meaning == meaning).flat_map(|l| &l.texts)
    }
}

/// Returns an automaton that finds the phrases of this meaning.
fn automaton(lists: &Lists, meaning: Meaning) -> AhoCorasick {
    let texts: Vec<&String> =
        lists.phrases.iter().filter(|l| l.meaning == meaning).flat_map(|l| &l.texts).collect();
    // Only this kind of automaton scans many bytes at once, and only for a single letter case.
    let built = AhoCorasick::builder().match_kind(aho_corasick::MatchKind::LeftmostFirst).build(texts);
    #[expect(clippy::expect_used, reason = "the automaton of a few dozen words is far below its limits")]
    built.expect("few words")
}

fn indexes(lists: &[CommandList], program: &str) -> Vec<usize> {
    (0..lists.len()).filter(|i| lists[*i].programs.iter().any(|p| p == program)).collect()
}

impl CommandList {
    fn fits(&self, words: &[&str]) -> bool {
        let has = |wanted: &[String]| {
            let options = wanted.iter().all(|x| x.starts_with('-'));
            let mut at = words.iter().enumerate().filter(|(_, w)| !options || w.starts_with('-'));
            !wanted.is_empty() && at.any(|(i, w)| wanted.iter().any(|x| x == w) && !discards(words, i))
        };
        let starts = || words.iter().any(|w| self.starts.iter().any(|x| w.starts_with(x.as_str())));
        if has(&self.without) {
            return false;
        }
        let first = || words.iter().find(|w| !w.starts_with(['-', '+']));
        if !self.first.is_empty() && !first().is_some_and(|w| self.first.iter().any(|x| x == w)) {
            return false;
        }
        self.with.is_empty() && self.starts.is_empty()
            || has(&self.with)
            || !self.starts.is_empty() && starts()
    }
}

/// Returns whether the option at `index` names the null device as a file: `curl -o /dev/null` writes nothing.
fn discards(words: &[&str], index: usize) -> bool {
    words[index].starts_with('-')
        && words.get(index + 1).is_some_and(|w| matches!(*w, "/dev/null" | "NUL" | "nul"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::shell::Script;

    #[test]
    fn every_list_has_a_reason_and_examples_that_it_decides() {
        let vocabulary = Vocabulary::builtin();
        let lists = vocabulary.lists();
        for list in &lists.tools {
            assert!(!list.why.is_empty() && !list.examples.is_empty(), "{}", list.name);
            for example in &list.examples {
                assert_eq!(vocabulary.kind(example), list.kind, "{}: {example}", list.name);
            }
        }
        for list in &lists.commands {
            assert!(!list.why.is_empty() && !list.examples.is_empty(), "{}", list.name);
            for example in &list.examples {
                let script = Script::parse(example);
                let words: Vec<&str> = script.commands[0].words.iter().map(AsRef::as_ref).collect();
                let words = vocabulary.unwrapped(&words);
                assert!(list.fits(&words[1..]), "{}: {example}", list.name);
                assert_eq!(vocabulary.effect(words), list.effect, "{}: {example}", list.name);
            }
        }
        for list in &lists.phrases {
            assert!(!list.why.is_empty() && !list.examples.is_empty(), "{}", list.name);
            for example in &list.examples {
                let said = match list.meaning {
                    Meaning::Failure => vocabulary.failure_words().is_match(&example.to_lowercase()),
                    Meaning::Nothing => vocabulary.found_nothing(example),
                    Meaning::Absent => vocabulary.says_absent(example),
                    Meaning::Pending => vocabulary.says_pending(&example.to_lowercase()),
                    Meaning::Unreachable => vocabulary.says_out_of_reach(&example.to_lowercase()),
                };
                assert!(said, "{}: {example}", list.name);
            }
        }
    }

    #[test]
    fn names_of_lists_are_unique_and_switch_them_off() {
        let names: Vec<String> = Vocabulary::builtin().lists().names().map(str::to_owned).collect();
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        let without = Lists { without: vec!["polls".to_owned()], ..Lists::default() };
        assert_ne!(Vocabulary::new(&without).kind("BashOutput"), ToolKind::Poll);
    }

    #[test]
    fn effects_are_told_from_the_command() {
        let of = |text: &str| {
            let script = Script::parse(text);
            let words: Vec<&str> = script.commands[0].words.iter().map(AsRef::as_ref).collect();
            let vocabulary = Vocabulary::builtin();
            vocabulary.effect(vocabulary.unwrapped(&words))
        };
        for text in ["sudo npm install", "env A=1 timeout 60 git commit -m x", "uv run ruff check --fix"] {
            assert_eq!(of(text), Effect::Changes, "{text}");
        }
        for text in
            ["cargo test add", "uv run pytest -k update", "cargo fmt --check", "git status", "git reset a"]
        {
            assert!(of(text) < Effect::Changes, "{text}");
        }
        assert_eq!(of("git stash list"), Effect::Looks);
        assert_eq!(of("./fix.sh"), Effect::Unknown);
        assert_eq!(of("kubectl apply -f x"), Effect::Changes);
        assert_eq!(of("curl -s -o /dev/null -w '%{http_code}' localhost"), Effect::Remote);
        assert!(of("curl -o page.html localhost") != Effect::Remote);
        assert_eq!(of("npm view left-pad version"), Effect::Remote);
    }
}
