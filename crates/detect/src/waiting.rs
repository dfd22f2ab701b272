//! Waiting or stuck: what a call is that comes again, judged once when its result arrives.

use deloop_types::Outcome;
use serde::{Deserialize, Serialize};

use crate::reading::{Effect, ReportedState};
use crate::{CallRecord, Ending, ToolKind};

/// What repeating a call can bring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Look {
    /// Nothing outside can change the outcome: an edit, a test of unchanged files, a call with wrong arguments, a
    /// refused permission, a file that is read again at once.
    #[default]
    Stuck,
    /// Something outside may change it, and there is evidence that the agent waits for that. It is judged by its rate and
    /// its cost, not by its count.
    Waiting,
    /// Something outside may change it, and nothing shows whether the agent waits. It can lead to a message, never to a
    /// refusal.
    Unknown,
}

/// What the agent left running, as far as known: a process that it declared, or a command with `&`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Background {
    /// Nothing.
    #[default]
    None,
    /// Something, with the call of this index, and it has changed nothing since.
    Watched(u32),
    /// Something, and it has gone on working since.
    Left,
}

impl Background {
    /// Returns whether nothing was left running.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Notes that the call of this index changed something.
    pub(crate) fn after_change(self, call: u32) -> Self {
        match self {
            Self::Watched(by) if by != call => Self::Left,
            other => other,
        }
    }
}

/// A call that takes at least this many seconds and returns the same result waits for something.
const BLOCKS: f64 = 5.0;
/// A call that was made again within this time, in tenths of a second, isn't a wait for its outcome.
const AT_ONCE: u32 = 10;
/// A pause shorter than this, in tenths of a second, doesn't show that the agent waits.
const SHORTEST_PAUSE: u32 = 150;
/// How many times longer than the session's usual pause a pause is that shows that the agent waits.
const LONGER: u32 = 4;
/// The usual pause, in tenths of a second, while the session doesn't show one.
const USUAL_PAUSE: u32 = 100;

/// Fewer pauses than this don't show what is usual.
const FEW: usize = 3;

/// Judges `record`, whose result has just been read, after the calls `before` it (newest first). `background` is what
/// the agent left running. `reported` returns the state that the result itself reports; it is given
/// whether the words of the result can say that something passes. It is asked only where that can matter.
pub(crate) fn look<'a>(
    record: &CallRecord,
    before: &(impl Iterator<Item = &'a CallRecord> + Clone),
    background: Background,
    reported: impl FnOnce(bool) -> Option<ReportedState>,
) -> Look {
    let certain = record.ending == Ending::Refused
        || record.outcome == Some(Outcome::Invalid)
        || record.kind == ToolKind::Write
        || record.tests;
    if record.ending == Ending::Running {
        return Look::Waiting;
    }
    if certain || !record.ending.tells() {
        return Look::Stuck;
    }
    let last = before.clone().find(|r| r.signature == record.signature && r.answered());
    let failed = record.ending.in_vain();
    if record.waits() && !failed {
        return Look::Waiting;
    }
    let Some(last) = last else { return Look::Stuck };
    // In the output of a local command, words such as "in progress" can be about anything.
    let is_elsewhere = record.waits() || record.outside || record.effect == Effect::Unknown;
    let repeated = failed || record.came_back_as(last) || last.look == Look::Waiting;
    let reported = (repeated && record.effect != Effect::Checks).then(|| reported(is_elsewhere)).flatten();
    if reported == Some(ReportedState::Passing) {
        return Look::Waiting;
    }
    // What a build or a check returns depends on files that only the agent changes.
    // A process that can't be polled any more doesn't come back.
    let gone = failed && record.kind == ToolKind::Poll;
    let passes_with_time = record.effect < Effect::Changes && record.effect != Effect::Checks && !gone;
    let blocks =
        !failed && is_elsewhere && record.came_back_as(last) && record.seconds().is_some_and(|s| s >= BLOCKS);
    let watches =
        matches!(background, Background::Watched(_)) && looks_here(record) && record.came_back_as(last);
    let previous = before.clone().next();
    let slept = previous.is_some_and(CallRecord::waits);
    let pause = previous.and_then(|previous| idle(record, previous));
    let long = slept || is_long(pause, before.clone(), record);
    let paused = slept || passes_with_time && long;
    let at_once = was_at_once(record, before.clone());
    // A program here that fails again after a pause may merely have failed again.
    let is_wait = slept || paused && (!failed || record.waits() || record.outside);
    match passes_with_time && (blocks || is_wait || watches) {
        true => Look::Waiting,
        // What changes something can be tried again, but only an agent that pauses waits for it.
        false if reported.is_some() && failed && !at_once && (passes_with_time || long) => Look::Unknown,
        false if failed && paused && record.effect != Effect::Checks && !gone => Look::Unknown,
        false if record.waits() => Look::Unknown,
        false if record.outside || !failed && record.kind == ToolKind::Other => Look::Unknown,
        // Nobody knows what another program shows, but who asks it again at once doesn't wait.
        false if !failed && is_unknown(record) && pause.is_some_and(|pause| pause >= SHORTEST_PAUSE) => {
            Look::Unknown
        }
        // What a process in the background writes can be read again.
        false if looks_here(record) && background != Background::None => Look::Unknown,
        false => Look::Stuck,
    }
}

