use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use aho_corasick::AhoCorasick;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::shell::program_name;
use super::tools::{ToolKind, name_words};
use crate::short_hash;

/// The vocabulary that comes with deloop, as its TOML text.
pub const VOCABULARY: &str = include_str!("vocabulary.toml");

/// The lists of a vocabulary, as they are written: `[vocabulary]` in a configuration adds to those of deloop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Lists {
    /// The names of lists that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Programs that run another one: `sudo`, or with their subcommand, `uv run`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrappers: Vec<String>,
    /// What tools do, by their names.
    pub tools: Vec<ToolList>,
    /// What shell commands do.
    pub commands: Vec<CommandList>,
    /// What outputs say.
    pub phrases: Vec<PhraseList>,
}

impl Lists {
    /// The names of all lists.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let tools = self.tools.iter().map(|l| l.name.as_str());
        let commands = self.commands.iter().map(|l| l.name.as_str());
        tools.chain(commands).chain(self.phrases.iter().map(|l| l.name.as_str()))
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
    /// Whole names, in lower case and without `_`, `-` and spaces.
    pub names: Vec<String>,
    /// Words of a name, any of which makes a tool one of this list.
    pub words: Vec<String>,
    /// Groups of words: a name that has one of each is of this list.
    pub all_of: Vec<Vec<String>>,
    /// Why the list is there.
    pub why: String,
    /// Names that belong to it.
    pub examples: Vec<String>,
}

/// What a command does, as far as later outcomes are concerned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Prepares the shell for what follows.
    Prepares,
    /// Shows something and changes nothing.
    #[default]
    Looks,
    /// Looks for something.
    Searches,
    /// Nobody knows.
    Unknown,
    /// Waits for something that runs elsewhere, or shows its state.
    Waits,
    /// Changes something.
    Changes,
    /// Goes to another state of the work; going back is a change as well.
    Switches,
}

/// Commands with one effect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CommandList {
    /// The list's name.
    pub name: String,
    /// What these commands do.
    pub effect: Effect,
    /// The programs; `*` is any.
    pub programs: Vec<String>,
    /// Subcommands: the first argument that is no option must be one of them.
    pub first: Vec<String>,
    /// Arguments one of which must be there.
    pub with: Vec<String>,
    /// Beginnings of arguments one of which must be there.
    pub starts: Vec<String>,
    /// Arguments none of which may be there.
    pub without: Vec<String>,
    /// Why the list is there.
    pub why: String,
    /// Commands that belong to it.
    pub examples: Vec<String>,
}

/// What a phrase in an output means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Meaning {
    /// A line with it tells of a failure.
    #[default]
    Failure,
    /// A short output that begins with it says that nothing was found.
    Nothing,
}

/// Phrases of one meaning.
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
    /// Why the list is there.
    pub why: String,
    /// Outputs that have one.
    pub examples: Vec<String>,
}

/// What is known about tools, commands and outputs, ready to be looked up.
#[derive(Debug)]
pub struct Vocabulary {
    lists: Lists,
    names: Index<ToolKind>,
    /// Which lists may fit a program; those for any program are in all of them, and under `*`.
    programs: Index<Vec<usize>>,
    /// Programs that run another one, with the subcommands that do; none is any.
    wrappers: Index<Vec<String>>,
    failure: AhoCorasick,
}

/// Looks names up by their hashes: a call asks for a handful of them, and std's hasher costs more than the look-up.
#[derive(Debug)]
struct Index<T>(Vec<(u64, T)>);

impl<T> Index<T> {
    fn new(entries: HashMap<String, T>) -> Self {
        let mut all: Vec<(u64, T)> =
            entries.into_iter().map(|(name, value)| (short_hash(name.as_bytes()), value)).collect();
        all.sort_unstable_by_key(|(hash, _)| *hash);
        Self(all)
    }

    fn get(&self, name: &[u8]) -> Option<&T> {
        let hash = short_hash(name);
        self.0.binary_search_by_key(&hash, |(known, _)| *known).ok().map(|at| &self.0[at].1)
    }
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::new(&Lists::default())
    }
}

