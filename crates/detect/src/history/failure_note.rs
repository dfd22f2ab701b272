use deloop_types::{Body, Millis, Outcome, Step};

use super::FailureWorker;
use crate::{CallRecord, Ending, FailureView, History, Look, ToolKind};

/// What a step means for the failures that a project remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureNote {
    /// A call failed the same way twice, with nothing changed in between.
    Failed {
        /// Hash of the tool and its arguments.
        call: u64,
        /// Hash of the result without its volatile parts.
        output: u32,
        /// Who met it.
        worker: FailureWorker,
        /// When.
        ts: Option<Millis>,
    },
    /// A call that is known to fail succeeded.
    Succeeded {
        /// Hash of the tool and its arguments.
        call: u64,
    },
    /// A person intervened in a session, so what its agents met is forgotten.
    Cleared {
        /// An agent of the session.
        worker: FailureWorker,
        /// Hash of the call that last failed there, if any.
        call: Option<u64>,
    },
}

impl FailureNote {
    /// Returns what a result means: a failure for the second time, or the success of a call that is known to fail.
    #[must_use]
    pub fn of_result(history: &History, record: &CallRecord, view: FailureView<'_>) -> Option<Self> {
        let FailureView { known, worker, now } = view;
        let call = record.signature;
        let is_success = matches!(record.ending, Ending::Brought | Ending::Empty);
        if is_success && known.is_some_and(|known| known.has(call)) {
            return Some(Self::Succeeded { call });
        }
        let again = is_own_failure(record) && times_here(history, record) >= 2;
        // Without arguments, what a call does depends on the state of its session.
        let names_something = again && !history.short(record).about.is_empty();
        names_something.then_some(Self::Failed { call, output: record.output, worker, ts: now })
    }

    /// Returns what a call means that was just made: the second attempt at something that is known to fail, with nothing
    /// changed in between. It counts even if it is refused and never fails.
    #[must_use]
    pub fn of_call(history: &History, record: &CallRecord, view: FailureView<'_>) -> Option<Self> {
        let FailureView { known, worker, now } = view;
        let known = known.filter(|known| known.has(record.signature))?;
        let last = last_failure(history, record)?;
        let (call, output) = (last.signature, last.output);
        known.find(call, output).map(|_| Self::Failed { call, output, worker, ts: now })
    }

    /// Returns what a step other than a result means.
    #[must_use]
    pub fn of_step(step: &Step, history: &History) -> Option<Self> {
        let call = || history.recent().iter().rev().find(|r| is_own_failure(r)).map(|r| r.signature);
        let worker = || FailureWorker::new(&step.session, step.agent.as_deref());
        (step.body == Body::Intervention).then(|| Self::Cleared { worker: worker(), call: call() })
    }
}

/// Returns whether a call failed by itself. A refusal may be a person's, what waits may fail until it is ready, and
/// whether there is a next page depends on the last one.
pub(crate) fn is_own_failure(record: &CallRecord) -> bool {
    let refused = record.ending == Ending::Refused || record.outcome == Some(Outcome::Denied);
    record.ending.in_vain() && !refused && record.look == Look::Stuck && record.kind != ToolKind::Page
}

/// Returns how the same call failed before in this request, if it did so by itself and nothing has changed since.
pub(crate) fn last_failure<'a>(history: &'a History, record: &CallRecord) -> Option<&'a CallRecord> {
    let call = record.signature;
    let last = history.of_this_request().find(|r| r.signature == call)?;
    Some(last).filter(|last| is_own_failure(last) && last.changes == history.changes())
}

/// Returns in how many turns of this request the call failed exactly like this, with nothing changed since.
pub(crate) fn times_here(history: &History, record: &CallRecord) -> usize {
    let mut turns: Vec<u32> = same_here(history, record).map(|r| r.turn).collect();
    turns.dedup();
    turns.len()
}

/// Returns the failures of this request that `times_here` counts, newest first.
pub(crate) fn same_here<'a>(
    history: &'a History,
    record: &CallRecord,
) -> impl Iterator<Item = &'a CallRecord> {
    let (call, output) = (record.signature, record.output);
    history
        .of_this_request()
        .take_while(move |r| r.signature != call || r.ending.in_vain())
        .filter(move |r| r.signature == call && r.output == output && r.changes == history.changes())
}
