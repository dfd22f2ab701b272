//! Normalizes a call's arguments: removes letter case, folders, times, UUIDs and numeric ids, so that
//! a trivial variation doesn't hide a repetition.

use serde_json::Value;

use super::canonical::write_string;

/// Maximum length of the normalized form, in characters.
pub const CUT: usize = 200;

/// Lower-cases values, reduces paths to their last part, drops UUIDs, dates and times wherever they stand, and numbers that
/// are a whole segment, sorts keys and truncates the JSON to [`CUT`] characters.
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
    without_numbers(&without_stamps(&base_names(&text[..end].to_lowercase())))
}

fn base_names(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let stop = rest.find(cuts_path).unwrap_or(rest.len());
        out.push_str(base_name(&rest[..stop]));
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

/// Drops UUIDs, dates and times, wherever they stand.
fn without_stamps(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        // They consist of ASCII bytes, so a cut there never splits a character.
        let length = if bytes[at].is_ascii_hexdigit() { stamp(bytes, at) } else { 0 };
        if length > 0 {
            out.push_str(&text[copied..at]);
            at += length;
            copied = at;
        } else {
            at += 1;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// Drops numbers that are a whole segment of a text, an address or its query. One that is part of a name stays.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(ends_segment) {
        let segment = piece.trim_end_matches(ends_segment);
        if !is_number(segment) {
            out.push_str(segment);
        }
        out.push_str(&piece[segment.len()..]);
    }
    out
}

fn ends_segment(c: char) -> bool {
    c.is_whitespace() || matches!(c, '/' | '?' | '=' | '&')
}

fn is_number(segment: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    digits(segment) || segment.split_once('.').is_some_and(|(whole, rest)| digits(whole) && digits(rest))
}

/// Returns the length of the UUID, date or time that begins at this index, or 0. Digits around a date or time are part of
/// another number.
fn stamp(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    if shaped(rest, b"xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
        return 36;
    }
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    if !rest[0].is_ascii_digit() || at > 0 && digit(at - 1) {
        return 0;
    }
    timestamps(rest).into_iter().find(|&length| length > 0 && !digit(at + length)).unwrap_or(0)
}

/// Returns the lengths of what may be the date or time at the start of `bytes`, longest first: `2026-01-31`, with or without
/// a time and its zone, `20260131T102030`, or `10:20:30`.
fn timestamps(bytes: &[u8]) -> [usize; 2] {
    if shaped(bytes, b"00:00:00") {
        return [with_fraction(bytes, 8), 0];
    }
    if shaped(bytes, b"00000000t000000") {
        return [with_zone(bytes, with_fraction(bytes, 15)), 0];
    }
    if !shaped(bytes, b"0000-00-00") {
        return [0, 0];
    }
    let time = bytes.get(11..).filter(|_| matches!(bytes[10], b't' | b' ' | b'_' | b'-')).unwrap_or_default();
    let end = if shaped(time, b"00:00:00") {
        with_fraction(bytes, 19)
    } else if shaped(time, b"00-00-00") {
        19
    } else if shaped(time, b"00:00") {
        16
    } else {
        return [10, 0];
    };
    [with_zone(bytes, end), 10]
}

/// Returns whether `bytes` starts with this pattern, in which `0` is a digit and `x` a hexadecimal digit.
fn shaped(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes.len() >= pattern.len()
        && pattern.iter().zip(bytes).all(|(p, b)| match p {
            b'0' => b.is_ascii_digit(),
            b'x' => b.is_ascii_hexdigit(),
            p => p == b,
        })
}

fn with_fraction(bytes: &[u8], end: usize) -> usize {
    match bytes.get(end..) {
        Some([b'.', rest @ ..]) if rest.first().is_some_and(u8::is_ascii_digit) => {
            end + 1 + rest.iter().take_while(|b| b.is_ascii_digit()).count()
        }
        _ => end,
    }
}

fn with_zone(bytes: &[u8], end: usize) -> usize {
    let rest = bytes.get(end..).unwrap_or_default();
    let zones: [&[u8]; 5] = [b"z", b"+00:00", b"-00:00", b"+0000", b"-0000"];
    end + zones.into_iter().find(|zone| shaped(rest, zone)).map_or(0, <[u8]>::len)
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
        assert_eq!(text("(42) x=7 #3 5, 6"), "(42) x= #3 5, ");
    }

    #[test]
    fn takes_out_ids_and_dates_wherever_they_stand() {
        let id = "123e4567-e89b-12d3-a456-426614174000";
        assert_eq!(text(&format!("/tmp/{id}.json run_{id}-a id{id}")), ".json run_-a id");
        assert_eq!(
            text(&format!("https://x.test/jobs/{id}?page=2&of=10#7")),
            "https://x.test/jobs/?page=&of=10#7"
        );
        assert_eq!(text("https://x.test/users/42/posts/7"), "https://x.test/users//posts/");
        assert_eq!(text("report-2026-11-02.csv log_2026-11-02t10-20-30.txt"), "report-.csv log_.txt");
        assert_eq!(text("at_20261102T102030.5Z 2026-11-02 10:20 10:20:30.125"), "at_  ");
        assert_eq!(
            text("page_1.html v2 file1.ts 12026-11-02 2026-11-021"),
            "page_1.html v2 file1.ts 12026-11-02 2026-11-021"
        );
    }

    #[test]
    fn reading_takes_time_in_proportion_to_the_text() {
        for piece in ["1", "a", "2026-11-02", "1-", "/1?", "é1."] {
            let long = piece.repeat(100_000);
            assert!(text(&long).len() <= 16 * CUT * 4, "{piece}");
        }
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
