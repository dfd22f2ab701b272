//! Makes well-formed JSON of what agents and the tools around them really leave behind: a document that was cut
//! off, an escape or a byte that JSON does not know, a number that is not one.

use crate::json::scan::string_length;

/// The first JSON value of some bytes, made well-formed.
pub(crate) struct Repaired {
    /// The value; it may still be refused by a parser if the bytes were not JSON at all.
    pub(crate) bytes: Vec<u8>,
    /// Whether its end was missing.
    pub(crate) cut: bool,
    /// How many bytes it took.
    pub(crate) length: usize,
}

/// Repairs the first JSON value of `bytes`. A value that is cut off is closed after its last whole element, so that
/// the head of a file can be looked at as if it were all of it.
pub(crate) fn repair(bytes: &[u8]) -> Repaired {
    let mut repairer = Repairer { rest: bytes, out: Vec::new(), open: Vec::new(), whole: 0 };
    let cut = !repairer.run();
    Repaired { bytes: repairer.out, cut, length: bytes.len() - repairer.rest.len() }
}

struct Repairer<'a> {
    rest: &'a [u8],
    out: Vec<u8>,
    /// What closes the containers that are open.
    open: Vec<u8>,
    /// How much of `out` can stand if all that is open is closed there.
    whole: usize,
}

impl Repairer<'_> {
    /// Returns whether the value came to its end.
    fn run(&mut self) -> bool {
        while let Some((&byte, rest)) = self.rest.split_first() {
            match byte {
                b'"' => {
                    if !self.string() {
                        break;
                    }
                    continue;
                }
                b'{' | b'[' => {
                    self.open.push(if byte == b'{' { b'}' } else { b']' });
                    self.out.push(byte);
                    self.whole = self.out.len();
                }
                b'}' | b']' => {
                    self.rest = rest;
                    let matches = self.open.pop() == Some(byte);
                    self.out.push(byte);
                    self.whole = self.out.len();
                    if !matches || self.open.is_empty() {
                        return matches;
                    }
                    continue;
                }
                b',' => {
                    self.whole = self.out.len();
                    self.out.push(byte);
                }
                b'N' | b'I' | b'-' => {
                    if self.not_a_number() {
                        continue;
                    }
                    self.out.push(byte);
                }
                _ => self.out.push(byte),
            }
            self.rest = rest;
        }
        self.rest = &[];
        if self.open.is_empty() {
            return true;
        }
        self.out.truncate(self.whole);
        self.out.extend(self.open.iter().rev());
        false
    }

    /// Python writes what is not a number in its own way.
    fn not_a_number(&mut self) -> bool {
        let word = NOT_A_NUMBER.iter().find(|word| self.rest.starts_with(word));
        if let Some(word) = word {
            self.out.extend_from_slice(b"null");
            self.rest = &self.rest[word.len()..];
        }
        word.is_some()
    }

    /// Copies a string; false when it has no end.
    fn string(&mut self) -> bool {
        let inside = &self.rest[1..];
        let Some(length) = string_length(inside) else { return false };
        self.out.push(b'"');
        write_text(&inside[..length], &mut self.out);
        self.out.push(b'"');
        self.rest = &inside[length + 1..];
        true
    }
}

const NOT_A_NUMBER: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// Writes the text of a string with its broken parts made readable: an escape that JSON does not know becomes the
/// backslash it starts with, half a surrogate pair and bytes that are no UTF-8 become the replacement character.
pub(crate) fn write_text(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let plain = plain_length(&text[at..]);
        write_utf8(&text[at..at + plain], out);
        at += plain;
        match text.get(at) {
            None => {}
            Some(b'\\') => at += write_escape(&text[at..], out),
            Some(control) => {
                out.extend_from_slice(format!("\\u{control:04x}").as_bytes());
                at += 1;
            }
        }
    }
}

fn write_utf8(text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Writes the escape that `here` starts with and returns its length.
fn write_escape(here: &[u8], out: &mut Vec<u8>) -> usize {
    if let Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') = here.get(1) {
        out.extend_from_slice(&here[..2]);
        return 2;
    }
    let (written, length): (&[u8], _) = match (unit(here), here.get(6..).and_then(unit)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (&here[..12], 12),
        (Some(0xd800..=0xdfff), _) => (b"\\ufffd", 6),
        (Some(_), _) => (&here[..6], 6),
        (None, _) => (b"\\\\", 1),
    };
    out.extend_from_slice(written);
    length
}

