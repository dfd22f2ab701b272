use deloop_types::{Finding, Millis, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::{finding, proven};
use crate::history::{is_own_failure, last_failure, same_here, times_here};
use crate::{CallRecord, Detector, Ending, FailureCount, Happening, History, Moment};

/// Finds a failure that earlier sessions of the project, or other subagents of the session, met before.
pub(crate) struct KnownFailureDetector;

/// Parameters of [`KnownFailureDetector`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KnownFailureParams {
    /// Number of sessions or subagents in which the call failed twice the same way, this one included, that makes a
    /// finding.
    at: u64,
    /// The same number from which the first failure is enough, and the second attempt is refused.
    sure: u64,
    /// The same number from which the run ends at the second attempt, if no other call has succeeded.
    hard: u64,
}

impl Default for KnownFailureParams {
    fn default() -> Self {
        Self { at: 4, sure: 6, hard: 8 }
    }
}

/// Severities: a message, a refusal, the end of the run.
const TELL: u64 = 1;
const REFUSE: u64 = 2;
const END: u64 = 4;

impl Detector for KnownFailureDetector {
    type Params = KnownFailureParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "known-failure"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(KnownFailureParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("known-failure.md")
    }

    fn reads_failures(&self) -> bool {
        true
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        if moment.failures.known.is_none_or(crate::KnownFailures::is_empty) {
            return None;
        }
        match &moment.event {
            Happening::Result(result) if is_own_failure(&result.record) => {
                self.failed(params, moment, &result.record)
            }
            Happening::Call(call) => self.about_to_fail(params, moment, &call.record),
            _ => None,
        }
    }
}

impl KnownFailureDetector {
    fn failed(
        &self,
        params: &KnownFailureParams,
        moment: &Moment<'_>,
        record: &CallRecord,
    ) -> Option<Finding> {
        let others = moment.failures.met_by_others(record.signature, record.output);
        let needed = if times_here(moment.history, record) >= 2 { params.at } else { params.sure };
        (others.workers > 0 && others.workers + 1 >= needed).then(|| self.found(moment, record, others, TELL))
    }

    fn about_to_fail(
        &self,
        params: &KnownFailureParams,
        moment: &Moment<'_>,
        record: &CallRecord,
    ) -> Option<Finding> {
        let history: &History = moment.history;
        let last = last_failure(history, record)?;
        let others = moment.failures.met_by_others(last.signature, last.output);
        if others.workers == 0 || others.workers + 1 < params.sure {
            return None;
        }
        let refused = history.recent().iter().filter(|r| r.refused && r.signature == record.signature);
        let refused = refused.filter(|r| r.ordinal > last.ordinal).count() as u64;
        let is_all = others.workers + 1 >= params.hard && !succeeded(history);
        let severity = if is_all { END } else { (REFUSE + refused).min(END) };
        let mut found = self.found(moment, last, others, severity);
        found.evidence.at = record.ordinal.into();
        found.evidence.pending = true;
        found.evidence.hard = found.changed == Some(false) && proven(&[last]);
        found.evidence.hard.then_some(found)
    }

    fn found(
        &self,
        moment: &Moment<'_>,
        record: &CallRecord,
        others: FailureCount,
        severity: u64,
    ) -> Finding {
        let here: Vec<&CallRecord> = same_here(moment.history, record).collect();
        let mut found = finding((self.name(), "at"), moment, record, &here, record.signature);
        found.repeats = Repeats::KnownFailure;
        found.count = others.workers + 1;
        found.evidence.severity = severity;
        found.evidence.fields = vec![
            ("here", here.len().to_string()),
            ("sessions", others.sessions.to_string()),
            ("others", others.workers.to_string()),
            ("since", others.since.map(day).unwrap_or_default()),
        ];
        found
    }
}

/// Returns whether any remembered call of the agent succeeded.
fn succeeded(history: &History) -> bool {
    history.recent().iter().any(|r| matches!(r.ending, Ending::Brought | Ending::Empty))
}

/// Returns the day of a time, in UTC.
fn day(time: Millis) -> String {
    time.to_string().chars().take(10).collect()
}
