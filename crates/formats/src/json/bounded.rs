//! Events of agents and lines of a stream: whatever they hold, reading them costs little more than their bytes.
//!
//! One pass over the bytes, without recursion, makes JSON that a parser accepts and that holds no more than
//! [`deloop_types::limits`] allow; only that is parsed. A text that is too long keeps its beginning and its end, a tree
//! that is too large becomes such a text. Half a surrogate pair, broken UTF-8, a number out of range, nesting that is
//! too deep and a byte order mark cost what they stand for, not the event.

use std::fmt::Display;

use deloop_types::{Step, limits};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::truncate::truncate;

/// Reads a line of deloop's own Steps.
///
/// # Errors
/// When it is not a Step, or is cut off.
pub fn read_step(line: &[u8]) -> Result<Step, String> {
    read_with(line, Step::from_slice)
}

/// Reads one JSON value.
///
/// # Errors
/// When it is not one, is cut off, or is of another shape.
pub fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    read_with(bytes, |bytes| serde_json::from_slice(bytes))
}

fn read_with<T, E: Display>(bytes: &[u8], parse: impl Fn(&[u8]) -> Result<T, E>) -> Result<T, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.len() > limits::PLAIN {
        return match truncate(bytes) {
            Some(bytes) => parse(&bytes).map_err(|e| e.to_string()),
            None => Err(whats_wrong(bytes)),
        };
    }
    let wrong = match parse(bytes) {
        Ok(value) => return Ok(value),
        Err(error) => error.to_string(),
    };
    truncate(bytes).and_then(|bytes| parse(&bytes).ok()).ok_or(wrong)
}

/// Cuts long lines of JSON to the limits; a long line that is not JSON stays as it is.
#[must_use]
pub fn bound_lines(lines: Vec<u8>) -> Vec<u8> {
    let is_long = |line: &[u8]| line.len() > limits::PLAIN;
    if !lines.split(|b| *b == b'\n').any(is_long) {
        return lines;
    }
    let mut out = Vec::new();
    for line in lines.split_inclusive(|b| *b == b'\n') {
        match Some(line).filter(|line| is_long(line)).and_then(truncate) {
            Some(short) => {
                out.extend_from_slice(&short);
                out.push(b'\n');
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// Says why bytes are not one JSON value.
fn whats_wrong(bytes: &[u8]) -> String {
    match serde_json::from_slice::<IgnoredAny>(bytes) {
        Err(error) => format!("not JSON: {error}"),
        Ok(_) => "not JSON".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_parsers_refuse_costs_no_more_than_itself() {
        let deep = format!(r#"{{"a":{}1{},"z":2}}"#, "[".repeat(500), "]".repeat(500));
        assert_eq!(read_json::<Value>(deep.as_bytes()).unwrap()["z"], 2);
        for (bytes, expected) in [
            (&br#"{"a":"x\ud83d"}"#[..], json!({"a": "x\u{fffd}"})),
            (b"{\"a\":\"x\xff\"}", json!({"a": "x\u{fffd}"})),
            (b"{\"a\":[1e400,-1e999,NaN,-Infinity,1]}", json!({"a": [null, null, null, null, 1]})),
            (b"\xef\xbb\xbf{\"a\":1}", json!({"a": 1})),
            (b"{\"a\":\"x\ty\"}", json!({"a": "x\ty"})),
        ] {
            assert_eq!(read_json::<Value>(bytes).unwrap(), expected, "{}", String::from_utf8_lossy(bytes));
        }
        let digits = format!(r#"{{"a":{}}}"#, "1".repeat(5000));
        assert_eq!(read_json::<Value>(digits.as_bytes()).unwrap(), json!({"a": null}));
        assert!(read_json::<Value>(br#"{"a":1"#).unwrap_err().contains("EOF"));
    }

    #[test]
    fn hostile_input_stays_linear() {
        for hostile in ["[", "{\"\":", "\"", "\\", "[]", "{}", "[{},", "\"\\\\\"", ",", "1", " ", "[\"\","] {
            deloop_testing::assert_linear(hostile, 2_000_000, |bytes| {
                let text = format!(r#"{{"a":{}"#, hostile.repeat(bytes / hostile.len()));
                drop(read_json::<Value>(text.as_bytes()));
            });
        }
    }

    #[test]
    fn ends_on_every_control_character() {
        for byte in 0..=0x20_u8 {
            assert!(read_json::<Value>(&[b'[', byte, b'1']).is_err());
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
            let _ = read_json::<Value>(&bytes);
            let _ = truncate(&bytes);
        }
    }
}
