use deloop_types::{Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::edit_counts::{EditCounts, EditRule};
use super::test_progress::TestRun;
use crate::reading::PatternOf;
use crate::{Detector, Moment};

/// Finds test files that are changed again and again while no test run passes.
pub(crate) struct TestEditsWithoutGreen;

/// Parameters of [`TestEditsWithoutGreen`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TestEditsWithoutGreenParams {
    /// Number of changes of one test file that make a finding.
    at: u64,
}

impl Default for TestEditsWithoutGreenParams {
    fn default() -> Self {
        Self { at: 3 }
    }
}

impl Detector for TestEditsWithoutGreen {
    type Params = TestEditsWithoutGreenParams;
    type Memory = EditCounts;

    fn name(&self) -> &'static str {
        "test-edits-without-green"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(TestEditsWithoutGreenParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("test-edits-without-green.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, counts: &mut EditCounts) -> Option<Finding> {
        let rule = EditRule {
            detector: self.name(),
            repeats: Repeats::TestFile,
            concerns: |moment, path| moment.tools.vocabulary().is_a(PatternOf::TestFile, path),
            ends: |run| run == TestRun::Passed,
            at: params.at,
            tests: 0,
        };
        counts.look(&rule, moment)
    }
}