/// Writes a number, `true`, `false` or `null`. A number that is none, is out of range or longer than `most` bytes is
/// null.
pub(crate) fn write_word(word: &[u8], most: usize, out: &mut Vec<u8>) {
    let number = matches!(word.first(), Some(b'-' | b'0'..=b'9'));
    let may_be_large = word.len() > 300 || word.iter().any(|b| matches!(b, b'e' | b'E'));
    let too_large = || {
        let text = std::str::from_utf8(word).unwrap_or_default();
        text.parse::<f64>().is_ok_and(f64::is_infinite)
    };
    if NOT_A_NUMBER.contains(&word) || number && (word.len() > most || may_be_large && too_large()) {
        out.extend_from_slice(b"null");
    } else {
        out.extend_from_slice(&word[..word.len().min(most)]);
    }
}

/// How many bytes stand for themselves in the text of a string.
fn plain_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| matches!(b, b'\\' | 0..=0x1f)).unwrap_or(bytes.len())
}

/// The UTF-16 unit that `\uXXXX` at the start of `bytes` stands for.
fn unit(bytes: &[u8]) -> Option<u16> {
    let hex = bytes.strip_prefix(b"\\u")?.get(..4)?;
    if !hex.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(text: &str) -> (String, bool) {
        let repaired = repair(text.as_bytes());
        (String::from_utf8(repaired.bytes).unwrap(), repaired.cut)
    }

    #[test]
    fn what_is_well_formed_stays_as_it_is() {
        for text in
            [r#"{"a":[1,-2.5e3,{"b":"\"\\\u00e9\ud83d\ude00"}],"c":null}"#, "[]", "[ 1 , 2 ]", r#""x""#, "12"]
        {
            assert_eq!(repaired(text), (text.to_owned(), false));
        }
    }

    #[test]
    fn a_cut_value_ends_after_its_last_whole_element() {
        for (text, whole) in [
            (r#"{"a":1,"b":[{"c":"d"#, r#"{"a":1,"b":[{}]}"#),
            (r#"{"a":1,"b":"x\"#, r#"{"a":1}"#),
            (r#"{"a":1,"b":"x\u12"#, r#"{"a":1}"#),
            (r#"[1,2"#, "[1]"),
            (r#"{"a""#, "{}"),
            (r#"{"a":{"b":2}"#, r#"{"a":{"b":2}}"#),
        ] {
            assert_eq!(repaired(text), (whole.to_owned(), true), "{text}");
        }
    }

    #[test]
    fn what_follows_the_value_is_left_out() {
        let two = "{\"a\":1}\n{\"b\":2}";
        assert_eq!(repaired(two), ("{\"a\":1}".to_owned(), false));
        assert_eq!(repair(two.as_bytes()).length, 7);
        assert_eq!(repaired("[1] \n"), ("[1]".to_owned(), false));
        assert_eq!(repaired("[1},2"), ("[1}".to_owned(), true));
    }

    #[test]
    fn strings_are_made_readable() {
        for (text, value) in [
            (r#""\n\user@example.com""#, "\n\\user@example.com"),
            (r#""\ud83d!""#, "\u{fffd}!"),
            (r#""\ude00\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""C:\dir\x""#, "C:\\dir\\x"),
            ("\"a\tb\u{1}\"", "a\tb\u{1}"),
        ] {
            let (text, _) = repaired(text);
            assert_eq!(serde_json::from_str::<String>(&text).unwrap(), value, "{text}");
        }
        let bytes = repair(b"\"a\xffb\"").bytes;
        assert_eq!(serde_json::from_slice::<String>(&bytes).unwrap(), "a\u{fffd}b");
    }

    #[test]
    fn numbers_that_are_none_are_null() {
        assert_eq!(repaired("[NaN,-Infinity,Infinity,-1]").0, "[null,null,null,-1]");
    }
}
