//! Removes the volatile parts of a result, so that two results are equal when only the time, a process id or
//! a random name differs.

use std::ops::Range;

use super::scan::bytes_before;

/// Longer results, in bytes, are compared by their beginning, end and length.
const MOST: usize = 64 * 1024;

/// Returns `text` without times, durations, process and thread ids, addresses, ids, temporary names and terminal
/// colors. Counts, line numbers and other plain numbers stay, because a change in them may be progress.
///
/// ```
/// use deloop_detect::mask;
/// assert_eq!(mask("12 passed in 0.34s (pid 4711) at 10:20:30"), "12 passed in ~ (pid ~) at ~");
/// assert_eq!(mask("3 failed"), "3 failed");
/// ```
#[must_use]
pub fn mask(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len().min(MOST) + 32);
    mask_into(text, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Does the same as [`mask`], into a reusable buffer.
pub fn mask_into(text: &str, out: &mut Vec<u8>) {
    if text.len() <= MOST {
        return mask_piece(text.as_bytes(), out);
    }
    let mut head = MOST / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - MOST / 2;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    mask_piece(&text.as_bytes()[..head], out);
    out.extend_from_slice(format!("…{}…", text.len() / 1024).as_bytes());
    mask_piece(&text.as_bytes()[tail..], out);
}

fn mask_piece(text: &[u8], out: &mut Vec<u8>) {
    let mut copied = 0;
    let mut at = 0;
    loop {
        at += bytes_before(&text[at..], |b| b.is_ascii_digit() | (b == 0x1b));
        let Some(&byte) = text.get(at) else { break };
        if byte == 0x1b {
            out.extend_from_slice(&text[copied..at]);
            at = escape_end(text, at);
            copied = at;
        } else {
            let token = token_start(text, at, copied)..token_end(text, at);
            match volatile_end(text, &token, at) {
                Some((from, end)) => {
                    out.extend_from_slice(&text[copied..from.max(copied)]);
                    out.push(b'~');
                    at = end;
                    copied = end;
                }
                None => at = token.end,
            }
        }
    }
    out.extend_from_slice(&text[copied..]);
}

fn in_token(b: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0_u8;
        while byte < 128 {
            table[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
            byte += 1;
        }
        table
    };
    TABLE[usize::from(b)]
}

fn token_start(text: &[u8], at: usize, floor: usize) -> usize {
    let mut start = at;
    while start > floor && at - start < 64 && in_token(text[start - 1]) {
        start -= 1;
    }
    start
}

fn token_end(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|b| in_token(**b)).count().max(1)
}

/// Returns the position after a terminal escape sequence.
fn escape_end(text: &[u8], at: usize) -> usize {
    match text.get(at + 1) {
        Some(b'[') => {
            let rest = &text[at + 2..];
            let length = rest.iter().take(32).position(|b| (0x40..=0x7e).contains(b));
            length.map_or(at + 2, |l| at + 3 + l)
        }
        Some(_) => at + 1,
        None => at + 1,
    }
}

fn digits(text: &[u8], at: usize) -> usize {
    text[at.min(text.len())..].iter().take_while(|b| b.is_ascii_digit()).count()
}

/// Returns the start and end of the volatile part around the digit at `at`, which is in this token.
fn volatile_end(text: &[u8], token: &Range<usize>, at: usize) -> Option<(usize, usize)> {
    let Range { start, end } = *token;
    let token = &text[start..end];
    if token.len() == 8
        && let Some(end) = uuid_end(text, start)
    {
        return Some((start, end));
    }
    if token.len() > 2 && (token.starts_with(b"0x") || token.starts_with(b"0X")) {
        return Some((start, end));
    }
    if token.len() >= 8 && token.starts_with(b"tmp") {
        return Some((start, end));
    }
    if token.len() >= 12
        && token.iter().all(u8::is_ascii_hexdigit)
        && token.iter().any(u8::is_ascii_alphabetic)
    {
        return Some((start, end));
    }
    if start == at {
        let whole = digits(text, at);
        if whole >= 10 && whole == token.len() {
            return Some((at, end));
        }
        if let Some(end) = clock_end(text, at).or_else(|| duration_end(text, at, whole)) {
            return Some((at, end));
        }
    }
    // The more expensive check of the preceding text comes last.
    let before = word_before(text, start);
    if before.is_empty() {
        return None;
    }
    let (last, joined) = last_word(before);
    let is_one_of = |words: &[&[u8]]| words.iter().any(|w| last.eq_ignore_ascii_case(w));
    let of_a_shell = before.eq_ignore_ascii_case(b"shellid");
    if of_a_shell
        || is_one_of(&[
            b"pid",
            b"pgid",
            b"ppid",
            b"tid",
            b"process",
            b"thread",
            b"goroutine",
            b"nonce",
            b"port",
            b"elapsed",
            b"uptime",
            b"timestamp",
        ])
        || joined && is_one_of(&[b"ms", b"us", b"ns", b"at", b"took", b"duration", b"latency"])
    {
        return Some((start, end));
    }
    if last.eq_ignore_ascii_case(b"id") && token.len() >= 4 {
        return Some((start, end));
    }
    // Spring Boot logs `ERROR 21207 --- [main]`, with the process id.
    if matches!(before, b"ERROR" | b"WARN" | b"INFO" | b"DEBUG") && text[end..].starts_with(b" ---") {
        return Some((start, end));
    }
    if before == b"line" && text.get(end) == Some(&b':') && text[..start].ends_with(b": line ") {
        return Some((start, end));
    }
    None
}

