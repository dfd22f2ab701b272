use deloop_types::{Finding, Origin, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::{allowed_by_user, finding};
use crate::reading::requested_times;
use crate::{CallRecord, Detector, Happening, Moment, short_hash};

/// Finds a long stretch in which hardly anything new comes and nothing changes, whatever the calls.
pub(crate) struct StaleRun;

/// Parameters of [`StaleRun`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StaleRunParams {
    /// Number of calls without anything new that make a finding.
    at: u64,
    /// Minimum number of turns they must span.
    turns: u64,
    /// Number of such calls after which an unattended run may be stopped, once the agent was nudged.
    hard: u64,
    /// Minimum number of turns those must span.
    hard_turns: u64,
    /// The number that replaces `at` and `hard` if an automatic message asks for the same again and again; 0 turns this
    /// rule off.
    prompted: u64,
}

impl Default for StaleRunParams {
    fn default() -> Self {
        Self { at: 22, turns: 11, hard: 44, hard_turns: 22, prompted: 1000 }
    }
}

impl Detector for StaleRun {
    type Params = StaleRunParams;
    /// Number of repetitions that a person asked for.
    type Memory = u64;

    fn name(&self) -> &'static str {
        "stale-run"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(StaleRunParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("stale-run.md")
    }

    fn remembers(&self, memory: &Self::Memory) -> bool {
        *memory > 0
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, times: &mut u64) -> Option<Finding> {
        let record = match &moment.event {
            Happening::User(user) if user.origin == Origin::Human => {
                *times = requested_times(&user.text);
                return None;
            }
            Happening::Result(result) => &result.record,
            _ => return None,
        };
        let history = moment.history;
        let stretch = history.stretch();
        let [calls, turns] = [stretch.calls, stretch.turns].map(u64::from);
        let allowed = allowed_by_user(moment, record).unwrap_or(0).max(*times);
        let reached = |at: u64, least: u64| calls >= at.saturating_add(allowed) && turns >= least;
        let waited = params.prompted > 0 && calls >= params.prompted.saturating_add(allowed);
        let stale = stretch.prompts == 0 && reached(params.at, params.turns);
        if !waited && !stale {
            return None;
        }
        let since = |r: &&CallRecord| r.step >= stretch.since && (waited || r.progress.nothing_new());
        let group: Vec<&CallRecord> = history.of_this_request().filter(since).collect();
        let rule = if stale { "at" } else { "prompted" };
        let pattern = short_hash(b"stale-run") ^ u64::from(history.requests());
        let mut found = finding((self.name(), rule), moment, record, &group, pattern);
        (found.repeats, found.outcome) = (Repeats::Everything, None);
        found.count = calls;
        found.since = stretch.since.into();
        found.evidence.hard = !stretch.inferred && (waited || reached(params.hard, params.hard_turns));
        Some(found)
    }
}
