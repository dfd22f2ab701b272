//! A run: the same thing several times in a row.

use serde::{Deserialize, Serialize};

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
