//! Results that bring nothing: failures, reduced to their kind, and searches that found nothing.

use deloop_types::{Outcome, ToolResult};
use serde_json::Value;

use crate::{CallRecord, short_hash};

/// The kind of a search that found nothing.
const NOTHING_FOUND: u64 = 1;
/// The kind of a failure that said nothing.
const SILENT_FAILURE: u64 = 2;
/// A result that does not say how it ended is taken for a failure only if it is this short, in bytes.
const SHORT: usize = 600;
/// A failure of more lines than this is compared as a whole.
const FEW_LINES: usize = 60;
/// Of a failure, so many lines are looked at.
const MOST_LINES: usize = 240;

/// What lines that tell of a failure have in them, in lower case.
const TELLING: &[&str] = &[
    "error",
    "exception",
    "not found",
    "no such",
    "failed",
    "cannot",
    "can't",
    "unable",
    "invalid",
    "denied",
    "refused",
    "timed out",
    "timeout",
    "time out",
    "no matches",
    "no match",
    "usage:",
    "unexpected",
    "not exist",
    "fatal",
    "unknown",
    "missing",
    "not recognized",
    "rejected",
    "not available",
    "no results",
    "does not add up",
    "nothing found",
];

/// For each byte, which of [`TELLING`] start with it, a bit each: one pass over a line is enough for all of them.
const STARTS: [u32; 256] = {
    let mut starts = [0; 256];
    let mut word = 0;
    while word < TELLING.len() {
        starts[TELLING[word].as_bytes()[0] as usize] |= 1 << word;
        word += 1;
    }
    starts
};

/// What stands for no output at all.
const EMPTY: &[&str] = &[
    "",
    "(no output)",
    "no output",
    "none",
    "[]",
    "{}",
    "null",
    "(bash completed with no output)",
    "your command ran successfully and did not produce any output.",
    "tool ran without output or errors",
];

/// The kind of nothing that a result brought; 0 when it brought something.
pub(crate) fn fruitless(record: &CallRecord, result: &ToolResult, outcome: Option<Outcome>) -> u64 {
    let failed = outcome.is_some_and(Outcome::failed);
    let short = |text: &str| text.len() < SHORT;
    match &result.output {
        Value::String(text) if failed || (outcome != Some(Outcome::Ok) && short(text)) || is_empty(text) => {
            kind_of(record, text.trim(), failed)
        }
        Value::String(text) if record.searches && short(text) && says_nothing_found(text) => NOTHING_FOUND,
        Value::String(_) => 0,
        Value::Null => kind_of(record, "", failed),
        other if failed => kind_of(record, &other.to_string(), failed),
        _ => 0,
    }
}

/// How a search says that it found nothing, in lower case.
const NOTHING: &[&str] = &[
    "no match",
    "no file",
    "no result",
    "no document",
    "no record",
    "no entries",
    "no items",
    "nothing found",
    "nothing matched",
    "0 results",
    "0 matches",
    "found 0",
    "not found",
    "could not find",
    "none found",
];

fn says_nothing_found(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(24).collect::<String>().to_lowercase();
    text.lines().count() <= 3 && NOTHING.iter().any(|words| start.starts_with(words))
}

fn is_empty(text: &str) -> bool {
    let text = text.trim();
    text.len() < 80 && EMPTY.iter().any(|e| e.eq_ignore_ascii_case(text))
}

fn kind_of(record: &CallRecord, text: &str, failed: bool) -> u64 {
    if is_empty(text) {
        return match (failed, record.searches) {
            (true, _) => SILENT_FAILURE,
            (false, true) => NOTHING_FOUND,
            (false, false) => 0,
        };
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).take(MOST_LINES).collect();
    let mut telling = lines.iter().filter(|line| tells(line));
    let first = telling.next();
    if failed && (first.is_none() || lines.len() > FEW_LINES) {
        let mut whole = Vec::with_capacity(text.len().min(8192));
        for line in &lines {
            reduce_into(line, &mut whole);
            whole.push(b'\n');
        }
        return short_hash(&whole);
    }
    let Some(first) = first else { return 0 };
    let last = telling.next_back().unwrap_or(first);
    let mut said = Vec::with_capacity(340);
    reduce_into(first, &mut said);
    said.push(b'|');
    reduce_into(last, &mut said);
    short_hash(&said)
}

