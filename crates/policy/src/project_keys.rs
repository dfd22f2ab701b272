//! Which keys a project's configuration may set.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::CONFIG_KEYS;

/// The keys, one per line: its path, its rule, and what its value is, if that matters.
const KEYS: &str = include_str!("project_keys.txt");
/// Stands for the items of a list in a path.
const ITEM: &str = "[]";
/// Maximum length of a text in a project's configuration, in characters.
const LONGEST_TEXT: usize = 1000;
/// The roles that a project's messages can have. The others speak with more authority than a project has.
const ROLES: [&str; 2] = ["user", "tool"];

/// What decides between a project's value and the user's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProjectRule {
    /// The project's applies.
    Any,
    /// It applies unless the user set the same entry.
    Unset,
    /// It applies unless the user's is stricter.
    Stricter,
    /// It applies unless the user's is lower.
    Lower,
    /// It applies, and what the user lists stays.
    Adds,
    /// It applies unless the user set the same entry, or a limit in dollars.
    Unpriced,
}

/// What a value is, where that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Plain,
    Message,
    Role,
}

/// Which file of a project is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectFile {
    /// Its `deloop.toml`.
    Configuration,
    /// The profile file that its `deloop.toml` names.
    Profile,
}

struct AllowedKey {
    pattern: &'static str,
    /// The names in the pattern.
    parts: Vec<&'static str>,
    rule: ProjectRule,
    kind: ValueKind,
}

/// The list, by the first name of each key. A hook looks up every key of a project's files in it.
static ALLOWED: LazyLock<BTreeMap<&'static str, Vec<AllowedKey>>> = LazyLock::new(|| {
    let mut allowed: BTreeMap<&str, Vec<AllowedKey>> = BTreeMap::new();
    for key in KEYS.lines().filter_map(read_line) {
        allowed.entry(key.parts[0]).or_default().push(key);
    }
    allowed
});

fn read_line(line: &'static str) -> Option<AllowedKey> {
    let mut words = line.split_whitespace();
    let pattern = words.next().filter(|word| !word.starts_with('#'))?;
    let rule = match words.next()? {
        "any" => ProjectRule::Any,
        "unset" => ProjectRule::Unset,
        "stricter" => ProjectRule::Stricter,
        "lower" => ProjectRule::Lower,
        "adds" => ProjectRule::Adds,
        "unpriced" => ProjectRule::Unpriced,
        _ => return None,
    };
    let kind = match words.next() {
        Some("message") => ValueKind::Message,
        Some("role") => ValueKind::Role,
        _ => ValueKind::Plain,
    };
    let split = |part: &'static str| match part.strip_suffix(ITEM) {
        Some(name) => [Some(name), Some(ITEM)],
        None => [Some(part), None],
    };
    let parts = pattern.split('.').flat_map(split).flatten().collect();
    Some(AllowedKey { pattern, parts, rule, kind })
}

fn allowed_keys() -> impl Iterator<Item = &'static AllowedKey> {
    ALLOWED.values().flatten()
}

/// Returns the keys that begin with this path, and whether the path is all of the key.
fn beginning_with(path: &[&str]) -> impl Iterator<Item = (&'static AllowedKey, bool)> {
    let keys = path.first().and_then(|top| ALLOWED.get(*top)).into_iter().flatten();
    keys.filter_map(move |key| {
        let same = |(part, name): (&&str, &&str)| part == name || (*part == "*" && *name != ITEM);
        let begins = key.parts.len() >= path.len() && key.parts.iter().zip(path).all(same);
        begins.then_some((key, key.parts.len() == path.len()))
    })
}

/// What a path is to a project.
enum KeyPlace {
    /// A key that it may set.
    Key(ValueKind),
    /// A table with such keys.
    Table,
    /// A list of tables with such keys.
    List,
    /// Nothing that it may set.
    Refused,
}

