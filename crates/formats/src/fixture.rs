//! Helpers for the tests of all formats and their fixtures.

use std::path::Path;

use deloop_types::{Body, Outcome, Step};
use serde_json::Value;

use crate::{Format, Report, Source, read};

/// Returns the steps of a fixture and its report.
pub(crate) fn steps(format: &dyn Format, bytes: &[u8], path: &str) -> (Vec<Step>, Report) {
    let mut steps = Vec::new();
    let source = Source { path: Some(Path::new(path)) };
    let report = read(format, bytes, &source, &mut |item| steps.push(item.step));
    (steps, report)
}

/// Returns how the calls of a file ended, with their outputs.
pub(crate) fn results(format: &dyn Format, bytes: &[u8]) -> Vec<(Option<Outcome>, Value)> {
    let result = |step: Step| match step.body {
        Body::Result(result) => Some((result.ended(), result.output)),
        _ => None,
    };
    steps(format, bytes, "a/b.json").0.into_iter().filter_map(result).collect()
}

/// Asserts that these bytes are recognized as this format, however early they are cut, and that other formats' aren't.
pub(crate) fn assert_sniffs(format: &dyn Format, bytes: &[u8]) {
    for head in [bytes, &bytes[..bytes.len() * 9 / 10]] {
        assert_eq!(crate::sniff(head).map(Format::name), Some(format.name()));
    }
    let others: [&[u8]; 6] = [
        b"",
        b"[]",
        b"{\"name\":\"shop\",\"version\":\"1.0.0\",\"dependencies\":{}}",
        b"{\"type\":\"turn\",\"session\":\"a\",\"text\":\"b\"}\n",
        b"[{\"role\":\"user\",\"content\":\"hi\"}]",
        b"{\"messages\":[]}",
    ];
    for other in others {
        assert!(!format.sniff(other), "{}", String::from_utf8_lossy(other));
    }
}

/// Asserts that damaged files are read without a panic: cut short, or with a byte changed, in many places.
pub(crate) fn assert_survives(format: &dyn Format, bytes: &[u8]) {
    for (round, at) in (0..bytes.len()).step_by(bytes.len() / 100 + 1).enumerate() {
        steps(format, &bytes[..at], "a/b.json");
        let mut changed = bytes.to_vec();
        changed[at] = b"\"{}[],0n\\\xff"[round % 10];
        steps(format, &changed, "a/b.json");
        format.sniff(&changed[at..]);
    }
}
