use deloop_types::{CameBack, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::{finding, proven, stale_share, turns};
use crate::reading::Effect;
use crate::{CallRecord, Detector, Happening, History, Moment, Progress, ToolKind};

/// Finds different calls that fail the same way.
pub(crate) struct RepeatedError;

/// Parameters of [`RepeatedError`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RepeatedErrorParams {
    /// Number of similar calls of one tool, failing the same way, that make a finding; 0 turns this rule off.
    at: u64,
    /// The same for calls with at most one word in their arguments, which leaves nothing to vary; 0 turns this
    /// rule off.
    bare: u64,
    /// The same for looks at different places, such as guesses of a path or an address.
    guesses: u64,
    /// Share of words that two calls must have in common to be similar, 0 to 1.
    alike: f64,
    /// Length in bytes above which the output of a failing edit reports on checks that ran after it. Then the edit took
    /// effect, and only the same edit is another attempt at it.
    report: u64,
    /// Share of the last six calls that must have brought nothing new, 0 to 1.
    share: f64,
    /// Number of similar calls of one tool, failing with the same kind of error in other words after changes, that make a
    /// finding; 0 turns this rule off.
    despite: u64,
    /// Share of the calls in between, changes aside, that must have failed or brought nothing new, 0 to 1.
    despite_share: f64,
    /// Number of calls of any kind, failing with exactly the same output and no change in between, that make a finding;
    /// 0 turns this rule off.
    exact: u64,
    /// Share of the last twelve calls that must have brought nothing new, 0 to 1.
    exact_share: f64,
    /// Window, in turns.
    within: u32,
    /// Number of turns in a row in which every call failed with exactly the same output, after which an unattended run may be
    /// stopped, once the agent was nudged; 0 means never.
    hard: u64,
}

impl Default for RepeatedErrorParams {
    fn default() -> Self {
        Self {
            at: 4,
            bare: 3,
            guesses: 6,
            alike: 0.6,
            report: 2000,
            share: 0.5,
            despite: 6,
            despite_share: 0.5,
            exact: 6,
            exact_share: 0.4,
            within: 16,
            hard: 8,
        }
    }
}

/// A call with at most this many words in its arguments leaves nothing to vary.
const BARE: usize = 1;
/// Shorter outputs, in bytes, are too short to compare.
const SAYS_SOMETHING: u16 = 20;