/// Returns the word before `start`, separated only by a space, `:`, `=`, `#`, `(` or a quote.
fn word_before(text: &[u8], start: usize) -> &[u8] {
    let mut stop = start;
    while stop > 0 && start - stop < 4 && matches!(text[stop - 1], b' ' | b':' | b'=' | b'#' | b'(' | b'"') {
        stop -= 1;
    }
    if stop == start {
        return &[];
    }
    let mut first = stop;
    while first > 0 && stop - first < 14 && (text[first - 1].is_ascii_alphabetic() || text[first - 1] == b'_')
    {
        first -= 1;
    }
    &text[first..stop]
}

/// Returns the last word of a compound name (`took_ms`, `checkedAt`), and whether there are others before it.
fn last_word(name: &[u8]) -> (&[u8], bool) {
    let starts =
        |i: &usize| name[i - 1] == b'_' || name[*i].is_ascii_uppercase() && name[i - 1].is_ascii_lowercase();
    match (1..name.len()).rev().find(starts) {
        Some(at) => (&name[at..], true),
        None => (name, false),
    }
}

fn uuid_end(text: &[u8], start: usize) -> Option<usize> {
    let piece = text.get(start..start + 36)?;
    let fits = piece.iter().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => b.is_ascii_hexdigit(),
    });
    fits.then_some(start + 36)
}

/// Returns the position after `10:20`, `10:20:30.123` or `2026-01-31`, `2026-01-31T10:20:30Z`, `2026-01-31 10:20:30`.
fn clock_end(text: &[u8], at: usize) -> Option<usize> {
    let sep = |i: usize| text.get(i).copied();
    let whole = digits(text, at);
    if whole == 4
        && matches!(sep(at + 4), Some(b'-' | b'/'))
        && digits(text, at + 5) == 2
        && sep(at + 7) == sep(at + 4)
    {
        let end = at + 8 + digits(text, at + 8);
        // Only a time may follow, not another date: a series of dates would be scanned repeatedly.
        if matches!(sep(end), Some(b'T' | b' ' | b't'))
            && digits(text, end + 1) == 2
            && let Some(end) = clock_end(text, end + 1)
        {
            return Some(end);
        }
        return Some(end);
    }
    // `10-20-30`, as in file names.
    let dashed = |at: usize| sep(at) == Some(b'-') && digits(text, at + 1) == 2;
    if whole == 2 && dashed(at + 2) && dashed(at + 5) && sep(at + 8) != Some(b'-') {
        return Some(at + 8);
    }
    if (1..=2).contains(&whole) && sep(at + whole) == Some(b':') && digits(text, at + whole + 1) == 2 {
        let mut end = at + whole + 3;
        let seconds = sep(end) == Some(b':') && digits(text, end + 1) == 2;
        if seconds {
            end += 3;
            if matches!(sep(end), Some(b'.' | b',')) && digits(text, end + 1) > 0 {
                end += 1 + digits(text, end + 1);
            }
        }
        // `file.c:10:20: error` is a place, not a time.
        let placed = at > 0 && text[at - 1] == b':' || !seconds && sep(end) == Some(b':');
        if placed {
            return None;
        }
        if sep(end) == Some(b'Z') {
            end += 1;
        }
        return Some(end);
    }
    None
}

