//! A run: the same thing, in a row.

use serde::{Deserialize, Serialize};

/// How long the current run is and where it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// What is repeated.
    pub(crate) of: u64,
    /// How often, the first included.
    pub(crate) count: u64,
    /// The step of the first.
    pub(crate) since: u64,
}

impl Run {
    /// One more of `of`, at this step: goes on with the run or starts a new one.
    pub(crate) fn extend(&mut self, of: u64, step: u64) {
        if self.count > 0 && self.of == of {
            self.count += 1;
        } else {
            *self = Self { of, count: 1, since: step };
        }
    }

    /// The run is over.
    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }
}
