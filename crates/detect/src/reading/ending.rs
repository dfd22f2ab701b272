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
    /// Nothing came back yet.
    #[default]
    Open,
    /// It brought something.
    Brought,
    /// It went well and had nothing to say; a search found nothing.
    Empty,
    /// It failed.
    Failed,
    /// It took too long.
    TimedOut,
    /// A person, a rule or a hook refused it.
    Refused,
    /// It still runs, or waits for what runs.
    Running,
    /// It was called off, by a person or by deloop.
    CalledOff,
    /// What came back is not in the record.
    Unrecorded,
}

impl Ending {
    /// Whether it failed or was refused: the call did not do what it was made for.
    #[must_use]
    pub fn in_vain(self) -> bool {
        matches!(self, Self::Failed | Self::TimedOut | Self::Refused)
    }

    /// Whether it says anything about progress at all.
    #[must_use]
    pub fn tells(self) -> bool {
        matches!(self, Self::Brought | Self::Empty) || self.in_vain()
    }
}

/// What a result says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) ending: Ending,
    /// What came back, without its volatile parts, hashed.
    pub(crate) output: u32,
    /// How long that is, in bytes.
    pub(crate) length: u32,
    /// The kind of failure, hashed; 0 when it is none.
    pub(crate) failure: u32,
}

/// A result that does not say how it ended is taken for a failure only if it is this short, in bytes.
const SHORT: usize = 600;

/// Reads a result: what the format declares comes first, then what kind of call it was, its words last.
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
        // Whatever it had to say until then.
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
        // `grep` and its like exit with 1 when nothing matches.
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

/// Whether an output holds nothing: no text, or data without anything in it.
pub(crate) fn is_blank(text: &str) -> bool {
    matches!(text.trim(), "" | "[]" | "{}" | "null" | "\"\"")
}

/// Whether an output of which nobody said how it ended reads like a failure: short, no data, and with a word of
/// failure in it. Data has such words as names and values.
fn looks_failed(text: &str, vocabulary: &Vocabulary) -> bool {
    let data = text.trim_start().starts_with(['{', '[']);
    text.len() < SHORT && !data && vocabulary.failure_words().is_match(&text.to_ascii_lowercase())
}

/// What came back without its volatile parts, hashed, and how long it is.
fn print(text: &str) -> (u32, u32) {
    let mut masked = Vec::with_capacity(2048);
    mask_into(text, &mut masked);
    let masked = masked.trim_ascii();
    (half(short_hash(masked)), u32::try_from(masked.len()).unwrap_or(u32::MAX))
}
