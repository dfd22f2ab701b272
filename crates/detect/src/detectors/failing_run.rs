use deloop_types::{Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::{finding, proven, turns};
use crate::{CallRecord, Detector, Happening, Look, Moment, Progress, short_hash};

/// Finds a run in which every call fails, whatever the calls and the failures.
pub(crate) struct FailingRun;

/// Parameters of [`FailingRun`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FailingRunParams {
    /// Number of failed or refused calls in a row that make a finding.
    at: u64,
    /// Minimum number of turns they must span.
    turns: u64,
    /// Number of such calls in a row after which an unattended run may be stopped, once the agent was nudged.
    hard: u64,
    /// Minimum number of turns those must span.
    hard_turns: u64,
}

impl Default for FailingRunParams {
    fn default() -> Self {
        Self { at: 10, turns: 8, hard: 20, hard_turns: 10 }
    }
}

impl Detector for FailingRun {
    type Params = FailingRunParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "failing-run"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(FailingRunParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("failing-run.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let Happening::Result(result) = &moment.event else { return None };
        let fails = |r: &CallRecord| r.ending.in_vain() && r.progress != Progress::Moved;
        // A look at something that isn't ready yet is no failure, so the run ends there.
        let run = moment.history.recent().iter().rev().take_while(|r| {
            r.requests == result.record.requests && r.look != Look::Waiting && (!r.ending.tells() || fails(r))
        });
        let run = run.filter(|r| r.ending.tells());
        let run: Vec<&CallRecord> = run.collect();
        let (count, turns) = (run.len() as u64, turns(run.iter().copied()));
        (count >= params.at && turns >= params.turns).then(|| {
            let mut found =
                finding((self.name(), "at"), moment, &result.record, &run, short_hash(b"failing-run"));
            found.repeats = Repeats::Failure;
            found.count = count;
            found.evidence.hard = count >= params.hard && turns >= params.hard_turns && proven(&run);
            found
        })
    }
}
