//! A deserializer for JSON that programs may have cut in the middle of a character.
//!
//! Almost all of it is independent of the type that is read. A general parser is compiled into each of a hundred records,
//! which doubled the time it took to build this crate.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Number;

use crate::json::scan::{DEEPEST, after_nested, after_string};

/// Why some bytes are no JSON value, or not the expected one.
#[derive(Debug)]
pub(super) struct ParseError(Box<str>);

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

impl Error for ParseError {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string().into())
    }
}

#[cold]
fn wrong<T>(message: &str) -> Result<T, ParseError> {
    Err(ParseError(message.into()))
}

/// Reads values from the start of what is left.
pub(super) struct Parser<'de> {
    rest: &'de [u8],
    /// How many objects and lists are open.
    depth: usize,
}

impl<'de> Parser<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    /// Checks that nothing is left.
    pub(super) fn end(&self) -> Result<(), ParseError> {
        if self.rest.trim_ascii_start().is_empty() {
            Ok(())
        } else {
            wrong("something follows the JSON value")
        }
    }

    /// Returns the first byte of what comes next, and leaves it there.
    fn peek(&mut self) -> Result<u8, ParseError> {
        if let Some(byte) = self.rest.first()
            && *byte > b' '
        {
            return Ok(*byte);
        }
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied().map_or_else(|| wrong("the JSON value has no end"), Ok)
    }

    /// Takes a byte that must come next.
    fn take(&mut self, wanted: u8) -> Result<(), ParseError> {
        if self.peek()? != wanted {
            return wrong(&format!("no `{}` where JSON needs one", char::from(wanted)));
        }
        self.rest = &self.rest[1..];
        Ok(())
    }

    /// Takes `true`, `false` or `null`.
    fn word(&mut self, word: &str) -> Result<(), ParseError> {
        match self.rest.strip_prefix(word.as_bytes()) {
            Some(rest) => self.rest = rest,
            None => return wrong("not a JSON value"),
        }
        Ok(())
    }

    /// Takes a string. What is no UTF-8, and half a surrogate pair, becomes U+FFFD.
    fn text(&mut self) -> Result<Cow<'de, str>, ParseError> {
        let inside = &self.rest[1..];
        match memchr::memchr2(b'"', b'\\', inside) {
            None => wrong("a string has no end"),
            Some(length) if inside[length] == b'"' => {
                self.rest = &inside[length + 1..];
                let text = &inside[..length];
                Ok(std::str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed))
            }
            Some(length) => self.escaped_text(length).map(Cow::Owned),
        }
    }

    /// Takes a string with an escape after this many bytes.
    fn escaped_text(&mut self, mut plain: usize) -> Result<String, ParseError> {
        let mut rest = &self.rest[1..];
        let mut text = Vec::with_capacity(2 * plain + 32);
        loop {
            text.extend_from_slice(&rest[..plain]);
            rest = &rest[plain..];
            if rest[0] == b'"' {
                self.rest = &rest[1..];
                return Ok(String::from_utf8(text)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()));
            }
            rest = unescape(rest, &mut text)?;
            plain = match memchr::memchr2(b'"', b'\\', rest) {
                Some(plain) => plain,
                None => return wrong("a string has no end"),
            };
        }
    }

    fn number(&mut self) -> Result<Number, ParseError> {
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
        let length = self.rest.iter().position(|byte| !is_part(byte)).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        serde_json::from_slice(digits).or_else(|_| wrong("not a JSON value"))
    }

    /// Takes a value of any kind, without looking at what is in it.
    fn skip(&mut self) -> Result<(), ParseError> {
        match self.peek()? {
            b'"' => {
                // What has no end leaves nothing, so that whatever must follow is missing.
                self.rest = after_string(&self.rest[1..]);
                Ok(())
            }
            b'{' | b'[' => match after_nested(self.rest, 0) {
                Some(rest) => {
                    self.rest = rest;
                    Ok(())
                }
                None => wrong("the JSON value has no end"),
            },
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number().map(drop),
        }
    }

    /// Takes what opens an object or a list.
    fn open(&mut self) -> Result<(), ParseError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return wrong(&format!("nested more than {DEEPEST} levels deep"));
        }
        self.rest = &self.rest[1..];
        Ok(())
    }

    /// Takes what stands before the next element, or closes the object or list; returns whether there is an element.
    fn next(&mut self, close: u8, is_first: &mut bool) -> Result<bool, ParseError> {
        let byte = self.peek()?;
        if byte == close {
            self.rest = &self.rest[1..];
            self.depth -= 1;
            return Ok(false);
        }
        if std::mem::take(is_first) {
            return Ok(true);
        }
        self.take(b',')?;
        Ok(true)
    }

    /// Takes a key and the colon behind it.
    fn key(&mut self) -> Result<Cow<'de, str>, ParseError> {
        if self.peek()? != b'"' {
            return wrong("a key that is no string");
        }
        let key = self.text()?;
        self.take(b':').map(|()| key)
    }
}

