//! What a file or a line holds: one JSON value, or several after each other, well-formed or not.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::Sink;
use crate::json::field::Field;
use crate::json::repair::repair;

/// All of a file that holds one value. What JSON parsers refuse is repaired into `room` first; what cannot be repaired,
/// lacks its end, or has something after it, is reported.
pub(crate) fn one<'a>(bytes: &'a [u8], room: &'a mut Vec<u8>, out: &mut Sink<'_>) -> Field<'a> {
    let bytes = without_mark(bytes);
    let error = match serde_json::from_slice(bytes) {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    let repaired = repair(bytes);
    let more = bytes.get(repaired.length..).is_some_and(|rest| !rest.trim_ascii().is_empty());
    *room = repaired.bytes;
    let value = serde_json::from_slice(room).ok();
    if repaired.cut || more || value.is_none() {
        out.unreadable(error);
    }
    value
}

/// Hands on each of the values of a line, or of a file that may hold several after each other.
pub(crate) fn each(bytes: &[u8], out: &mut Sink<'_>, mut take: impl FnMut(&RawValue, &mut Sink<'_>)) {
    let mut rest = without_mark(bytes).trim_ascii();
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        let error = loop {
            match values.next() {
                Some(Ok(value)) => take(value, out),
                Some(Err(error)) => break error,
                None => return,
            }
        };
        let at = values.byte_offset();
        rest = rest.get(at..).unwrap_or_default().trim_ascii_start();
        let repaired = repair(rest);
        let value = serde_json::from_slice::<&RawValue>(&repaired.bytes);
        if repaired.cut || value.is_err() {
            out.unreadable(error);
        }
        if let Ok(value) = value {
            take(value, out);
        }
        rest = rest.get(repaired.length.max(1)..).unwrap_or_default().trim_ascii_start();
    }
}

/// The first value of a file, as far as its first bytes hold it.
pub(crate) fn head(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(&repair(without_mark(bytes)).bytes).ok()
}

/// Whether the first bytes of a file hold one value a line: a whole one, and on the next line the start of another.
pub(crate) fn is_lines(bytes: &[u8]) -> bool {
    let bytes = without_mark(bytes);
    let rest = bytes.get(repair(bytes).length..).unwrap_or_default();
    let next = rest.trim_ascii_start();
    let gap = &rest[..rest.len() - next.len()];
    gap.contains(&b'\n') && next.starts_with(b"{") | next.starts_with(b"[")
}

fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_after_each_other() {
        let mut report = (Vec::new(), 0);
        let mut ignore = |_| {};
        let mut sink = Sink::new(&mut ignore);
        each(
            b"\xef\xbb\xbf{\"a\":1}\n[2]\n{\"b\":\"\\user\"}\nnonsense\n{\"c\":3}\n{\"d\":",
            &mut sink,
            |value, _| {
                report.0.push(value.get().to_owned());
            },
        );
        report.1 = sink.report.unreadable;
        assert_eq!(report.0, ["{\"a\":1}", "[2]", "{\"b\":\"\\\\user\"}", "{}"]);
        assert_eq!(report.1, 2);
    }

    #[test]
    fn lines_are_told_from_documents() {
        assert!(is_lines(b"{\"a\":1}\n{\"a\":"));
        assert!(is_lines(b"[1]\r\n[2]"));
        assert!(!is_lines(b"{\"a\":1}\n"));
        assert!(!is_lines(b"{\"a\":\n{\"b\":1}"));
        assert!(!is_lines(b"{}{}"));
    }
}