/// Returns whether nothing says what a command does if it succeeds.
fn is_unknown(record: &CallRecord) -> bool {
    record.kind == ToolKind::Run && record.effect == Effect::Unknown
}

/// Returns whether a call only shows or looks for something on this machine.
fn looks_here(record: &CallRecord) -> bool {
    let shows = matches!(record.effect, Effect::Looks | Effect::Searches);
    shows || matches!(record.kind, ToolKind::Read | ToolKind::Search)
}

/// Returns the time between the end of a call and the next one in tenths of a second, if both are known.
fn idle(later: &CallRecord, earlier: &CallRecord) -> Option<u32> {
    let known = later.at != u32::MAX && earlier.at != u32::MAX;
    let took = if earlier.took == u16::MAX { 0 } else { u32::from(earlier.took) };
    known.then(|| later.at.saturating_sub(earlier.at).saturating_sub(took))
}

/// Returns whether the call was made again without waiting, this time or the last time.
fn was_at_once<'a>(record: &CallRecord, before: impl Iterator<Item = &'a CallRecord>) -> bool {
    let mut later = record;
    before.filter(|r| r.signature == record.signature && r.answered()).take(2).any(|earlier| {
        let pause = idle(later, earlier);
        later = earlier;
        pause.is_some_and(|pause| pause < AT_ONCE)
    })
}

