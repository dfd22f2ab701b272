use deloop_types::Outcome;
use serde::{Deserialize, Serialize};

use crate::reading::Effect;
use crate::{Ending, Progress, ToolKind};

/// The record of one call: what it is, how it ended and its evidence. Contains no arguments and no output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "CallRow", into = "CallRow")]
pub struct CallRecord {
    /// Hash of the tool and its arguments.
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
    /// Number of requests before it; see [`History::requests`](crate::History::requests).
    pub requests: u16,
    /// The index of its tool; see [`History::tool`](crate::History::tool).
    pub tool: u8,
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
    /// How it ended, as reported by the agent; `None` without a result, or when the result doesn't say.
    pub outcome: Option<Outcome>,
    /// How it ended, as far as progress is concerned.
    pub ending: Ending,
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
    u8,
    (ToolKind, Effect),
    [bool; 3],
    (Option<Outcome>, Ending, Progress),
);

impl From<CallRecord> for CallRow {
    fn from(r: CallRecord) -> Self {
        Self(
            r.signature,
            [r.ordinal, r.step, r.turn, r.id, r.program, r.changes, r.output, r.failure, r.at],
            [r.took, r.length, r.requests],
            r.tool,
            (r.kind, r.effect),
            [r.tests, r.file_operation, r.refused],
            (r.outcome, r.ending, r.progress),
        )
    }
}

impl From<CallRow> for CallRecord {
    fn from(row: CallRow) -> Self {
        let CallRow(signature, numbers, [took, length, requests], tool, (kind, effect), flags, end) = row;
        let [ordinal, step, turn, id, program, changes, output, failure, at] = numbers;
        let ([tests, file_operation, refused], (outcome, ending, progress)) = (flags, end);
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
            requests,
            tool,
            kind,
            effect,
            tests,
            file_operation,
            refused,
            outcome,
            ending,
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
        assert!(text.starts_with("[18446744073709551615,[1,0,") && text.len() < 130, "{text}");
        assert_eq!(serde_json::from_str::<CallRecord>(&text).unwrap(), record);
    }

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<CallRecord>() <= 64, "{}", size_of::<CallRecord>());
    }
}
