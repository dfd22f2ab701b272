//! A run: the same thing several times in a row.

use deloop_types::Millis;
use serde::{Deserialize, Serialize};

use crate::Streak;

/// The length of the current run and where it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// What repeats.
    pub(crate) of: u64,
    /// Number of occurrences, including the first.
    pub(crate) count: u64,
    /// The step of the first occurrence.
    pub(crate) since: u64,
}

impl Run {
    /// Adds an occurrence of `of` at this step: extends the run or starts a new one.
    pub(crate) fn extend(&mut self, of: u64, step: u64) {
        if self.count > 0 && self.of == of {
            self.count += 1;
        } else {
            *self = Self { of, count: 1, since: step };
        }
    }

    /// Ends the run.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }
}

/// A run, and when the agent last got a message about one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WarnedRun {
    pub(crate) run: Run,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warned: Option<Millis>,
}

impl WarnedRun {
    /// Returns the current streak of a detector that finds a run from `at` occurrences.
    pub(crate) fn streak(self, at: u64) -> Streak {
        Streak { count: self.run.count, at, warned: self.warned }
    }
}