/// Returns whether a pause before `record` is much longer than those between other calls of the session.
fn is_long<'a>(
    pause: Option<u32>,
    before: impl Iterator<Item = &'a CallRecord>,
    record: &CallRecord,
) -> bool {
    let Some(long) = pause.filter(|pause| *pause >= SHORTEST_PAUSE) else { return false };
    let mut pauses: Vec<u32> = Vec::with_capacity(crate::WINDOW);
    let mut later: Option<&CallRecord> = None;
    for earlier in before {
        let of_others = later.filter(|r| r.signature != record.signature && r.turn != earlier.turn);
        pauses.extend(of_others.and_then(|r| idle(r, earlier)));
        later = Some(earlier);
    }
    let middle = pauses.len() / 2;
    let usual = match pauses.len() {
        // A slow model pauses before every call, and what is on this machine rarely changes by itself.
        0..FEW if record.effect.reads() => return false,
        0 => USUAL_PAUSE,
        _ => *pauses.select_nth_unstable(middle).1,
    };
    long >= usual.saturating_mul(LONGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(at: u32, signature: u64) -> CallRecord {
        CallRecord {
            signature,
            at,
            took: u16::MAX,
            ordinal: at,
            turn: at,
            kind: ToolKind::Run,
            ending: Ending::Brought,
            effect: Effect::Unknown,
            ..CallRecord::default()
        }
    }

    fn judged(record: &CallRecord, before: &[CallRecord], pending: bool) -> Look {
        look(record, &before.iter().rev(), Background::None, |_| pending.then_some(ReportedState::Passing))
    }

    fn local(record: CallRecord) -> CallRecord {
        CallRecord { effect: Effect::Looks, ..record }
    }

    #[test]
    fn a_pause_counts_against_the_usual_one() {
        let slow = [0, 600, 1200, 1800, 2400].map(|at| local(call(at, u64::from(at / 600 % 4))));
        assert_eq!(judged(&local(call(3000, 1)), &slow, false), Look::Stuck);
        let quick = [(0, 1), (20, 2), (40, 3), (60, 4), (80, 1)].map(|(at, which)| local(call(at, which)));
        assert_eq!(judged(&local(call(680, 1)), &quick, false), Look::Waiting);
        assert_eq!(judged(&local(call(100, 1)), &quick, false), Look::Stuck);
        // A lap of other calls takes long without a pause.
        let lap = [(0, 1), (200, 2), (400, 3), (600, 4)].map(|(at, which)| local(call(at, which)));
        assert_eq!(judged(&local(call(620, 1)), &lap, false), Look::Stuck);
    }

    #[test]
    fn nobody_knows_what_an_unknown_program_shows() {
        let usual = [(0, 5), (150, 6), (300, 7), (450, 8), (600, 1)].map(|(at, which)| call(at, which));
        assert_eq!(judged(&call(750, 1), &usual, false), Look::Unknown);
        assert_eq!(judged(&call(620, 1), &usual, false), Look::Stuck);
    }

    #[test]
    fn a_file_may_be_written_in_the_background() {
        let before = [call(20, 1)];
        let judged = |effect, background| {
            let record = CallRecord { effect, ..call(40, 1) };
            look(&record, &before.iter().rev(), background, |_| None)
        };
        assert_eq!(judged(Effect::Looks, Background::None), Look::Stuck);
        assert_eq!(judged(Effect::Looks, Background::Watched(0)), Look::Waiting);
        assert_eq!(judged(Effect::Looks, Background::Left), Look::Unknown);
        assert_eq!(judged(Effect::Checks, Background::Watched(0)), Look::Stuck);
    }

    #[test]
    fn without_times_only_a_state_shows_a_wait() {
        let unknown = |signature| CallRecord { at: u32::MAX, ..call(1, signature) };
        let before = [unknown(1)];
        assert_eq!(judged(&local(unknown(1)), &before, false), Look::Stuck);
        assert_eq!(judged(&unknown(1), &before, true), Look::Waiting);
    }

    #[test]
    fn a_failure_after_a_pause_or_out_of_reach_is_unknown() {
        let failed = |at| CallRecord { ending: Ending::Failed, ..call(at, 1) };
        assert_eq!(judged(&failed(10_000), &[failed(0)], false), Look::Unknown);
        assert_eq!(judged(&failed(20), &[failed(0)], false), Look::Stuck);
        let out_of_reach = |_| Some(ReportedState::OutOfReach);
        assert_eq!(look(&failed(20), &[failed(0)].iter(), Background::None, out_of_reach), Look::Unknown);
        let build = |at| CallRecord { effect: Effect::Checks, ..failed(at) };
        assert_eq!(look(&build(10_000), &[build(0)].iter(), Background::None, out_of_reach), Look::Stuck);
    }

    #[test]
    fn a_test_a_refusal_and_an_edit_never_wait() {
        let before = [call(0, 1)];
        let late = call(100_000, 1);
        let refused = CallRecord { ending: Ending::Refused, ..late };
        let test = CallRecord { tests: true, ..late };
        let edit = CallRecord { kind: ToolKind::Write, ..late };
        let build = CallRecord { effect: Effect::Checks, ..late };
        let invalid = CallRecord { outcome: Some(Outcome::Invalid), ..late };
        for record in [refused, test, edit, invalid] {
            assert_eq!(judged(&record, &before, true), Look::Stuck, "{record:?}");
        }
        assert_eq!(judged(&build, &before, false), Look::Stuck);
    }
}