impl Vocabulary {
    /// The vocabulary that comes with deloop; made once.
    #[must_use]
    pub fn builtin() -> Arc<Self> {
        static BUILTIN: LazyLock<Arc<Vocabulary>> = LazyLock::new(|| Arc::new(Vocabulary::default()));
        Arc::clone(&BUILTIN)
    }

    /// That vocabulary with a user's lists before it.
    #[must_use]
    pub fn new(own: &Lists) -> Self {
        let mut lists: Lists = toml::from_str(VOCABULARY).unwrap_or_default();
        lists.wrappers.extend(own.wrappers.iter().cloned());
        lists.tools.splice(0..0, own.tools.iter().cloned());
        lists.commands.splice(0..0, own.commands.iter().cloned());
        lists.phrases.extend(own.phrases.iter().cloned());
        let without: BTreeSet<&str> = own.without.iter().map(String::as_str).collect();
        lists.tools.retain(|l| !without.contains(l.name.as_str()));
        lists.commands.retain(|l| !without.contains(l.name.as_str()));
        lists.phrases.retain(|l| !without.contains(l.name.as_str()));
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
        let failures: Vec<&String> =
            lists.phrases.iter().filter(|l| l.meaning == Meaning::Failure).flat_map(|l| &l.texts).collect();
        // Of this kind, because only then it looks at many bytes at once; and that only works on one letter case.
        let failure =
            AhoCorasick::builder().match_kind(aho_corasick::MatchKind::LeftmostFirst).build(failures);
        #[expect(clippy::expect_used, reason = "the automaton of a few dozen words is far below its limits")]
        let failure = failure.expect("few words");
        let (names, programs, wrappers) = (Index::new(names), Index::new(programs), Index::new(wrappers));
        Self { names, programs, wrappers, failure, lists }
    }

    /// The lists it was made of.
    #[must_use]
    pub fn lists(&self) -> &Lists {
        &self.lists
    }

    /// What a tool of this name does.
    #[must_use]
    pub fn kind(&self, tool: &str) -> ToolKind {
        // An MCP tool is called after its server: mcp__SERVER__TOOL.
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

    /// What a simple command does: the program and its arguments, without wrappers.
    #[must_use]
    pub fn effect(&self, words: &[&str]) -> Effect {
        let Some(program) = words.first().map(|w| program_name(w)) else { return Effect::Prepares };
        let rules = self.programs.get(program.as_bytes()).or_else(|| self.programs.get(b"*"));
        let fits =
            rules.into_iter().flatten().map(|i| &self.lists.commands[*i]).find(|l| l.fits(&words[1..]));
        fits.map_or(Effect::Unknown, |list| list.effect)
    }

    /// The command that a wrapper runs: `cargo test` of `sudo timeout 60 cargo test`.
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

    /// The words that tell of a failure, to be looked for in lower-case text.
    pub(crate) fn failure_words(&self) -> &AhoCorasick {
        &self.failure
    }

    /// Whether a short output says that nothing was found.
    pub(crate) fn found_nothing(&self, text: &str) -> bool {
        let start: String = text.trim_start().chars().take(24).collect::<String>().to_lowercase();
        text.lines().count() <= 3
            && self.texts(Meaning::Nothing).any(|words| start.starts_with(words.as_str()))
    }

    fn texts(&self, meaning: Meaning) -> impl Iterator<Item = &String> {
        self.lists.phrases.iter().filter(move |l| l.meaning == meaning).flat_map(|l| &l.texts)
    }
}

fn indexes(lists: &[CommandList], program: &str) -> Vec<usize> {
    (0..lists.len()).filter(|i| lists[*i].programs.iter().any(|p| p == program)).collect()
}

impl CommandList {
    fn fits(&self, words: &[&str]) -> bool {
        let has =
            |wanted: &[String]| !wanted.is_empty() && words.iter().any(|w| wanted.iter().any(|x| x == w));
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
    }
}
