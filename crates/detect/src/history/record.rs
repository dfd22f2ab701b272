use deloop_types::Outcome;
use serde::{Deserialize, Serialize};

use crate::reading::Effect;
use crate::{Ending, Look, Progress, ToolKind};

/// The record of one call: what it is, how it ended and its evidence. Contains no arguments and no output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "CallRow", into = "CallRow")]
pub struct CallRecord {
    /// Hash of the tool and its arguments, without those that describe or limit the call.
    pub signature: u64,
    /// Its index in the history, from 0.
    pub ordinal: u32,
    /// The step that contained it.
    pub step: u32,
    /// The index of its turn, from 0.
    pub turn: u32,
    /// Hash of its id; 0 without one.
    pub id: u32,
    /// Hash of the program that a shell command runs, or of the tool.
    pub program: u32,
    /// Number of changes before it; see [`History::changes`](crate::History::changes).
    pub changes: u32,
    /// Hash of the result without its volatile parts.
    pub output: u32,
    /// Hash of the kind of failure; 0 when it didn't fail.
    pub failure: u32,
    /// Time of the call, in tenths of a second after the history's first call.
    pub(crate) at: u32,
    /// Duration, in tenths of a second; `u16::MAX` when unknown.
    pub(crate) took: u16,
    /// Length of the result without its volatile parts, in bytes.
    pub length: u16,
    /// Hash of the result without its numbers, if the call was made before; else 0.
    pub(crate) shape: u8,
    /// Hash of the tool and all of its arguments, also those that aren't part of `signature`.
    pub(crate) exact: u16,
    /// Number of requests before it, modulo 256; see [`History::requests`](crate::History::requests).
    pub requests: u8,
    /// The index of its tool; see [`History::tool`](crate::History::tool).
    pub tool: u8,
    /// Hash of the arguments that limit it, such as a time limit; 0 without any.
    pub(crate) limits: u8,
    /// The kind of tool.
    pub kind: ToolKind,
    /// Its effect when it succeeds.
    pub effect: Effect,
    /// Whether it runs tests.
    pub tests: bool,
    /// Whether it is a shell command that works on a file, where a dedicated tool would do better.
    pub file_operation: bool,
    /// Whether deloop refused it.
    pub refused: bool,
    /// Whether it shows something that isn't on this machine, or nothing says where that is.
    pub outside: bool,
    /// How it ended, as reported by the agent; `None` without a result, or when the result doesn't say.
    pub outcome: Option<Outcome>,
    /// How it ended, as far as progress is concerned.
    pub ending: Ending,
    /// What repeating it can bring.
    pub look: Look,
    /// Its evidence.
    pub progress: Progress,
}

impl CallRecord {
    /// Returns whether it has a result.
    #[must_use]
    pub fn answered(&self) -> bool {
        self.ending != Ending::Open
    }

    /// Returns its duration in seconds, if known.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        (self.took != u16::MAX).then(|| f64::from(self.took) / 10.0)
    }

    /// Returns whether it is known to have returned within moments.
    #[must_use]
    pub fn at_once(&self) -> bool {
        self.took < 20
    }

    /// Returns whether it waits for something, or shows the status of something that runs elsewhere.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.effect == Effect::Waits || self.kind == ToolKind::Poll
    }

    /// Returns whether it is a search.
    #[must_use]
    pub fn searches(&self) -> bool {
        self.effect == Effect::Searches || self.kind == ToolKind::Search
    }

    /// Returns whether the same call ran into a limit before that it no longer has.
    #[must_use]
    pub(crate) fn is_less_limited(&self, earlier: &Self) -> bool {
        self.limits != earlier.limits && matches!(earlier.ending, Ending::TimedOut | Ending::Refused)
    }

    /// Returns whether the failure of an earlier call can be the same as this one's. If the same call was made again after a
    /// change, that takes the same text: the change may have moved the failure to another place.
    #[must_use]
    pub fn is_comparable(&self, earlier: &Self) -> bool {
        self.signature != earlier.signature
            || self.changes == earlier.changes
            || self.output == earlier.output
    }

    /// Returns whether two calls had the same result.
    #[must_use]
    pub fn came_back_as(&self, other: &Self) -> bool {
        self.output == other.output && self.ending == other.ending
    }
}

/// A record as it is stored: without the names of its fields, which would be two thirds of a session's state.
#[derive(Serialize, Deserialize)]
struct CallRow(
    u64,
    [u32; 9],
    [u16; 3],
    [u8; 4],
    (ToolKind, Effect),
    [bool; 4],
    (Option<Outcome>, Ending, Look, Progress),
);

impl From<CallRecord> for CallRow {
    fn from(r: CallRecord) -> Self {
        Self(
            r.signature,
            [r.ordinal, r.step, r.turn, r.id, r.program, r.changes, r.output, r.failure, r.at],
            [r.took, r.length, r.exact],
            [r.tool, r.limits, r.shape, r.requests],
            (r.kind, r.effect),
            [r.tests, r.file_operation, r.refused, r.outside],
            (r.outcome, r.ending, r.look, r.progress),
        )
    }
}

impl From<CallRow> for CallRecord {
    fn from(row: CallRow) -> Self {
        let CallRow(
            signature,
            numbers,
            [took, length, exact],
            [tool, limits, shape, requests],
            (kind, effect),
            flags,
            end,
        ) = row;
        let [ordinal, step, turn, id, program, changes, output, failure, at] = numbers;
        let ([tests, file_operation, refused, outside], (outcome, ending, look, progress)) = (flags, end);
        Self {
            signature,
            ordinal,
            step,
            turn,
            id,
            program,
            changes,
            output,
            failure,
            at,
            took,
            length,
            shape,
            exact,
            requests,
            tool,
            limits,
            kind,
            effect,
            tests,
            file_operation,
            refused,
            outside,
            outcome,
            ending,
            look,
            progress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_stored_as_a_row() {
        let record = CallRecord {
            signature: u64::MAX,
            ordinal: 1,
            took: 2,
            length: 3,
            tests: true,
            outcome: Some(Outcome::Ok),
            ending: Ending::Brought,
            ..CallRecord::default()
        };
        let text = serde_json::to_string(&record).unwrap();
        assert!(text.starts_with("[18446744073709551615,[1,0,") && text.len() < 150, "{text}");
        assert_eq!(serde_json::from_str::<CallRecord>(&text).unwrap(), record);
    }

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<CallRecord>() <= 64, "{}", size_of::<CallRecord>());
    }
}