fn tells(line: &str) -> bool {
    let mut lower = [0_u8; 400];
    let mut length = 0;
    for byte in line.bytes().take(lower.len()) {
        lower[length] = byte.to_ascii_lowercase();
        length += 1;
    }
    let lower = &lower[..length];
    let told = |at: usize| {
        let mut words = STARTS[usize::from(lower[at])];
        while words != 0 {
            if lower[at..].starts_with(TELLING[words.trailing_zeros() as usize].as_bytes()) {
                return true;
            }
            words &= words - 1;
        }
        false
    };
    !lower.starts_with(b"traceback") && (0..length).any(told)
}

/// Appends a line of a failure without what varies: quoted text, paths, numbers, names with numbers in them, letter
/// case, terminal colours.
fn reduce_into(line: &str, out: &mut Vec<u8>) {
    let line = &line.as_bytes()[..line.len().min(400)];
    let most = out.len() + 160;
    let mut at = 0;
    while at < line.len() && out.len() < most {
        let byte = line[at];
        match byte {
            0x1b => {
                let end = line[at + 1..].iter().position(u8::is_ascii_alphabetic);
                at += end.map_or(1, |end| end + 2);
            }
            b'"' | b'\'' | b'`' => match memchr::memchr(byte, &line[at + 1..]) {
                Some(end) => {
                    out.push(b'~');
                    at += end + 2;
                }
                None => {
                    out.push(byte);
                    at += 1;
                }
            },
            _ if CUTS[usize::from(byte)] => {
                // One space is as good as many.
                let space = byte.is_ascii_whitespace();
                if !(space && out.last() == Some(&b' ')) {
                    out.push(if space { b' ' } else { byte });
                }
                at += 1;
            }
            _ => {
                let end =
                    line[at..].iter().position(|b| CUTS[usize::from(*b)]).map_or(line.len(), |n| at + n);
                reduce_word(&line[at..end], out);
                at = end;
            }
        }
    }
}

/// What ends a word of a failure.
const CUTS: [bool; 256] = {
    let mut cuts = [false; 256];
    let bytes = b" \t\r\n\x0b\x0c\"'`()[]{}<>,;:=\x1b";
    let mut i = 0;
    while i < bytes.len() {
        cuts[bytes[i] as usize] = true;
        i += 1;
    }
    cuts
};

fn reduce_word(word: &[u8], out: &mut Vec<u8>) {
    let (mut path, mut digits) = (false, false);
    for byte in word {
        path |= matches!(byte, b'/' | b'\\');
        digits |= byte.is_ascii_digit();
    }
    let address = word.windows(2).any(|w| w == b"0x");
    if path || address || digits && (word.len() >= 6 || word.iter().all(|b| b.is_ascii_digit() || *b == b'.'))
    {
        return out.push(b'~');
    }
    let mut digit = false;
    for byte in word {
        if !(digit && byte.is_ascii_digit()) {
            out.push(if byte.is_ascii_digit() { b'~' } else { byte.to_ascii_lowercase() });
        }
        digit = byte.is_ascii_digit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce(line: &str) -> String {
        let mut out = Vec::new();
        reduce_into(line, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_varies_is_taken_out() {
        assert_eq!(
            reduce("bash: cd: fastjson/: No such file or directory"),
            "bash: cd: ~: no such file or directory"
        );
        assert_eq!(reduce(r#"No matches found for "a b" in /src/x"#), "no matches found for ~ in ~");
        assert_eq!(reduce("src/a.rs:41:9: error E0425"), "~:~:~: error e~");
        assert_eq!(reduce("it's an error"), "it's an error");
        assert_eq!(reduce(""), "");
        assert_eq!(reduce("\u{1b}[31mFAILED\u{1b}[0m  tmpab12cd in 0.34s"), "failed ~ in ~.~s");
    }

    #[test]
    fn lines_that_tell_of_a_failure_are_known() {
        assert!(tells("javac: command not found") && tells("ERROR: x") && tells("No matches found"));
        assert!(!tells("Traceback (most recent call last):") && !tells("all good"));
    }
}
