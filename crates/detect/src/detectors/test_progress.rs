//! What a test run shows about progress.

use deloop_types::Outcome;
use serde::{Deserialize, Serialize};

use crate::{Happening, Moment, ResultView};

/// A test run, compared with the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestRun {
    /// All tests passed.
    Passed,
    /// Fewer tests failed than in the run before.
    FewerFailures,
    /// Tests failed, and not fewer than before as far as known.
    NoProgress,
}

/// The number of failures of the last test run, if its output gave one.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct LastTestRun {
    failures: Option<u64>,
}

impl LastTestRun {
    /// Reads the result of a test run; `None` for anything else, and for a run that doesn't say how it ended.
    pub(crate) fn read(&mut self, moment: &Moment<'_>) -> Option<TestRun> {
        let Happening::Result(view) = &moment.event else { return None };
        if !view.record.tests {
            return None;
        }
        if passed(view)? {
            self.failures = Some(0);
            return Some(TestRun::Passed);
        }
        let failures = view.failed_tests().filter(|n| *n > 0);
        let fewer = failures.zip(self.failures).is_some_and(|(now, before)| now < before);
        self.failures = failures;
        Some(if fewer { TestRun::FewerFailures } else { TestRun::NoProgress })
    }
}

/// Returns whether the tests passed. A failed call means no. Otherwise the runner's closing lines decide, because a
/// pipe hides the runner's exit code; without them, the outcome of the call does.
pub(crate) fn passed(result: &ResultView<'_>) -> Option<bool> {
    match result.record.outcome {
        Some(outcome) if outcome.failed() => return Some(false),
        Some(Outcome::Ok) | None => {}
        Some(_) => return None,
    }
    result.test_verdict().or(result.record.outcome.map(|o| o == Outcome::Ok))
}