impl Detector for RepeatedError {
    type Params = RepeatedErrorParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "repeated-error"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(RepeatedErrorParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("repeated-error.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let Happening::Result(result) = &moment.event else { return None };
        let (record, history) = (&result.record, moment.history);
        if !record.ending.in_vain() || record.progress == Progress::Moved {
            return None;
        }
        let near = |r: &&CallRecord| r.turn.saturating_add(params.within) > record.turn && r.ending.in_vain();
        // In another state of the tree the same failure is an answer: that is how one bisects.
        let same_state = |r: &&CallRecord| !(r.effect == Effect::Switches && r.progress == Progress::Changed);
        let lately = |n: usize| stale_share(history.recent().iter().rev().take(n));
        let words = history.words(record);
        // Calls with next to nothing in their arguments are one call in other words, and so are questions to a person.
        let bare = record.kind == ToolKind::Talk
            || !record.searches() && words.is_some_and(|words| words.len() <= BARE);
        // Another number of failed tests after a change is progress.
        let counts = record.tests && result.failed_tests().is_some();
        let progressed = |r: &CallRecord| counts && r.output != record.output && r.changes != record.changes;
        let took_effect = record.kind == ToolKind::Write && u64::from(record.length) > params.report;
        let alike = |r: &&CallRecord| {
            r.tool == record.tool
                && !progressed(r)
                && !(took_effect && r.signature != record.signature)
                && r.failure == record.failure
                && (r.signature == record.signature
                    || words
                        .zip(history.words(r))
                        .is_some_and(|(a, b)| a.likeness(b) >= params.alike || bare))
        };
        let of_kind =
            history.of_this_request().take_while(same_state).filter(|r| r.ending.in_vain()).filter(alike);
        let of_kind: Vec<&CallRecord> = of_kind.collect();
        let mut group: Vec<&CallRecord> =
            of_kind.iter().filter(|r| near(r) && record.is_comparable(r)).copied().collect();
        // Each look at another place is a guess, and a wrong one narrows the next.
        let guesses = (record.effect.reads() || record.effect == Effect::Remote)
            && group.iter().any(|r| r.signature != record.signature);
        let (mut rule, at) = match () {
            () if bare && params.bare > 0 => ("bare", params.bare),
            () if guesses => ("guesses", params.guesses),
            () => ("at", params.at),
        };
        let mut enough = at > 0 && turns(group.iter().copied()) >= at && lately(6) >= params.share;
        // After changes, the same kind of failure in other words takes more, and failures that come back but for their numbers: an
        // error that is never seen again was fixed.
        let come_back = || {
            let mut shapes: Vec<u8> = of_kind.iter().map(|r| r.shape).collect();
            shapes.sort_unstable();
            shapes.dedup();
            shapes.len() * 2 <= of_kind.len()
        };
        if !enough && params.despite > 0 && turns(of_kind.iter().copied()) >= params.despite && come_back() {
            let first = of_kind.last().map_or(0, |r| r.ordinal);
            let since = history.recent().iter().filter(|r| r.ordinal > first);
            enough = barren_share(since) >= params.despite_share;
            (rule, group) = ("despite", of_kind);
        }
        if enough {
            let failure = u64::from(record.failure);
            let mut found = finding((self.name(), rule), moment, record, &group, failure);
            found.repeats = Repeats::Variants;
            if group.iter().all(|r| r.signature == record.signature) {
                // The same call may have failed in other ways in between, after the same edits made again.
                (found.repeats, found.changed) = (Repeats::Call, None);
            }
            found.evidence.hard = is_all_there_is(params, history, record);
            return Some(found);
        }
        let exact = |r: &&CallRecord| r.output == record.output && r.changes == history.changes();
        let group: Vec<&CallRecord> = history.of_this_request().filter(near).filter(exact).collect();
        let enough = params.exact > 0
            && record.length >= SAYS_SOMETHING
            && turns(group.iter().copied()) >= params.exact
            && lately(12) >= params.exact_share;
        enough.then(|| {
            let mut found = finding((self.name(), "exact"), moment, record, &group, u64::from(record.output));
            found.repeats = Repeats::Failure;
            found.outcome = Some(CameBack::SameFailure);
            found.evidence.hard = is_all_there_is(params, history, record);
            found
        })
    }
}

/// Returns the share of these calls that failed or brought nothing new, changes aside.
fn barren_share<'a>(records: impl Iterator<Item = &'a CallRecord>) -> f64 {
    let (mut all, mut barren) = (0_u32, 0_u32);
    for record in records.filter(|r| !matches!(r.progress, Progress::None | Progress::Changed)) {
        all += 1;
        barren += u32::from(record.ending.in_vain() || record.progress.nothing_new());
    }
    if all == 0 { 0.0 } else { f64::from(barren) / f64::from(all) }
}

/// Returns whether every call of the last turns failed with exactly the output of this one, by what the agent declares.
fn is_all_there_is(params: &RepeatedErrorParams, history: &History, record: &CallRecord) -> bool {
    let same = |r: &&CallRecord| {
        r.output == record.output && r.changes == history.changes() && r.ending.in_vain() && !r.waits()
    };
    let run: Vec<&CallRecord> = history.of_this_request().take_while(same).collect();
    let says_something = record.length >= SAYS_SOMETHING;
    params.hard > 0 && says_something && turns(run.iter().copied()) >= params.hard && proven(&run)
}
