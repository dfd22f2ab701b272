//! The kind of a failure: its text without the parts that vary.

use super::Vocabulary;
use super::ending::is_blank;
use crate::fingerprint::half;
use crate::short_hash;

/// The kind of a failure without text.
const SILENT: u32 = 1;
/// The kind of a time-out.
pub(crate) const TIMED_OUT: u32 = 2;
/// Maximum number of bytes of a failure that are read.
const MOST: usize = 8 * 1024;
/// Maximum number of relevant lines that are compared.
const TELLING: usize = 8;
/// Number of lines from the start, and from the end, used when no line is relevant.
const LINES: usize = 4;

/// Returns the kind of this failure as a hash, never 0. Two failures are of one kind when they have the same
/// `error_type`, if any, and the lines that mention a failure are equal without the parts that vary.
pub(crate) fn failure_kind(text: &str, error_type: Option<&str>, vocabulary: &Vocabulary) -> u32 {
    let text = text.trim();
    if is_blank(text) && error_type.is_none() {
        return SILENT;
    }
    let bytes = &text.as_bytes()[..text.len().min(MOST)];
    let lower = bytes.to_ascii_lowercase();
    let mut said = Vec::with_capacity(512);
    said.extend(error_type.unwrap_or_default().bytes());
    let (mut at, mut lines) = (0, 0);
    while lines < TELLING
        && let Some(found) = vocabulary.failure_words().find(&lower[at..])
    {
        let found = at + found.start();
        let start = memchr::memrchr(b'\n', &bytes[at..found]).map_or(at, |n| at + n + 1);
        let end = memchr::memchr(b'\n', &bytes[found..]).map_or(bytes.len(), |n| found + n);
        reduce_into(&bytes[start..end], &mut said);
        said.push(b'\n');
        lines += 1;
        at = end;
    }
    if lines == 0 {
        let head = bytes.split(|b| *b == b'\n').take(LINES);
        for line in head.chain(bytes.rsplit(|b| *b == b'\n').take(LINES)) {
            reduce_into(line, &mut said);
            said.push(b'\n');
        }
    }
    half(short_hash(&said)).max(TIMED_OUT + 1)
}

/// Appends a line of a failure without the parts that vary: quoted text, paths, numbers, names that contain numbers,
/// letter case, terminal colors.
fn reduce_into(line: &[u8], out: &mut Vec<u8>) {
    let line = line.trim_ascii();
    let line = &line[..line.len().min(400)];
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
                if !(byte.is_ascii_whitespace() && out.last() == Some(&b' ')) {
                    out.push(if byte.is_ascii_whitespace() { b' ' } else { byte });
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

/// The bytes that end a word.
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
    if !path && !digits {
        return out.extend(word.iter().map(u8::to_ascii_lowercase));
    }
    let address = !path && word.windows(2).any(|w| w == b"0x");
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
        reduce_into(line.as_bytes(), &mut out);
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
    fn the_telling_lines_count() {
        let kind = |text: &str| failure_kind(text, None, &Vocabulary::builtin());
        assert_eq!(
            kind("building a\nerror: x not found\nbye"),
            kind("building b\nerror: x not found\nsee you")
        );
        assert_ne!(kind("error: a was refused"), kind("error: a is missing"));
        assert_eq!(kind(""), SILENT);
    }
}