/// Returns the position after `0.34s`, `12ms`, `1.5 seconds`, `2m13s`, `1h2m3s`. The number starts at `at` and has
/// `whole` digits before the point.
fn duration_end(text: &[u8], at: usize, whole: usize) -> Option<usize> {
    let (mut at, mut whole) = (at, whole);
    for _ in 0..3 {
        let (unit, end) = unit_behind(text, at, whole)?;
        let more = digits(text, end.min(text.len()));
        if more == 0 || !matches!(unit, b"m" | b"h") {
            return (more == 0).then_some(end);
        }
        at = end;
        whole = more;
    }
    None
}

/// Returns the unit of time after the number at `at`, and its end.
fn unit_behind(text: &[u8], at: usize, whole: usize) -> Option<(&[u8], usize)> {
    let mut end = at + whole;
    if text.get(end) == Some(&b'.') && digits(text, end + 1) > 0 {
        end += 1 + digits(text, end + 1);
    }
    let spaced = text.get(end) == Some(&b' ');
    let rest = text.get(end + usize::from(spaced)..)?;
    let length = rest.iter().take(13).take_while(|b| b.is_ascii_alphabetic() || **b >= 0x80).count();
    if length == 0 {
        return None;
    }
    let unit = &rest[..length];
    let known: &[&[u8]] = if spaced {
        &[b"ms", b"sec", b"secs", b"second", b"seconds", b"milliseconds", b"s"]
    } else {
        &[b"ms", b"s", b"us", b"ns", b"\xc2\xb5s", b"sec", b"secs", b"m", b"h", b"min"]
    };
    let joined = rest.get(length) == Some(&b'_');
    (known.contains(&unit) && !joined).then_some((unit, end + usize::from(spaced) + length))
}

#[cfg(test)]
mod tests {
    use super::{mask, mask_into};
    use deloop_testing::assert_reads_linearly;

    #[test]
    fn volatile_parts_go() {
        for (text, masked) in [
            ("bash: line 13008: foo: command not found", "bash: line ~: foo: command not found"),
            ("Chunk ID: 3f2a9c\nWall time: 1.2034 seconds", "Chunk ID: ~\nWall time: ~"),
            ("Process Group PGID: 5158", "Process Group PGID: ~"),
            ("at 2026-01-31T10:20:30.123Z done", "at ~ done"),
            ("2026-01-31 10:20:30,123 INFO x", "~ INFO x"),
            ("[10:20:30] ok", "[~] ok"),
            ("Finished in 2m13.5s", "Finished in ~"),
            ("object at 0x7f3a2b>", "object at ~>"),
            ("/tmp/tmpab12cd3f/x.py", "/tmp/~/x.py"),
            ("id 123e4567-e89b-12d3-a456-426614174000.", "id ~."),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("ran for 1700000000123", "ran for ~"),
            ("commit 4f5e6d7c8b9a0f1e2d3c", "commit ~"),
            ("took 15µs", "took ~"),
            ("ERROR 21207 --- [main] x", "ERROR ~ --- [main] x"),
            (r#"{"took_ms": 598, "count": 3}"#, r#"{"took_ms": ~, "count": 3}"#),
            (r#""checkedAt":17, "elapsed":3"#, r#""checkedAt":~, "elapsed":~"#),
            ("screenshot 05-09-45.png", "screenshot ~.png"),
            ("<shellId: 3 completed", "<shellId: ~ completed"),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }

    #[test]
    fn news_stays() {
        for text in [
            "3 failed, 12 passed",
            "src/a.rs:10:20: error",
            "src/a.rs:41:9",
            "File \"x.py\", line 12, in f",
            "exit code 101",
            "version 1.2.3",
            "[File: x (311 lines total)]",
            "12 files",
            "utf8 a1 b2",
            "HTTP 404",
            "12 m",
            "5 items, 7 shops",
            "look at 598",
            "\"items\": 598",
            "2-3-4",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn hostile_input_stays_linear() {
        assert_reads_linearly(
            &["1", "1:", "a1", "0x", "\u{1b}[", "1m", "2026-", "id 1", "((((1", "2026-01-31 "],
            |text| drop(mask(text)),
        );
    }

    proptest::proptest! {
        #[test]
        fn text_stays_text(text in "[a-z0-9:. xµ€\\-\u{1b}\\[]{0,120}") {
            let mut masked = Vec::new();
            mask_into(&text, &mut masked);
            proptest::prop_assert!(std::str::from_utf8(&masked).is_ok(), "{}", masked.escape_ascii());
        }

        #[test]
        fn text_without_anything_volatile_stays_as_it_is(text in "[a-z:. xµ€\\-\\[]{0,120}") {
            proptest::prop_assert_eq!(mask(&text), text);
        }
    }
}
