//! What a configuration changes, key by key.

use std::io::Write;

use deloop_detect::{clean, redact};
use deloop_policy::KeptSetting;
use serde_json::Value;

use crate::config::Preview;
use crate::exit::Failure;

/// Maximum number of keys that are listed.
const MOST: usize = 200;
/// Maximum length of a value, in characters.
const LONGEST: usize = 60;
/// Maximum length of a message to the agent, in characters.
const LONGEST_MESSAGE: usize = 400;
/// The keys that are listed first: what decides whether and when deloop acts at all, and what the agent is sent.
const FIRST: [&str; 11] = [
    "mode",
    "attended",
    "fail",
    "profile",
    "order",
    "ceilings",
    "rules",
    "stop_ends",
    "agent",
    "memory",
    "events",
];
/// Keys that change nothing.
const SKIPPED: [&str; 3] = ["$schema", "name", "about"];

/// Prints what a configuration changes and which of its settings don't apply.
pub(super) fn print(preview: &Preview, out: &mut dyn Write) -> Result<(), Failure> {
    let mut changes = Vec::new();
    compare(&mut Vec::new(), &preview.before, &preview.after, &mut changes);
    changes.sort_by_key(|change| (rank(&change.key), change.key.clone()));
    if changes.is_empty() {
        writeln!(out, "It changes nothing in your settings.")?;
    } else {
        writeln!(out, "It changes these settings:")?;
    }
    for change in changes.iter().take(MOST) {
        writeln!(out, "  {}: {}", clean(&change.key, 200), change.what)?;
    }
    if changes.len() > MOST {
        writeln!(out, "  … and {} more; the file has them all", changes.len() - MOST)?;
    }
    if !preview.kept.is_empty() {
        writeln!(out, "These don't apply, because yours stay:")?;
    }
    for KeptSetting { key, own, project } in preview.kept.iter().take(MOST) {
        let own = if own.is_null() { String::new() } else { format!(" (yours: {})", shown(own, LONGEST)) };
        writeln!(out, "  {}: {}{own}", clean(key, 200), shown(project, LONGEST))?;
    }
    Ok(())
}

struct SettingChange {
    key: String,
    what: String,
}

/// Lists the keys whose values differ.
fn compare(path: &mut Vec<String>, before: &Value, after: &Value, changes: &mut Vec<SettingChange>) {
    if before == after || path.len() == 1 && SKIPPED.contains(&path[0].as_str()) {
        return;
    }
    let key = || path.join(".").replace(".[", "[");
    match (before, after) {
        _ if path.len() == 1 && path[0] == "order" => {
            changes.push(SettingChange { key: key(), what: detectors(before, after) });
        }
        (Value::Object(_) | Value::Null, Value::Object(_)) | (Value::Object(_), Value::Null) => {
            let names = |value: &Value| -> Vec<String> {
                value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
            };
            let mut all = names(before);
            all.extend(names(after));
            all.sort();
            all.dedup();
            for name in all {
                let get = |value: &Value| value.get(&name).cloned().unwrap_or_default();
                let (before, after) = (get(before), get(after));
                path.push(name);
                compare(path, &before, &after, changes);
                path.pop();
            }
        }
        (Value::Array(old), Value::Array(new)) if old.iter().chain(new).any(Value::is_object) => {
            for n in 0..old.len().max(new.len()) {
                let get = |items: &[Value]| items.get(n).cloned().unwrap_or_default();
                path.push(format!("[{n}]"));
                compare(path, &get(old), &get(new), changes);
                path.pop();
            }
        }
        (Value::Null, Value::Array(new)) if new.iter().any(Value::is_object) => {
            compare(path, &Value::Array(Vec::new()), after, changes);
        }
        _ => {
            let longest = if is_message(path) { LONGEST_MESSAGE } else { LONGEST };
            let what = format!("{} → {}", shown(before, LONGEST), shown(after, longest));
            changes.push(SettingChange { key: key(), what });
        }
    }
}

/// Describes a change of the list of detectors.
fn detectors(before: &Value, after: &Value) -> String {
    let names = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(|name| clean(name.as_str().unwrap_or("?"), 40)).collect()
    };
    let (before, after) = (names(before), names(after));
    let missing = |from: &[String], other: &[String]| -> Vec<String> {
        from.iter().filter(|name| !other.contains(name)).cloned().collect()
    };
    let (removed, added) = (missing(&before, &after), missing(&after, &before));
    let mut parts = Vec::new();
    if !removed.is_empty() {
        parts.push(format!("removes {}", removed.join(", ")));
    }
    if !added.is_empty() {
        parts.push(format!("adds {}", added.join(", ")));
    }
    if parts.is_empty() { "in another order".to_owned() } else { parts.join("; ") }
}

/// Returns whether the key is a message to the agent.
fn is_message(path: &[String]) -> bool {
    let last = path.last().map(String::as_str);
    matches!(last, Some("message" | "reminder" | "loopMsg")) || path.iter().any(|name| name == "variants")
}

/// Returns the place of a key in the list.
fn rank(key: &str) -> usize {
    let top = key.split('.').next().unwrap_or(key);
    let messages = ["message", "reminder", "loopMsg"].iter().any(|name| key.ends_with(name))
        || key.contains(".variants.");
    match FIRST.iter().position(|name| *name == top) {
        Some(place) => place,
        None if messages => FIRST.len(),
        None if top == "ladders" => FIRST.len() + 1,
        None if top == "detectors" => FIRST.len() + 2,
        None => FIRST.len() + 3,
    }
}

/// Returns a value on one line, short, with secrets masked and nothing invisible.
fn shown(value: &Value, longest: usize) -> String {
    match value {
        Value::Null => "not set".to_owned(),
        Value::String(text) => format!("\"{}\"", clean(&redact(text), longest)),
        other => clean(&redact(&other.to_string()), longest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(before: Value, after: Value, kept: Vec<KeptSetting>) -> String {
        let mut out = Vec::new();
        print(&Preview { before, after, kept }, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_decides_most_comes_first_and_nothing_is_printed_raw() {
        let before = json!({"order": ["a", "b"], "ceilings": {"usd": 300.0}, "detectors": {"a": {"at": 3}}});
        let after = json!({
            "order": ["b", "c"], "ceilings": {"usd": 0}, "detectors": {"a": {"at": 9}}, "mode": "shadow",
            "ladders": {"x": {"rungs": [{"at": 1, "message": "Say \u{1b}[2J\u{202e} password=hunter2secret"}]}},
            "tools": {"evil\u{1b}\nkey": {"max": 1}},
        });
        let kept = KeptSetting { key: "fail".to_owned(), own: json!("open"), project: json!("closed") };
        let text = printed(before, after, vec![kept]);
        let keys: Vec<&str> = text.lines().filter_map(|line| line.trim().split(": ").next()).collect();
        assert_eq!(keys[1..4], ["mode", "order", "ceilings.usd"], "{text}");
        assert!(
            text.contains("order: removes a; adds c") && text.contains("ceilings.usd: 300.0 → 0"),
            "{text}"
        );
        assert!(
            text.contains("detectors.a.at: 3 → 9") && text.contains("mode: not set → \"shadow\""),
            "{text}"
        );
        assert!(text.contains("  fail: \"closed\" (yours: \"open\")"), "{text}");
        assert!(text.contains("ladders.x.rungs[0].message: not set → \"Say"), "{text}");
        assert!(!text.contains("hunter2secret"), "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text:?}");
        assert_eq!(
            printed(json!({"about": "x"}), json!({}), Vec::new()),
            "It changes nothing in your settings.\n"
        );
    }
}