fn place(path: &[&str]) -> KeyPlace {
    let mut place = KeyPlace::Refused;
    for (key, is_all) in beginning_with(path) {
        match key.parts.get(path.len()) {
            _ if is_all => return KeyPlace::Key(key.kind),
            Some(&ITEM) => place = KeyPlace::List,
            _ => place = KeyPlace::Table,
        }
    }
    place
}

/// Returns the rule for an entry: a key, or a name in a table.
pub(crate) fn entry_rule(path: &[&str]) -> Option<ProjectRule> {
    let exact = beginning_with(path).find(|(_, is_all)| *is_all);
    exact.or_else(|| beginning_with(path).next()).map(|(key, _)| key.rule)
}

/// Returns whether a key of the first level holds entries.
pub(crate) fn is_table(key: &str) -> bool {
    matches!(place(&[key]), KeyPlace::Table)
}

/// Returns whether a project's configuration may set this key once it is trusted. `path` is the key as the schema of the
/// configuration names it: `*` stands for any name in a table, and `name[]` for the items of a list.
///
/// ```
/// use deloop_policy::project_may_set;
/// assert!(project_may_set("ladders.*.rungs[].message"));
/// assert!(!project_may_set("server.url"));
/// ```
#[must_use]
pub fn project_may_set(path: &str) -> bool {
    allowed_keys().any(|key| key.pattern == path)
}

/// Returns the keys that a project may set, as [`project_may_set`] takes them.
pub fn project_keys() -> impl Iterator<Item = &'static str> {
    allowed_keys().map(|key| key.pattern)
}

/// What a project's file has that it can't have.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Refusals {
    /// Keys that it may not set.
    pub(crate) keys: Vec<String>,
    /// What is wrong with a value.
    pub(crate) value: Option<String>,
}

/// Lists what this file of a project has that it can't have.
pub(crate) fn refusals(document: &Value, file: ProjectFile) -> Refusals {
    let mut refusals = Refusals::default();
    for (key, value) in document.as_object().into_iter().flatten() {
        let elsewhere =
            file == ProjectFile::Profile && key != "$schema" && CONFIG_KEYS.contains(&key.as_str());
        if elsewhere {
            refusals.keys.push(key.clone());
        } else {
            look(value, &mut vec![key], &mut refusals);
        }
    }
    refusals
}

fn look<'a>(value: &'a Value, path: &mut Vec<&'a str>, refusals: &mut Refusals) {
    match (place(path), value) {
        (KeyPlace::Refused, _) => refusals.keys.push(shown(path)),
        // It has no value, whatever the key.
        (_, Value::Null) => {}
        (KeyPlace::Key(kind), _) => {
            if let Some(wrong) = wrong_text(value, kind) {
                refusals.value.get_or_insert_with(|| format!("`{}` {wrong}", shown(path)));
            }
        }
        (KeyPlace::Table, Value::Object(map)) => {
            for (name, inner) in map {
                path.push(name);
                look(inner, path, refusals);
                path.pop();
            }
        }
        (KeyPlace::List, Value::Array(items)) => {
            for inner in items {
                path.push(ITEM);
                look(inner, path, refusals);
                path.pop();
            }
        }
        // An empty list read as a table would be one in which nothing is set.
        (KeyPlace::Table | KeyPlace::List, _) => {
            let what = if matches!(place(path), KeyPlace::List) { "a list of tables" } else { "a table" };
            refusals.value.get_or_insert_with(|| format!("`{}` must be {what}", shown(path)));
        }
    }
}

/// Returns what is wrong with the texts in a value.
fn wrong_text(value: &Value, kind: ValueKind) -> Option<String> {
    let text = match value {
        Value::String(text) => text,
        Value::Array(items) => return items.iter().find_map(|item| wrong_text(item, kind)),
        _ => return None,
    };
    if text.chars().nth(LONGEST_TEXT).is_some() {
        return Some(format!("is longer than {LONGEST_TEXT} characters; shorten it"));
    }
    if !text.chars().all(is_visible) {
        return Some("has control or invisible characters; remove them".to_owned());
    }
    if kind == ValueKind::Role && !ROLES.contains(&text.as_str()) {
        return Some(format!("can only be `{}` in a project's configuration", ROLES.join("` or `")));
    }
    None
}

