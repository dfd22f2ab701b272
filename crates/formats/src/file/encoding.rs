//! Handles text that isn't UTF-8: what PowerShell's `>` writes, and stray bytes.

use std::io::{self, Read};

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8, with a byte order mark of this many bytes.
    Utf8 { mark: usize },
    /// UTF-16, little-endian.
    Utf16Le { mark: usize },
    /// UTF-16, big-endian.
    Utf16Be { mark: usize },
}

impl Encoding {
    /// Detects the encoding from the first bytes of a file.
    pub(super) fn of(head: &[u8]) -> Self {
        match head {
            [0xef, 0xbb, 0xbf, ..] => Self::Utf8 { mark: 3 },
            [0xff, 0xfe, ..] => Self::Utf16Le { mark: 2 },
            [0xfe, 0xff, ..] => Self::Utf16Be { mark: 2 },
            [b'{' | b'[', 0, ..] => Self::Utf16Le { mark: 0 },
            [0, b'{' | b'[', ..] => Self::Utf16Be { mark: 0 },
            _ => Self::Utf8 { mark: 0 },
        }
    }
}

/// Reads as UTF-8 what is there in another encoding.
pub(super) fn decoded<'a>(
    mut bytes: Box<dyn Read + 'a>,
    encoding: Encoding,
) -> io::Result<Box<dyn Read + 'a>> {
    let (mark, high_first) = match encoding {
        Encoding::Utf8 { mark: 0 } => return Ok(bytes),
        Encoding::Utf8 { mark } => {
            super::unpack::fill(&mut bytes, &mut vec![0; mark])?;
            return Ok(bytes);
        }
        Encoding::Utf16Le { mark } => (mark, false),
        Encoding::Utf16Be { mark } => (mark, true),
    };
    super::unpack::fill(&mut bytes, &mut vec![0; mark])?;
    Ok(Box::new(Utf16 { inner: bytes, high_first, half: None, text: Vec::new(), at: 0 }))
}

struct Utf16<'a> {
    inner: Box<dyn Read + 'a>,
    high_first: bool,
    /// A high surrogate whose other half hasn't arrived yet.
    half: Option<u16>,
    text: Vec<u8>,
    at: usize,
}

impl Read for Utf16<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.text.len() {
            self.refill()?;
        }
        let length = buffer.len().min(self.text.len() - self.at);
        buffer[..length].copy_from_slice(&self.text[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

impl Utf16<'_> {
    fn refill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.at = 0;
        let mut raw = [0; 16 * 1024];
        let length = super::unpack::fill(&mut self.inner, &mut raw)?;
        let unit = |pair: &[u8]| {
            let pair = [pair[0], pair[1]];
            if self.high_first { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
        };
        let mut units: Vec<u16> = self.half.take().into_iter().collect();
        units.extend(raw[..length].chunks_exact(2).map(unit));
        if length == raw.len()
            && let Some(last) = units.last().filter(|u| (0xd800..0xdc00).contains(*u))
        {
            self.half = Some(*last);
            units.pop();
        }
        let mut bytes = [0; 4];
        for c in char::decode_utf16(units) {
            let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.text.extend_from_slice(c.encode_utf8(&mut bytes).as_bytes());
        }
        Ok(())
    }
}

/// Returns JSON with � for bytes that aren't UTF-8 and for lone surrogates (`\\ud83d` without its other half, which
/// agents write when they truncate text); `None` when it has neither.
pub(super) fn repaired(json: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(json);
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    let half = |at: usize, range: std::ops::Range<u32>| {
        let digits = bytes.get(at..at + 6).filter(|b| b.starts_with(b"\\u"));
        let value = digits.and_then(|b| u32::from_str_radix(std::str::from_utf8(&b[2..]).ok()?, 16).ok());
        value.is_some_and(|v| range.contains(&v))
    };
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        if half(at, 0xd800..0xdc00) && half(at + 6, 0xdc00..0xe000) {
            at += 12;
        } else if half(at, 0xd800..0xe000) {
            out.push_str(&text[copied..at]);
            out.push_str("\\ufffd");
            at += 6;
            copied = at;
        } else {
            at += 2;
        }
        if at >= bytes.len() {
            break;
        }
    }
    let changed = copied > 0 || matches!(text, std::borrow::Cow::Owned(_));
    out.push_str(&text[copied..]);
    changed.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        let mut out = String::new();
        decoded(Box::new(bytes), Encoding::of(bytes)).unwrap().read_to_string(&mut out).unwrap();
        out
    }

    #[test]
    fn every_encoding_gives_the_same_text() {
        let wanted = "{\"a\":\"grüße 😀\"}\n".repeat(3000);
        let le: Vec<u8> = wanted.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = wanted.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [
            wanted.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", wanted.as_bytes()].concat(),
            [b"\xff\xfe", le.as_slice()].concat(),
            [b"\xfe\xff", be.as_slice()].concat(),
            le,
            be,
        ] {
            assert!(text(&bytes) == wanted, "{:?}", Encoding::of(&bytes));
        }
        assert_eq!(text(b"{"), "{");
    }

    #[test]
    fn halves_of_characters_are_repaired() {
        for (json, expected) in [
            (r#"{"a":"x\ud83d"}"#.as_bytes(), Some(r#"{"a":"x\ufffd"}"#)),
            (br#"{"a":"\ude00 \ud83d\ude00 \ud83d\n"}"#, Some(r#"{"a":"\ufffd \ud83d\ude00 \ufffd\n"}"#)),
            (br#"{"a":"\\ud83d"}"#, None),
            (br#"{"a":"\ud83d\ude00"}"#, None),
            (b"{\"a\":\"\xff\"}", Some("{\"a\":\"\u{fffd}\"}")),
            (br"\", None),
            (br"\ud83", None),
        ] {
            assert_eq!(repaired(json).as_deref(), expected, "{}", String::from_utf8_lossy(json));
        }
    }
}
