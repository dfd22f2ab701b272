use deloop_types::{Outcome, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::failure_kind::{TIMED_OUT, failure_kind};
use super::mask::mask_into;
use super::{Effect, Vocabulary};
use crate::fingerprint::half;
use crate::{CallRecord, ToolKind, short_hash};

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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) ending: Ending,
    /// Hash of the output without its volatile parts.
    pub(crate) output: u32,
    /// Length of that output, in bytes.
    pub(crate) length: u32,
    /// Hash of the kind of failure; 0 when it didn't fail.
    pub(crate) failure: u32,
}

/// A result with an unknown ending counts as a failure only if it is at most this long, in bytes.
const SHORT: usize = 600;

/// Reads a result: first what the format declares, then the kind of call, then the words of the output.
pub(crate) fn read_result(record: &CallRecord, result: &ToolResult, vocabulary: &Vocabulary) -> Reading {
    let written = match &result.output {
        Value::String(_) | Value::Null => None,
        other => {
            let mut text = String::new();
            super::write_canonical(other, &mut text);
            Some(text)
        }
    };
    let text = written.as_deref().or_else(|| result.output.as_str()).unwrap_or_default();
    let ending = ending(record, result, text, vocabulary);
    let (output, length) = print(text);
    let failure = match ending {
        Ending::Failed | Ending::Refused => failure_kind(text, result.error_type.as_deref(), vocabulary),
        // Whatever its output was until then.
        Ending::TimedOut => TIMED_OUT,
        _ => 0,
    };
    Reading { ending, output, length, failure }
}

fn ending(record: &CallRecord, result: &ToolResult, text: &str, vocabulary: &Vocabulary) -> Ending {
    let searches = record.effect == Effect::Searches || record.kind == ToolKind::Search;
    let nothing = || is_blank(text) || text.len() < SHORT && vocabulary.found_nothing(text);
    match result.ended() {
        Some(Outcome::Running) => Ending::Running,
        Some(Outcome::Cancelled) => Ending::CalledOff,
        Some(Outcome::Denied) => Ending::Refused,
        Some(Outcome::Timeout) => Ending::TimedOut,
        // `grep` and similar programs exit with 1 when nothing matches.
        Some(Outcome::Error) if searches && nothing() => Ending::Empty,
        Some(Outcome::Error | Outcome::Invalid) => Ending::Failed,
        Some(Outcome::Ok) | None if result.output.is_null() => Ending::Unrecorded,
        Some(Outcome::Ok) if is_blank(text) || searches && nothing() => Ending::Empty,
        Some(Outcome::Ok) => Ending::Brought,
        Some(_) => Ending::Unrecorded,
        None if is_blank(text) || searches && nothing() => Ending::Empty,
        None if !record.waits() && looks_failed(text, vocabulary) => Ending::Failed,
        None => Ending::Brought,
    }
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
fn print(text: &str) -> (u32, u32) {
    let mut masked = Vec::with_capacity(2048);
    mask_into(text, &mut masked);
    let masked = masked.trim_ascii();
    (half(short_hash(masked)), u32::try_from(masked.len()).unwrap_or(u32::MAX))
}
