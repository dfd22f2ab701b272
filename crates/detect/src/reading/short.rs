//! A call in a few safe words, for messages and reports.

use std::borrow::Cow;

use deloop_types::ShortCall;
use serde_json::Value;

/// The longest quote of an argument, in characters.
pub(crate) const MOST: usize = 60;

/// The arguments that say most about a call, most telling first.
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

/// The tool and its most telling argument, on one line, without control characters and cut to 80 characters:
/// nothing in it can act as markup, a terminal sequence or an instruction of its own.
///
/// ```
/// use deloop_detect::short_call;
/// let args = serde_json::json!({"command": "cargo test\n--all"});
/// assert_eq!(short_call("bash", &args).to_string(), "bash(cargo test --all)");
/// ```
#[must_use]
pub fn short_call(tool: &str, args: &Value) -> ShortCall {
    ShortCall { tool: clean(tool, 40), about: quote(&telling(args)) }
}

/// An argument as a message may show it.
pub(crate) fn quote(text: &str) -> String {
    clean(text, MOST)
}

/// The argument that says most about a call.
pub(crate) fn telling(args: &Value) -> Cow<'_, str> {
    let scalar = |value: &&Value| matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
    let value = match args {
        Value::Object(map) => {
            let known = TELLING.iter().find_map(|key| map.get(*key).filter(scalar));
            known.or_else(|| map.values().find(scalar)).unwrap_or(args)
        }
        other => other,
    };
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        Value::Object(map) if map.is_empty() => Cow::Borrowed(""),
        other => Cow::Owned(args_text(other)),
    }
}

fn args_text(args: &Value) -> String {
    let mut text = String::new();
    super::canonical::write_canonical(args, &mut text);
    text
}

/// One line of at most `room` characters without control and direction characters; white space becomes one space.
#[must_use]
pub fn clean(text: &str, room: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    let mut space = false;
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() {
            space = length > 0;
            continue;
        }
        // Characters that reorder, hide or join text could show something else than what is there.
        if matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
        {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn is_one_short_line() {
        let args = json!({"command": format!("echo {}\u{1b}[31m\u{202e}x", "a ".repeat(200))});
        let short = short_call("bash", &args).to_string();
        assert!(short.chars().count() <= MOST + 48, "{short}");
        assert!(!short.contains(['\u{1b}', '\n', '\u{202e}']));
        assert_eq!(short_call("ls", &json!({})).to_string(), "ls()");
        assert_eq!(short_call("get", &json!({"x": {"y": 1}})).to_string(), r#"get({"x":{"y":1}})"#);
        assert_eq!(short_call("get", &json!({"zeta": 7})).to_string(), "get(7)");
    }
}
