use deloop_types::{Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::{about_to_be, allowed_by_user, changed, finding, proven, stale_share, turns};
use crate::{CallRecord, Detector, Ending, Happening, Moment, Progress, ToolKind};

/// Finds the same call failing or being refused repeatedly, whatever the error text.
pub(crate) struct RepeatedFailure;

/// Parameters of [`RepeatedFailure`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RepeatedFailureParams {
    /// Number of failures of the same call, with no change in between, that make a finding; 0 turns this rule off.
    at: u64,
    /// The same for calls that wait for something or show its state, which may fail until it is ready.
    polls: u64,
    /// Window for `at` and `polls`, in turns.
    within: u32,
    /// The same for an edit, even if something else changed in between; 0 turns this rule off.
    edits: u64,
    /// Window for `edits`, in turns.
    edits_within: u32,
    /// The same for any call that keeps failing the same way although something changed in between; 0 turns this
    /// rule off.
    despite: u64,
    /// Share of the last `despite_of` calls that must have brought nothing new, 0 to 1.
    despite_share: f64,
    /// Number of calls that `despite_share` looks at.
    despite_of: usize,
    /// Number of failures of the same call, with no known change in between, after which it may be refused even if the
    /// effect of the calls in between isn't known; 0 turns this rule off.
    persists: u64,
}

impl Default for RepeatedFailureParams {
    fn default() -> Self {
        Self {
            at: 3,
            polls: 10,
            within: 12,
            edits: 3,
            edits_within: 24,
            despite: 4,
            despite_share: 0.7,
            despite_of: 8,
            persists: 12,
        }
    }
}

/// Number of failing calls whose failures are counted.
const CALLS: usize = 4;

/// The calls that keep failing. Unlike the history, it remembers all failures.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct FailingCalls(Vec<FailingCall>);

/// A call that keeps failing while no change is known.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct FailingCall {
    signature: u64,
    requests: u8,
    changes: u32,
    /// Number of turns in which it failed, and the last one.
    turns: u64,
    turn: u32,
}

impl FailingCalls {
    /// Adds a failure of `record`, after `known` turns in which it failed before or now.
    fn add(&mut self, record: &CallRecord, changes: u32, known: u64) {
        let before = self.0.iter().position(|c| c.signature == record.signature).map(|at| self.0.remove(at));
        let goes_on = before.filter(|c| c.requests == record.requests && c.changes == changes);
        let turns = goes_on.map_or(known, |c| c.turns + u64::from(c.turn != record.turn));
        let (signature, requests, turn) = (record.signature, record.requests, record.turn);
        if self.0.len() >= CALLS {
            self.0.remove(0);
        }
        self.0.push(FailingCall { signature, requests, changes, turns, turn });
    }

    /// Returns the number of turns in which this call failed, if no change is known since.
    fn turns(&self, record: &CallRecord, changes: u32) -> u64 {
        let same = |c: &&FailingCall| {
            c.signature == record.signature && c.requests == record.requests && c.changes == changes
        };
        self.0.iter().find(same).map_or(0, |c| c.turns)
    }
}

impl Detector for RepeatedFailure {
    type Params = RepeatedFailureParams;
    /// Nothing until a call fails again.
    type Memory = Option<FailingCalls>;

    fn name(&self) -> &'static str {
        "repeated-failure"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(RepeatedFailureParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("repeated-failure.md")
    }

    fn remembers(&self, memory: &Self::Memory) -> bool {
        memory.is_some()
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        let history = moment.history;
        let (record, pending) = match &moment.event {
            Happening::Call(call) => (&call.record, true),
            Happening::Result(result) if result.record.ending.in_vain() => (&result.record, false),
            Happening::Result(result) if result.record.ending.tells() => {
                if let Some(calls) = memory {
                    calls.0.retain(|c| c.signature != result.record.signature);
                }
                return None;
            }
            _ => return None,
        };
        // What moves isn't stuck: the count starts at the last move.
        let mut moved = false;
        let mut still = |r: &CallRecord| !std::mem::replace(&mut moved, r.progress == Progress::Moved);
        let in_vain: Vec<&CallRecord> = history
            .of_this_request()
            .take_while(|r| r.signature != record.signature || r.ending.in_vain() && still(r))
            .filter(|r| r.signature == record.signature && !record.is_less_limited(r))
            .collect();
        let last = *in_vain.first()?;
        let near = |r: &&&CallRecord, within: u32| r.turn.saturating_add(within) > record.turn;
        let mut unchanged: Vec<&CallRecord> =
            in_vain.iter().filter(|r| r.changes == history.changes()).copied().collect();
        // If something may have changed in between, another kind of failure may come of that.
        if unchanged.last().is_some_and(|first| changed(history, first, record) != Some(false)) {
            let kind = last.failure;
            unchanged.retain(|r| r.failure == kind || r.ending == Ending::Refused);
        }
        // Enough of them lately; then all that are remembered count.
        let lately = unchanged.iter().filter(|r| near(r, params.within)).copied();
        let (rule, of_rule) = if record.waits() { ("polls", params.polls) } else { ("at", params.at) };
        let by_user = allowed_by_user(moment, record);
        let at = by_user.unwrap_or(of_rule);
        let stuck = at > 0 && turns(lately) >= at;
        let hard = stuck && proven(&unchanged);
        if !pending && unchanged.len() > 1 {
            let calls = memory.get_or_insert_default();
            calls.add(record, history.changes(), turns(unchanged.iter().copied()));
        }
        let often = params.persists > 0
            && !record.waits()
            && memory.as_ref().map_or(0, |calls| calls.turns(record, history.changes()))
                >= at.max(params.persists);
        if pending {
            // The call would fail once more: a reason to refuse it.
            if !(hard || often && proven(&unchanged)) {
                return None;
            }
            let mut found = about_to_be(self.found(rule, moment, last, &unchanged), record);
            found.threshold = by_user.map(Into::into);
            found.evidence.hard &= hard;
            found.evidence.hard |= often && found.changed != Some(true);
            return Some(found).filter(|found| found.evidence.hard);
        }
        if stuck {
            let mut found = self.found(rule, moment, record, &unchanged);
            found.threshold = by_user.map(Into::into);
            found.evidence.hard =
                hard && (found.changed == Some(false) || often && found.changed != Some(true));
            return Some(found);
        }
        let edits: Vec<&CallRecord> =
            in_vain.iter().filter(|r| near(r, params.edits_within)).copied().collect();
        if params.edits > 0 && record.kind == ToolKind::Write && turns(edits.iter().copied()) >= params.edits
        {
            return Some(self.found("edits", moment, record, &edits));
        }
        let same: Vec<&CallRecord> = in_vain.iter().filter(|r| r.came_back_as(record)).copied().collect();
        let stale = || stale_share(history.recent().iter().rev().take(params.despite_of));
        let despite = params.despite > 0 && !record.waits() && turns(same.iter().copied()) >= params.despite;
        (despite && stale() >= params.despite_share).then(|| self.found("despite", moment, record, &same))
    }
}

impl RepeatedFailure {
    fn found(&self, rule: &str, moment: &Moment<'_>, record: &CallRecord, group: &[&CallRecord]) -> Finding {
        let mut found = finding((self.name(), rule), moment, record, group, record.signature);
        found.repeats = Repeats::Call;
        found
    }
}
