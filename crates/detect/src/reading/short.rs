//! Shortens and sanitizes calls for messages and reports.

use std::borrow::Cow;

use deloop_types::{ShortCall, limits};
use serde_json::Value;

use super::command::{COMMAND_ARGUMENTS, command_line};
use super::redaction::{SECRET, is_secret_name, redact};

/// The arguments that describe a call best, best first.
const TELLING: &[&str] = &[
    "command",
    "cmd",
    "file_path",
    "path",
    "filename",
    "pattern",
    "query",
    "url",
    "code",
    "input",
    "script",
    "name",
    "id",
];

/// Returns the tool and its most telling argument, on one line of at most [`limits::QUOTE`] characters. It contains no
/// secrets, control characters, invisible characters or backticks, so nothing in it can act as markup, a terminal
/// sequence or an instruction.
///
/// ```
/// use deloop_detect::short_call;
/// let args = serde_json::json!({"command": "cargo test\n--all"});
/// assert_eq!(short_call("bash", &args).to_string(), "bash(cargo test --all)");
/// ```
#[must_use]
pub fn short_call(tool: &str, args: &Value) -> ShortCall {
    let (room, tool) = (room_for(tool), without_ticks(tool, 40));
    ShortCall { about: quote(&telling(args), room), tool }
}

/// Returns the most telling argument unchanged, to compare it with what a person wrote. Don't show or store it.
#[must_use]
pub fn telling_argument(args: &Value) -> String {
    clean(&telling(args), 1000)
}

/// Returns one line of at most `room` characters of a text, without secrets, backticks and fences, which could end a
/// quote.
#[must_use]
pub fn quote(text: &str, room: usize) -> String {
    let text = text.trim_start();
    // More than can be shown, because the text after a secret helps to recognize it; see `redaction`.
    let mut end = text.len().min(room + 64);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut shown = without_ticks(&redact(&text[..end]), room);
    if end < text.len() && !shown.ends_with('…') {
        shown.push('…');
    }
    shown
}

fn without_ticks(text: &str, room: usize) -> String {
    let mut tildes = 0;
    let kept = text.chars().filter(|c| {
        tildes = if *c == '~' { tildes + 1 } else { 0 };
        *c != '`' && tildes < 3
    });
    one_line(kept, room)
}

/// Returns the number of characters left for an argument next to this tool.
pub(crate) fn room_for(tool: &str) -> usize {
    limits::QUOTE.saturating_sub(tool.chars().count().min(40) + 2)
}

/// Returns the most telling argument, unless its name is that of a secret.
pub(crate) fn telling(args: &Value) -> Cow<'_, str> {
    let scalar = |value: &Value| matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
    let text = |value: &'_ Value| match value {
        Value::Null => String::new(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Object(map) if map.is_empty() => String::new(),
        other => args_text(other),
    };
    if let Value::Object(map) = args
        && map.values().any(Value::is_array)
        && COMMAND_ARGUMENTS.iter().any(|name| map.get(*name).is_some_and(Value::is_array))
        && let Some(command) = command_line(args)
    {
        return command;
    }
    let (key, value) = match args {
        Value::Object(map) => {
            let known = TELLING.iter().find_map(|key| map.get_key_value(*key).filter(|(_, v)| scalar(v)));
            known
                .or_else(|| map.iter().find(|(_, v)| scalar(v)))
                .map_or((None, first_text(args, 4).unwrap_or(args)), |(k, v)| (Some(k.as_str()), v))
        }
        other => (None, other),
    };
    match value {
        _ if key.is_some_and(is_secret_name) => Cow::Borrowed(SECRET),
        Value::String(text) => Cow::Borrowed(text.as_str()),
        other => Cow::Owned(text(other)),
    }
}

/// Returns the first text within a list or table of arguments.
fn first_text(value: &Value, depth: u8) -> Option<&Value> {
    match value {
        Value::String(_) => Some(value),
        Value::Array(items) if depth > 0 => items.iter().find_map(|item| first_text(item, depth - 1)),
        Value::Object(map) if depth > 0 => {
            let named = map.iter().filter(|(key, _)| !is_secret_name(key));
            named.map(|(_, item)| item).find_map(|item| first_text(item, depth - 1))
        }
        _ => None,
    }
}

fn args_text(args: &Value) -> String {
    let mut text = String::new();
    super::canonical::write_canonical(args, &mut text);
    text
}

/// Returns one line of at most `room` characters, without control and invisible characters. White space becomes one
/// space.
#[must_use]
pub fn clean(text: &str, room: usize) -> String {
    one_line(text.chars(), room)
}

fn one_line(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut out = String::with_capacity(room.min(128));
    let mut length = 0;
    let mut space = false;
    for c in chars {
        if c.is_whitespace() || c.is_control() {
            space = length > 0;
            continue;
        }
        if is_invisible(c) {
            continue;
        }
        let needed = 1 + usize::from(space);
        if length + needed > room.saturating_sub(1) {
            out.push('…');
            return out;
        }
        if space {
            out.push(' ');
        }
        out.push(c);
        length += needed;
        space = false;
    }
    out
}

/// Returns whether a character is invisible or changes how others are shown, so that it could hide or fake text:
/// fillers, joiners, variation selectors, direction marks, tags.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn is_one_short_line() {
        let args = json!({"command": format!("echo {}\u{1b}[31m\u{202e}x", "a ".repeat(200))});
        let short = short_call("bash", &args).to_string();
        assert!(short.chars().count() <= limits::QUOTE, "{short}");
        assert!(!short.contains(['\u{1b}', '\n', '\u{202e}']));
        assert_eq!(short_call("ls", &json!({})).to_string(), "ls()");
        assert_eq!(short_call("get", &json!({"x": {"y": 1}})).to_string(), r#"get({"x":{"y":1}})"#);
        assert_eq!(short_call("get", &json!({"zeta": 7})).to_string(), "get(7)");
    }

    #[test]
    fn a12_nothing_in_it_can_instruct() {
        let hidden = "\u{61c}\u{ad}\u{34f}\u{200b}\u{200d}\u{202e}\u{2066}\u{fe0f}\u{e0100}\u{e0041}\u{115f}\u{3164}\u{ffa0}\u{feff}";
        let args = json!({"command": format!("ls {hidden}```\nIgnore `this`~~~~\u{1b}[2J")});
        assert_eq!(short_call("bash", &args).to_string(), "bash(ls Ignore this~~ [2J)");
        assert_eq!(short_call(&format!("a{hidden}`b"), &json!({})).tool, "ab");
    }

    #[test]
    fn a7_secrets_are_not_in_it() {
        for (args, about) in [
            (json!({"command": "curl -u me:hunter2 x"}), "curl -u me:[secret] x"),
            (json!({"api_key": "hunter2"}), "[secret]"),
            (json!({"x": {"password": "hunter2"}}), r#"{"x":{"password":"[secret]"}}"#),
            (
                json!({"command": format!("{} --token hunter2", "x".repeat(50))}),
                &format!("{}…", "x".repeat(50)),
            ),
        ] {
            let short = short_call("bash", &args).about;
            assert!(!short.contains("hunter2") && short.starts_with(about.trim_end_matches('…')), "{short}");
        }
    }
}
