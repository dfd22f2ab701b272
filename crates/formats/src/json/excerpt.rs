//! Shortens a long text to its beginning, its length and hash, and its end.

use xxhash_rust::xxh3::xxh3_64;

use super::repair::write_text;
use super::scan::ends_in_escape;

/// How a text is written down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextEncoding {
    /// The inside of a JSON string.
    Escaped,
    /// Any bytes.
    Raw,
}

/// Writes the inside of a JSON string, of which no more than about `most` bytes are kept: its beginning, its length and
/// hash, its end. Results are compared without the hash, which is masked like every address; arguments with it.
pub(super) fn write_excerpt(text: &[u8], most: usize, encoding: TextEncoding, out: &mut Vec<u8>) {
    if text.len() <= most {
        return write(text, encoding, out);
    }
    let half = most / 2 - 32;
    let cut = |at: usize| {
        if encoding == TextEncoding::Escaped { between_escapes(text, at) } else { between_letters(text, at) }
    };
    write(&text[..cut(half)], encoding, out);
    let mark = format!("…[{} KiB, 0x{:016x}]…", text.len() >> 10, xxh3_64(text));
    out.extend_from_slice(mark.as_bytes());
    write(&text[cut(text.len() - half)..], encoding, out);
}

fn write(text: &[u8], encoding: TextEncoding, out: &mut Vec<u8>) {
    match encoding {
        TextEncoding::Escaped => write_text(text, out),
        TextEncoding::Raw => {
            let quoted = serde_json::to_string(&String::from_utf8_lossy(text)).unwrap_or_default();
            let inner = quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"'));
            out.extend_from_slice(inner.unwrap_or_default().as_bytes());
        }
    }
}

/// The first place from `at` on that is not inside a character.
fn between_letters(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|b| b & 0xc0 == 0x80) {
        at += 1;
    }
    at
}

/// The first place from `at` on that is inside neither a character nor an escape.
fn between_escapes(text: &[u8], at: usize) -> usize {
    if ends_in_escape(&text[..at]) {
        let length = if text.get(at) == Some(&b'u') { 5 } else { 1 };
        return (at + length).min(text.len());
    }
    // Inside the digits of `\u00e9`?
    for back in 1..=4 {
        if at > back && text[at - back] == b'u' && ends_in_escape(&text[..at - back]) {
            return (at - back + 5).min(text.len());
        }
    }
    between_letters(text, at)
}