/// Writes what an escape means, and returns what follows it. `rest` begins with a backslash.
fn unescape<'a>(rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ParseError> {
    let (plain, length) = match rest.get(1) {
        Some(b'n') => (b'\n', 2),
        Some(byte @ (b'"' | b'\\' | b'/')) => (*byte, 2),
        Some(b't') => (b'\t', 2),
        Some(b'r') => (b'\r', 2),
        Some(b'b') => (8, 2),
        Some(b'f') => (12, 2),
        Some(b'u') => return unicode(rest, text),
        _ => return wrong("an escape that JSON doesn't have"),
    };
    text.push(plain);
    Ok(&rest[length..])
}

/// Writes the character of `\u1234`, or of two of them if they are a pair.
fn unicode<'a>(rest: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], ParseError> {
    let Some(first) = unit(rest) else { return wrong("an escape without its digits") };
    let second = unit(&rest[6..]).filter(|_| (0xd800..0xdc00).contains(&first));
    let pair = char::decode_utf16([first].into_iter().chain(second)).collect::<Vec<_>>();
    // A half of a pair leaves the other unit where it is.
    let is_pair = pair.len() == 1 && second.is_some();
    let character = pair[0].as_ref().map_or(char::REPLACEMENT_CHARACTER, |character| *character);
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(&rest[if is_pair { 12 } else { 6 }..])
}

/// Returns the number in `\u1234`.
fn unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then(|| std::str::from_utf8(digits).ok())??;
    u16::from_str_radix(digits, 16).ok()
}

impl<'de> Deserializer<'de> for &mut Parser<'de> {
    type Error = ParseError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParseError> {
        match self.peek()? {
            b'"' => match self.text()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            b'{' => {
                self.open()?;
                visitor.visit_map(Elements { parser: self, is_first: true })
            }
            b'[' => {
                self.open()?;
                visitor.visit_seq(Elements { parser: self, is_first: true })
            }
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            _ => {
                let number = self.number()?;
                match (number.as_u64(), number.as_i64()) {
                    (Some(number), _) => visitor.visit_u64(number),
                    (None, Some(number)) => visitor.visit_i64(number),
                    (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
                }
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParseError> {
        if self.peek()? == b'n' {
            return self.word("null").and_then(|()| visitor.visit_none());
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ParseError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ParseError> {
        self.skip().and_then(|()| visitor.visit_unit())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// What is in an object or a list, to its end.
struct Elements<'a, 'de> {
    parser: &'a mut Parser<'de>,
    is_first: bool,
}

impl<'de> MapAccess<'de> for Elements<'_, 'de> {
    type Error = ParseError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ParseError> {
        if !self.parser.next(b'}', &mut self.is_first)? {
            return Ok(None);
        }
        match self.parser.key()? {
            Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)),
            Cow::Owned(key) => seed.deserialize(StringDeserializer::new(key)),
        }
        .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ParseError> {
        seed.deserialize(&mut *self.parser)
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = ParseError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ParseError> {
        if self.parser.next(b']', &mut self.is_first)? {
            seed.deserialize(&mut *self.parser).map(Some)
        } else {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;
    use crate::json::any_json::any_json;

    fn parsed(bytes: &[u8]) -> Result<Value, String> {
        let mut parser = Parser::new(bytes);
        let value = Value::deserialize(&mut parser).map_err(|error| error.to_string())?;
        parser.end().map_err(|error| error.to_string())?;
        Ok(value)
    }

    #[test]
    fn halves_of_characters_are_replaced() {
        for (json, text) in [
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""\ud83d\u0041""#, "\u{fffd}A"),
            (r#""\ude00\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\"\\\/\b\f\n\r\t\u00e9""#, "\"\\/\u{8}\u{c}\n\r\t\u{e9}"),
        ] {
            assert_eq!(parsed(json.as_bytes()), Ok(Value::from(text)), "{json}");
        }
        assert_eq!(parsed(b"\"a\xf0\x9f\\n\""), Ok(Value::from("a\u{fffd}\n")));
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        for json in [
            "",
            "nul",
            "tru",
            "{",
            "[",
            "[1",
            "[1,",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1 \"b\":2}",
            "\"a",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u+123\"",
            "01",
            "1.",
            "-",
            "+1",
            "1 2",
            "]",
            "\"a\" x",
        ] {
            assert!(parsed(json.as_bytes()).is_err(), "{json}");
        }
    }

    proptest! {
        /// What serde_json reads is read the same, and cut off it is an error.
        #[test]
        fn reads_as_serde_json_does(json in any_json()) {
            let text = json.to_string();
            prop_assert_eq!(parsed(text.as_bytes()), serde_json::from_str(&text).map_err(|error| error.to_string()));
            let pretty = serde_json::to_string_pretty(&json).unwrap();
            prop_assert_eq!(parsed(pretty.as_bytes()), Ok(json.clone()));
            if json.is_array() || json.is_object() || json.is_string() {
                prop_assert!(parsed(&text.as_bytes()[..text.len() - 1]).is_err());
            }
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = parsed(&bytes);
        }
    }
}