fn is_visible(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control() || matches!(c, '\n' | '\t');
    }
    c.is_whitespace() || !deloop_detect::clean(c.encode_utf8(&mut [0; 4]), 4).is_empty()
}

/// Applies `mark` to the messages in a value that a project may set.
pub(crate) fn mark_messages(value: &mut Value, path: &mut Vec<String>, mark: &dyn Fn(&mut Value)) {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    if matches!(place(&names), KeyPlace::Key(ValueKind::Message)) {
        return mark(value);
    }
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                path.push(name.clone());
                mark_messages(inner, path, mark);
                path.pop();
            }
        }
        Value::Array(items) => {
            for inner in items {
                path.push(ITEM.to_owned());
                mark_messages(inner, path, mark);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Returns a path as it is written, such as `ladders.stuck.rungs[].at`, without anything that affects a terminal.
fn shown(path: &[&str]) -> String {
    let mut text = String::new();
    for name in path {
        if *name != ITEM && !text.is_empty() {
            text.push('.');
        }
        text.push_str(&deloop_detect::clean(name, 64));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_line_of_the_list_is_read() {
        let lines = KEYS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
        assert_eq!(allowed_keys().count(), lines);
        let mut known: Vec<&str> = project_keys().collect();
        known.sort_unstable();
        known.dedup();
        assert_eq!(known.len(), lines, "a key is listed twice");
    }

    #[test]
    fn a_key_that_isnt_listed_is_refused_wherever_it_stands() {
        let document = json!({
            "mode": "enforce", "server": null, "Server": {}, "run": [], "ladders": {"a": {"rungs": [{"run": "x"}]}},
            "detectors": {"talk-only": {"at": 3, "endpoint": 1}, "new": {"at": 1}}, "agent": {"recursionLimit": {"a": 1}},
        });
        let mut keys = refusals(&document, ProjectFile::Configuration).keys;
        keys.sort();
        let expected = [
            "Server",
            "detectors.new",
            "detectors.talk-only.endpoint",
            "ladders.a.rungs[].run",
            "run",
            "server",
        ];
        assert_eq!(keys, expected);
        let keys = refusals(&json!({"mode": "shadow", "order": []}), ProjectFile::Profile).keys;
        assert_eq!(keys, ["mode"]);
    }

    #[test]
    fn texts_are_short_and_plain() {
        let why = |document: Value| refusals(&document, ProjectFile::Configuration).value.unwrap_or_default();
        assert!(why(json!({"agent": {"loopMsg": "x".repeat(1001)}})).contains("`agent.loopMsg` is longer"));
        assert!(why(json!({"order": ["\u{1b}[2J"]})).contains("control or invisible characters"));
        assert!(why(json!({"agent": {"loopMsg": "[\u{200b}deloop]"}})).contains("invisible"));
        let rung = json!({"ladders": {"a": {"rungs": [{"role": "system"}]}}});
        assert!(why(rung).contains("`ladders.a.rungs[].role` can only be `user` or `tool`"));
        for value in [json!(5), json!([]), json!([{"usd": 1}]), json!("x")] {
            assert_eq!(why(json!({"ceilings": value})), "`ceilings` must be a table");
            assert_eq!(why(json!({"ladders": {"stuck": value}})), "`ladders.stuck` must be a table");
        }
        assert_eq!(
            why(json!({"ladders": {"a": {"rungs": {}}}})),
            "`ladders.a.rungs` must be a list of tables"
        );
        assert_eq!(why(json!({"agent": {"loopMsg": "One.\nTwo."}})), "");
    }
}
