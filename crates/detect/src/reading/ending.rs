use std::borrow::Cow;

use deloop_types::{Outcome, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Vocabulary;
use super::failure_kind::{TIMED_OUT, failure_kind};
use super::mask::mask_into;
use crate::fingerprint::half;
use crate::{CallRecord, short_hash};

/// How a call ended, as far as progress is concerned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// No result yet.
    #[default]
    Open,
    /// Succeeded with output.
    Brought,
    /// Succeeded without output, or a search that found nothing.
    Empty,
    /// Failed.
    Failed,
    /// Timed out.
    TimedOut,
    /// Refused by a person, a rule or a hook.
    Refused,
    /// Still running, or waiting for something that is.
    Running,
    /// Cancelled by a person or by deloop.
    CalledOff,
    /// The result isn't recorded.
    Unrecorded,
}

impl Ending {
    /// Returns whether the call failed or was refused.
    #[must_use]
    pub fn in_vain(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Refused)
    }

    /// Returns whether it is evidence about progress at all.
    #[must_use]
    pub fn tells(self) -> bool {
        matches!(self, Self::Brought | Self::Empty) || self.in_vain()
    }
}

/// What a result shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) ending: Ending,
    /// Hash of the output without its volatile parts.
    pub(crate) output: u32,
    /// Length of that output, in bytes.
    pub(crate) length: u32,
    /// Hash of the kind of failure; 0 when it didn't fail.
    pub(crate) failure: u32,
    /// The output without its volatile parts.
    pub(crate) masked: Vec<u8>,
}

/// A result with an unknown ending counts as a failure only if it is at most this long, in bytes.
const SHORT: usize = 600;

/// Reads a result: first what the format declares, then the kind of call, then the words of the output.
pub(crate) fn read_result(
    record: &CallRecord,
    result: &ToolResult,
    text: &str,
    vocabulary: &Vocabulary,
) -> Reading {
    let ending = ending(record, result, text, vocabulary);
    let mut masked = Vec::with_capacity(2048);
    mask_into(text, &mut masked);
    let (output, length) = print(&masked);
    let failure = match ending {
        Ending::Failed | Ending::Refused => failure_kind(text, result.error_type.as_deref(), vocabulary),
        // Whatever its output was until then.
        Ending::TimedOut => TIMED_OUT,
        _ => 0,
    };
    Reading { ending, output, length, failure, masked }
}

/// Returns the output of a result as text; data is written out.
pub(crate) fn output_text(result: &ToolResult) -> Cow<'_, str> {
    match &result.output {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => {
            let mut text = String::new();
            super::write_canonical(other, &mut text);
            Cow::Owned(text)
        }
    }
}

fn ending(record: &CallRecord, result: &ToolResult, text: &str, vocabulary: &Vocabulary) -> Ending {
    let searches = record.searches();
    let nothing = || is_blank(text) || text.len() < SHORT && vocabulary.found_nothing(text);
    // That a file isn't there is what a look-up was asked for.
    let absent = || is_blank(text) || text.len() < SHORT && vocabulary.says_absent(text);
    match result.ended() {
        Some(Outcome::Running) => Ending::Running,
        Some(Outcome::Cancelled) => Ending::CalledOff,
        Some(Outcome::Denied) => Ending::Refused,
        Some(Outcome::Timeout) => Ending::TimedOut,
        // `grep` and similar programs exit with 1 when nothing matches.
        Some(Outcome::Error) if searches && (nothing() || absent()) => Ending::Empty,
        Some(Outcome::Error | Outcome::Invalid) => Ending::Failed,
        Some(Outcome::Ok) | None if result.output.is_null() => Ending::Unrecorded,
        Some(Outcome::Ok) if is_blank(text) || searches && nothing() => Ending::Empty,
        Some(Outcome::Ok) => Ending::Brought,
        Some(_) => Ending::Unrecorded,
        None if is_blank(text) || searches && nothing() => Ending::Empty,
        None if wrapped_exit_code(text).is_some_and(|code| code != 0) => Ending::Failed,
        None if !record.waits() && looks_failed(text, vocabulary) => Ending::Failed,
        None => Ending::Brought,
    }
}

/// Returns the exit code in an output that is data about a command: `{"output": …, "metadata": {"exit_code": 1}}`.
fn wrapped_exit_code(text: &str) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Wrapped {
        metadata: Metadata,
    }
    #[derive(serde::Deserialize)]
    struct Metadata {
        exit_code: i64,
    }
    let may_be = text.starts_with('{') && text.contains("\"metadata\":") && text.contains("\"exit_code\":");
    let wrapped: Wrapped = if may_be { serde_json::from_str(text).ok()? } else { return None };
    Some(wrapped.metadata.exit_code)
}

/// Returns whether an output is empty: no text, or data without content.
pub(crate) fn is_blank(text: &str) -> bool {
    matches!(text.trim(), "" | "[]" | "{}" | "null" | "\"\"")
}

/// Returns whether an output with an unknown ending looks like a failure: short, not data, and with a word for failure.
/// In data, such words are names and values.
fn looks_failed(text: &str, vocabulary: &Vocabulary) -> bool {
    let data = text.trim_start().starts_with(['{', '[']);
    text.len() < SHORT && !data && vocabulary.failure_words().is_match(&text.to_ascii_lowercase())
}

/// Returns the hash and the length of an output without its volatile parts.
fn print(masked: &[u8]) -> (u32, u32) {
    let masked = masked.trim_ascii();
    (half(short_hash(masked)), u32::try_from(masked.len()).unwrap_or(u32::MAX))
}
