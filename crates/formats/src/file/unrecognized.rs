//! Describes files that have no format deloop knows, for the person who named them.

use crate::json::peek;

/// Number of keys that are named.
const KEYS: usize = 6;
/// A longer key is left out.
const LONGEST_KEY: usize = 40;

/// Describes what a file that begins with these bytes looks like, as in "unknown session format: …".
pub(super) fn describe(head: &[u8]) -> String {
    let head = head.trim_ascii();
    if head.is_empty() {
        return "the file is empty".to_owned();
    }
    if head.contains(&0) {
        return "a binary file".to_owned();
    }
    let line = peek::first_line(head);
    let is_lines = line.len() < head.len() && is_closed(line);
    let value = if is_lines { line } else { head };
    match value.first() {
        Some(b'{') => with_keys(if is_lines { "JSON lines" } else { "a JSON object" }, value),
        Some(b'[') => match peek::elements(value).next() {
            Some(first) if first.starts_with(b"{") => with_keys("a JSON list of objects", first),
            _ => "a JSON list".to_owned(),
        },
        _ => "not JSON".to_owned(),
    }
}

/// Returns whether a line ends as an object or a list does. The first line of a document that spans several doesn't.
fn is_closed(line: &[u8]) -> bool {
    line.len() > 1 && matches!((line[0], line[line.len() - 1]), (b'{', b'}') | (b'[', b']'))
}

/// Names the first keys. They are names that a program chose, unlike values.
fn with_keys(what: &str, object: &[u8]) -> String {
    let is_plain = |key: &&str| {
        key.len() <= LONGEST_KEY && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.:$@".contains(&b))
    };
    let keys: Vec<String> = peek::fields(object)
        .filter_map(|(key, _)| std::str::from_utf8(key).ok().filter(is_plain))
        .take(KEYS)
        .map(|key| format!("`{key}`"))
        .collect();
    match keys.as_slice() {
        [] => what.to_owned(),
        [key] => format!("{what} with the key {key}"),
        keys => format!("{what} with the keys {}", keys.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_looks_like() {
        let cases: [(&[u8], &str); 11] = [
            (b" \n", "the file is empty"),
            (b"SQLite format 3\0", "a binary file"),
            (b"2026-03-01 INFO started", "not JSON"),
            (b"{\"theme\": \"dark\"}", "a JSON object with the key `theme`"),
            (b"{\n  \"a\": 1,\n  \"b\": {\"c\": 2}\n}", "a JSON object with the keys `a`, `b`"),
            (b"{\"a\":1}\n{\"b\":2}\n", "JSON lines with the key `a`"),
            (b"[{\"a\":1,\"b\":2}]", "a JSON list of objects with the keys `a`, `b`"),
            (b"[1, 2]", "a JSON list"),
            (b"{\"a secret, maybe\":1}", "a JSON object"),
            (b"{\"a\":1,\"b\":", "a JSON object with the key `a`"),
            (b"{", "a JSON object"),
        ];
        for (head, expected) in cases {
            assert_eq!(describe(head), expected, "{}", String::from_utf8_lossy(head));
        }
    }
}
