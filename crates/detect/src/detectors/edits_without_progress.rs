use deloop_types::{Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edit_counts::{EditCounts, EditRule};
use super::test_progress::TestRun;
use crate::{Detector, Moment};

/// Finds files that are edited again and again without test progress in between.
pub(crate) struct EditsWithoutProgress;

/// Parameters of [`EditsWithoutProgress`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EditsWithoutProgressParams {
    /// Number of edits of one file that make a finding.
    at: u64,
    /// Minimum number of test runs without progress since the first of these edits.
    tests: u64,
}

impl Default for EditsWithoutProgressParams {
    fn default() -> Self {
        Self { at: 3, tests: 0 }
    }
}

impl Detector for EditsWithoutProgress {
    type Params = EditsWithoutProgressParams;
    type Memory = EditCounts;

    fn name(&self) -> &'static str {
        "edits-without-progress"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(EditsWithoutProgressParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("edits-without-progress.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, counts: &mut EditCounts) -> Option<Finding> {
        let rule = EditRule {
            detector: self.name(),
            repeats: Repeats::File,
            concerns: |_, _| true,
            ends: |run| run != TestRun::NoProgress,
            at: params.at,
            tests: params.tests,
        };
        counts.look(&rule, moment)
    }
}
