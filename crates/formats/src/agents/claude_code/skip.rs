//! What need not be parsed. `toolUseResult` repeats what the message holds and is the larger part of most files,
//! and every third record only reports progress: finding the end of a value is several times faster than parsing it.

use memchr::memmem;

use crate::json::peek;
use crate::json::tolerant::{self, Shaped};

use super::record::ResultDetails;

const RESULT: &[u8] = b",\"toolUseResult\":";

/// What tells that something in a `toolUseResult` is of use. In a string the quotes would be escaped.
const DETAILS: [&[u8]; 4] =
    [b"\"interrupted\":true", b"\"backgroundTaskId\":", b"\"status\":\"", b"\"retrieval_status\":"];

/// How far into a record its type stands at most, when the record is of a version that reports progress.
const HEAD: usize = 1024;

/// Returns whether a line is a report of progress. Inside a string the quotes would be escaped.
pub(super) fn is_progress(line: &[u8]) -> bool {
    let head = line.get(..HEAD).unwrap_or(line);
    memmem::find(head, b"\"type\":\"progress\",\"data\":{")
        .and_then(|at| head.get(..at))
        .is_some_and(|before| memmem::find(before, b"\"message\":").is_none())
}

/// Returns whether a report of progress may hold a subagent's message.
pub(super) fn is_agent_progress(line: &[u8]) -> bool {
    memmem::find(line, b"\"type\":\"agent_progress\"").is_some()
}

/// Cuts the `toolUseResult` out of a user's record: the parts before and after it, and itself.
pub(super) fn split(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (before, rest) = line.split_at_checked(memmem::find(line, RESULT)?)?;
    memmem::find(before, b"\"type\":\"user\"")?;
    let rest = rest.get(RESULT.len()..)?;
    let (result, after) = peek::value(rest)?;
    (!after.is_empty()).then_some((before, after, result))
}

/// What is of use in a `toolUseResult`.
pub(super) fn result_details(result: &[u8]) -> Shaped<'_, ResultDetails<'_>> {
    // What a failed call came back with is a string.
    let is_text = result.trim_ascii_start().starts_with(b"\"");
    if is_text || DETAILS.iter().any(|sign| memmem::find(result, sign).is_some()) {
        tolerant::read(result).unwrap_or_default()
    } else {
        Shaped::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_cut_out() {
        let line = br#"{"type":"user","toolUseResult":{"a":["}",{"b":"\\"}],"interrupted":true},"uuid":"u"}"#;
        let (before, after, result) = split(line).unwrap();
        assert_eq!(before, br#"{"type":"user""#);
        assert_eq!(after, br#","uuid":"u"}"#);
        assert!(result_details(result).object().unwrap().interrupted.is_true());
        assert_eq!(
            split(br#"{"type":"user","toolUseResult":"Error: \"x\"","y":1}"#).unwrap().1,
            br#","y":1}"#
        );
        assert_eq!(split(br#"{"type":"user","toolUseResult":null}"#).unwrap().1, b"}");
        assert!(split(br#"{"type":"user","toolUseResult":{"a":"#).is_none());
        assert!(split(br#"{"type":"assistant","toolUseResult":1}"#).is_none());
    }

    #[test]
    fn progress_is_not_what_a_message_quotes() {
        assert!(is_progress(br#"{"uuid":"u","type":"progress","data":{"type":"hook_progress"}}"#));
        assert!(!is_agent_progress(br#"{"uuid":"u","type":"progress","data":{"type":"hook_progress"}}"#));
        assert!(is_agent_progress(br#"{"type":"progress","data":{"message":{},"type":"agent_progress"}}"#));
        assert!(!is_progress(br#"{"message":{"input":{"type":"progress","data":{}}}}"#));
        assert!(!is_progress(br#"{"text":"\"type\":\"progress\",\"data\":{"}"#));
    }
}
