//! Counting and comparing calls, for the detectors that judge evidence.

use deloop_types::{CameBack, Evidence, Finding};

use super::run::Run;
use crate::reading::Effect;
use crate::{CallRecord, Ending, History, Look, Moment, Progress};

/// Returns the number of turns that made these calls. Parallel calls count once.
pub(crate) fn turns<'a>(records: impl Iterator<Item = &'a CallRecord>) -> u64 {
    let mut turns: Vec<u32> = records.map(|r| r.turn).collect();
    turns.sort_unstable();
    turns.dedup();
    turns.len() as u64
}

/// Returns the share of these calls that brought nothing new, 0 to 1; 0 when there are none.
pub(crate) fn stale_share<'a>(records: impl Iterator<Item = &'a CallRecord>) -> f64 {
    let (mut all, mut stale) = (0_u32, 0_u32);
    for record in records.filter(|r| r.progress != Progress::None) {
        all += 1;
        stale += u32::from(record.progress.nothing_new());
    }
    if all == 0 { 0.0 } else { f64::from(stale) / f64::from(all) }
}

/// Returns whether the outcome of these calls is certain: the agent reported it, or each call returned exactly the same
/// output within moments, and nothing outside can change it. An outcome inferred from words is no reason to block.
pub(crate) fn proven(group: &[&CallRecord]) -> bool {
    let same = |r: &&&CallRecord| group.iter().all(|o| o.output == r.output);
    if group.iter().any(|r| r.look != Look::Stuck) {
        return false;
    }
    group.iter().all(|r| r.outcome.is_some())
        || group.first().is_some_and(|first| same(&first)) && group.iter().all(|r| r.at_once())
}

/// Returns how these calls ended, `last` being the latest; `None` when they succeeded with different outputs.
pub(crate) fn came_back<'a>(
    last: &CallRecord,
    group: impl Iterator<Item = &'a CallRecord>,
) -> Option<CameBack> {
    let mut same = true;
    let mut alike = true;
    let mut endings = true;
    for record in group {
        same &= record.output == last.output;
        alike &= record.output == last.output || record.failure != 0 && record.failure == last.failure;
        endings &= record.ending == last.ending;
    }
    Some(match last.ending {
        Ending::Refused if endings => CameBack::Refused,
        Ending::TimedOut if endings => CameBack::TimedOut,
        Ending::Failed | Ending::Refused | Ending::TimedOut if same => CameBack::SameFailure,
        Ending::Failed | Ending::Refused | Ending::TimedOut if alike => CameBack::SimilarFailure,
        Ending::Failed | Ending::Refused | Ending::TimedOut => CameBack::Failures,
        Ending::Empty => CameBack::Nothing,
        Ending::Open | Ending::Unrecorded => CameBack::Unseen,
        Ending::Brought if !same => return None,
        Ending::Brought | Ending::Running | Ending::CalledOff => CameBack::SameOutput,
    })
}

/// Returns whether anything changed since `first`; `None` when a call may have changed something. Making an edit again
/// isn't progress, but it is a change.
pub(crate) fn changed(history: &History, first: &CallRecord, record: &CallRecord) -> Option<bool> {
    let others = history.recent().iter().filter(|r| {
        r.ordinal > first.ordinal
            && r.signature != record.signature
            && !r.tests
            && matches!(r.ending, Ending::Brought | Ending::Empty)
    });
    let effect = others.map(|r| r.effect).filter(|e| *e >= Effect::Unknown && *e != Effect::Waits).max();
    match effect {
        _ if first.changes != history.changes() => Some(true),
        Some(Effect::Unknown) => None,
        effect => Some(effect.is_some()),
    }
}

/// Returns the number of repetitions that `[tools.NAME] max` allows this call's tool, if it's set.
pub(crate) fn allowed_by_user(moment: &Moment<'_>, record: &CallRecord) -> Option<u64> {
    moment.tools.rule(moment.history.tool(record)).and_then(|rule| rule.max)
}

/// Returns the steps of these calls, given newest first, oldest first.
pub(crate) fn steps(group: &[&CallRecord]) -> Vec<u64> {
    group.iter().rev().map(|r| r.step.into()).collect()
}

/// Returns the steps of the last failed calls of a run that the history still has, oldest first.
pub(crate) fn last_steps(
    moment: &Moment<'_>,
    run: &Run,
    is_of_run: impl Fn(&CallRecord) -> bool,
) -> Vec<u64> {
    let recent = moment.history.recent().iter().rev();
    let of_run = recent.filter(|r| r.ending.in_vain() && u64::from(r.step) >= run.since && is_of_run(r));
    let count = usize::try_from(run.count).unwrap_or(usize::MAX);
    steps(&of_run.take(count).collect::<Vec<_>>())
}

/// Builds the fields that all findings about calls share. `rule` is the parameter that is the threshold. `group` holds the calls, newest first, including `record`.
pub(crate) fn finding(
    (detector, rule): (&str, &str),
    moment: &Moment<'_>,
    record: &CallRecord,
    group: &[&CallRecord],
    pattern: u64,
) -> Finding {
    let history: &History = moment.history;
    let first = group.last().copied().unwrap_or(record);
    let mut calls: Vec<deloop_types::ShortCall> = Vec::new();
    let mut seen: Vec<u64> = Vec::with_capacity(SHOWN);
    for one in group {
        if calls.len() < SHOWN && !seen.contains(&one.signature) {
            seen.push(one.signature);
            calls.extend(Some(history.short(one)).filter(|call| !call.about.is_empty() || calls.is_empty()));
        }
    }
    calls.reverse();
    {
        let mut found = Finding::new(detector, turns(group.iter().copied())).by_rule(rule);
        found.period = 1;
        found.score = 1.0;
        found.since = first.step.into();
        found.tool = Some(history.tool(record).to_owned());
        found.outcome = came_back(record, group.iter().copied());
        found.changed = changed(history, first, record);
        found.calls = calls;
        found.pattern = pattern.into();
        found.counted = steps(group);
        found.evidence = Evidence { at: record.ordinal.into(), ..Evidence::default() };
        found
    }
}

/// Builds the finding about failed or useless calls at `record`, which is about to be another one: a reason to refuse
/// it, if nothing has certainly changed in between.
pub(crate) fn about_to_be(mut found: Finding, record: &CallRecord) -> Finding {
    found.count += 1;
    found.evidence.at = record.ordinal.into();
    found.evidence.pending = true;
    found.evidence.hard = found.changed == Some(false);
    found
}

/// Number of different calls shown in a finding.
const SHOWN: usize = 3;
