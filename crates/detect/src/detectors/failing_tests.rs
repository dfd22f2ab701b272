use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::last_steps;
use super::run::Run;
use super::test_progress::passed;
use crate::{Detector, Happening, Moment};

/// Finds test runs that fail in a row.
pub(crate) struct FailingTests;

/// Parameters of [`FailingTests`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FailingTestsParams {
    /// Number of failing test runs in a row that make a finding.
    at: u64,
}

impl Default for FailingTestsParams {
    fn default() -> Self {
        Self { at: 3 }
    }
}

impl Detector for FailingTests {
    type Params = FailingTestsParams;
    type Memory = Run;

    fn name(&self) -> &'static str {
        "failing-tests"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(FailingTestsParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("failing-tests.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, run: &mut Run) -> Option<Finding> {
        let Happening::Result(result) = &moment.event else { return None };
        if !result.record.tests {
            return None;
        }
        match passed(result)? {
            true => {
                run.end();
                None
            }
            false => {
                run.extend(0, result.record.step.into());
                (run.count >= params.at).then(|| {
                    let mut found = Finding::new(self.name(), run.count).by_rule("at");
                    found.period = 1;
                    found.score = 1.0;
                    found.since = run.since;
                    found.tool = Some(moment.history.tool(&result.record).to_owned());
                    found.repeats = Repeats::Tests;
                    found.counted = last_steps(moment, run, |r| r.tests);
                    found.evidence = Evidence { at: result.record.ordinal.into(), ..Evidence::default() };
                    found
                })
            }
        }
    }
}
