//! Normalizes a call's arguments: removes letter case, folders, times, ids and numbers, so that
//! a trivial variation doesn't hide a repetition.

use serde_json::Value;

use super::canonical::write_string;

/// Maximum length of the normalized form, in characters.
pub const CUT: usize = 200;

/// Lower-cases values, reduces paths to their last part, drops timestamps, UUIDs and standalone numbers,
/// sorts keys and truncates the JSON to [`CUT`] characters.
///
/// ```
/// use deloop_detect::normalise;
/// let args = serde_json::json!({"path": "/a/b/File.ts", "line": 12});
/// assert_eq!(normalise(&args), r#"{"line":,"path":"file.ts"}"#);
/// ```
#[must_use]
pub fn normalise(args: &Value) -> String {
    let mut out = String::with_capacity(CUT + 56);
    write_value(args, &mut out);
    if let Some((end, _)) = out.char_indices().nth(CUT) {
        out.truncate(end);
    }
    out
}

fn write_value(value: &Value, out: &mut String) {
    // Anything beyond the cut can't show; a character has at most four bytes.
    if out.len() > 4 * CUT {
        return;
    }
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            if !entries.is_sorted_by_key(|(key, _)| *key) {
                entries.sort_unstable_by_key(|(key, _)| *key);
            }
            out.push('{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write_value(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::String(text) => write_string(&normalise_text(text), out),
        Value::Number(_) => {}
        Value::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
    }
}

fn normalise_text(text: &str) -> String {
    // A long path may shrink to its last part, so more is read than can show.
    let end = text.char_indices().nth(16 * CUT).map_or(text.len(), |(end, _)| end);
    let lower = text[..end].to_lowercase();
    let mut out = String::with_capacity(lower.len());
    let mut rest = lower.as_str();
    while !rest.is_empty() {
        let stop = rest.find(cuts_path).unwrap_or(rest.len());
        drop_volatile(base_name(&rest[..stop]), &mut out);
        let next = rest[stop..].chars().next().map_or(0, char::len_utf8);
        out.push_str(&rest[stop..stop + next]);
        rest = &rest[stop + next..];
    }
    out
}

fn cuts_path(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`')
}

fn base_name(token: &str) -> &str {
    if token.contains("://") {
        return token;
    }
    token.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(token)
}

fn drop_volatile(token: &str, out: &mut String) {
    let bytes = token.as_bytes();
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        // Volatile parts start with an ASCII byte, so a cut there never splits a character.
        let starts = bytes[at].is_ascii_hexdigit() && (at == 0 || !joins_number(bytes[at - 1]));
        let length = if starts { volatile(&bytes[at..]) } else { 0 };
        if length > 0 {
            out.push_str(&token[copied..at]);
            at += length;
            copied = at;
        } else {
            at += 1;
        }
    }
    out.push_str(&token[copied..]);
}

/// Returns the length of the UUID, timestamp or standalone number at the start of `bytes`, or 0.
fn volatile(bytes: &[u8]) -> usize {
    [uuid(bytes), timestamp(bytes), number(bytes)]
        .into_iter()
        .find(|&n| n > 0 && bytes.get(n).is_none_or(|b| !joins_number(*b)))
        .unwrap_or(0)
}

fn joins_number(b: u8) -> bool {
    b.is_ascii_alphanumeric() || !b.is_ascii() || matches!(b, b'_' | b'.' | b'-' | b'/')
}

fn uuid(bytes: &[u8]) -> usize {
    let fits = bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        });
    if fits { 36 } else { 0 }
}

/// Matches `10:20:30` or `2026-01-31`, the date optionally followed by `T10:20:30.123Z` (or an offset).
fn timestamp(bytes: &[u8]) -> usize {
    let shape = |from: usize, pattern: &[u8]| {
        pattern.iter().enumerate().all(|(i, p)| match (p, bytes.get(from + i)) {
            (b'0', Some(b)) => b.is_ascii_digit(),
            (p, Some(b)) => p == b,
            (_, None) => false,
        })
    };
    if shape(0, b"00:00:00") {
        return 8;
    }
    if !shape(0, b"0000-00-00") {
        return 0;
    }
    if !shape(10, b"t00:00") {
        return 10;
    }
    let mut end = 16;
    if shape(end, b":00") {
        end += 3;
    }
    if bytes.get(end) == Some(&b'.') {
        end += 1 + bytes[end + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
    }
    if bytes.get(end) == Some(&b'z') {
        end += 1;
    } else if shape(end, b"+00:00") || shape(end, b"-00:00") {
        end += 6;
    }
    end
}

fn number(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(0);
    if whole == 0 {
        return 0;
    }
    if bytes.get(whole) == Some(&b'.') && digits(whole + 1) > 0 {
        return whole + 1 + digits(whole + 1);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(t: &str) -> String {
        normalise_text(t)
    }

    #[test]
    fn takes_out_what_varies() {
        assert_eq!(text("cat /a/b/File.ts"), "cat file.ts");
        assert_eq!(text(r"type C:\src\Main.cs"), "type main.cs");
        assert_eq!(text("see https://x.org/a/b"), "see https://x.org/a/b");
        assert_eq!(
            text("at 2026-01-31T10:20:30.123Z, id 123e4567-e89b-12d3-a456-426614174000!"),
            "at , id !"
        );
        assert_eq!(text("retry 3 of 10"), "retry  of ");
        assert_eq!(text("v1.2.3 utf8 a_1 file-2.txt 1.5"), "v1.2.3 utf8 a_1 file-2.txt ");
        assert_eq!(text("(42) x=7"), "() x=");
    }

    #[test]
    fn cuts_at_200_characters_not_bytes() {
        let form = normalise(&json!({"text": "é".repeat(500)}));
        assert_eq!(form.chars().count(), CUT);
    }

    #[test]
    fn key_order_does_not_matter() {
        let one: Value = serde_json::from_str(r#"{"b":"X","a":true}"#).unwrap();
        assert_eq!(normalise(&one), r#"{"a":true,"b":"x"}"#);
    }
}
