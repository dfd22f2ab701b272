use deloop_types::Outcome;
use serde::{Deserialize, Serialize};

use crate::reading::Effect;
use crate::{Ending, Progress, ToolKind};

/// What is remembered of one call: what it is, how it ended and what that is evidence of. No arguments, no output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// The tool and its arguments, hashed.
    pub signature: u64,
    /// Its ordinal in the history, from 0.
    pub ordinal: u32,
    /// The step it came with.
    pub step: u32,
    /// The ordinal of its turn, from 0.
    pub turn: u32,
    /// Its id, hashed; 0 without one.
    pub id: u32,
    /// The program a shell command runs, or the tool, hashed.
    pub program: u32,
    /// How many changes were made before it; see [`History::changes`](crate::History::changes).
    pub changes: u32,
    /// What came back, without its volatile parts, hashed.
    pub output: u32,
    /// The kind of failure it came back with, hashed; 0 when it did not fail.
    pub failure: u32,
    /// When it was made, in tenths of a second after the history's first call.
    pub(crate) at: u32,
    /// How long it took, in tenths of a second; `u16::MAX` when that is not known.
    pub(crate) took: u16,
    /// How long what came back is, in bytes, without its volatile parts.
    pub length: u16,
    /// How many requests came before it; see [`History::requests`](crate::History::requests).
    pub requests: u16,
    /// Which of the history's tools; see [`History::tool`](crate::History::tool).
    pub tool: u8,
    /// What kind of tool that is.
    pub kind: ToolKind,
    /// What it does when it goes well.
    pub effect: Effect,
    /// Whether it runs tests.
    pub tests: bool,
    /// Whether it is a shell command that works on a file, where a tool of its own would do better.
    pub file_operation: bool,
    /// Whether deloop refused it.
    pub refused: bool,
    /// How it ended, as the agent says; `None` while it has no result, or when the result does not say.
    pub outcome: Option<Outcome>,
    /// How it ended, as far as progress is concerned.
    pub ending: Ending,
    /// What that is evidence of.
    pub progress: Progress,
}

impl CallRecord {
    /// Whether a result came.
    #[must_use]
    pub fn answered(&self) -> bool {
        self.ending != Ending::Open
    }

    /// How long it took, in seconds, where that is known.
    #[must_use]
    pub fn seconds(&self) -> Option<f64> {
        (self.took != u16::MAX).then(|| f64::from(self.took) / 10.0)
    }

    /// Whether it is known to have come back within moments.
    #[must_use]
    pub fn at_once(&self) -> bool {
        self.took < 20
    }

    /// Whether it waits for something, or shows the state of something that runs elsewhere.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.effect == Effect::Waits || self.kind == ToolKind::Poll
    }

    /// Whether it looks for something.
    #[must_use]
    pub fn searches(&self) -> bool {
        self.effect == Effect::Searches || self.kind == ToolKind::Search
    }

    /// Whether two calls came back the same.
    #[must_use]
    pub fn came_back_as(&self, other: &Self) -> bool {
        self.output == other.output && self.ending == other.ending
    }
}

#[cfg(test)]
mod tests {
    use super::CallRecord;

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<CallRecord>() <= 64, "{}", size_of::<CallRecord>());
    }
}
