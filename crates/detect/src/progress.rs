//! Progress: the evidence of a result, judged once when it arrives and stored in the call's record.

use serde::{Deserialize, Serialize};

use crate::reading::Effect;
use crate::{CallRecord, Ending, ToolKind};

/// What a call is evidence of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// No evidence: the call has no result yet, is still running, waits, was cancelled, is a note or a
    /// receipt, or its result isn't recorded.
    #[default]
    None,
    /// Something not seen before.
    New,
    /// A change that later outcomes may depend on.
    Changed,
    /// Nothing new: the same call had the same result, or another call of this tool returned the same long output.
    Same,
    /// The first failure of its kind.
    Failed,
    /// Another failure or refusal: the same call failed before, or another call failed the same way.
    FailedAgain,
    /// The same failure again, except for a number that has moved in one direction so far: 412 problems, then 380.
    Moved,
}

impl Progress {
    /// Returns whether nothing new came of the call.
    #[must_use]
    pub fn nothing_new(self) -> bool {
        matches!(self, Self::Same | Self::FailedAgain)
    }
}

/// Minimum size in bytes at which an output is recognized when another call returns it. A shorter one may be a receipt.
const LONG: u16 = 200;
/// A check that takes at least this many seconds and returns the same result isn't repeated lightly.
const BLOCKS: f64 = 5.0;

/// Judges the evidence of `record`, whose result has just arrived, after the calls `before` it (newest first). `moved`: a
/// number in it has moved in one direction.
pub(crate) fn progress<'a>(
    record: &CallRecord,
    moved: bool,
    before: impl Iterator<Item = &'a CallRecord> + Clone,
) -> Progress {
    let earlier = before.filter(|r| r.ending.tells());
    let mut same_call = earlier.clone().filter(|r| r.signature == record.signature);
    match record.ending {
        Ending::Failed | Ending::TimedOut | Ending::Refused => {
            let failure = |r: &CallRecord| r.failure == record.failure && record.is_comparable(r);
            let again = same_call.clone().any(|r| r.ending.in_vain() && record.is_comparable(r))
                || earlier.clone().any(failure);
            // A build that runs into its time limit again may have come further. One that ended at once ran into none.
            let further = record.ending == Ending::TimedOut
                && record.seconds().is_none_or(|s| s >= BLOCKS)
                && same_call.next().is_some_and(|last| last.output != record.output);
            match again {
                _ if moved => Progress::Moved,
                true if further => Progress::Moved,
                true => Progress::FailedAgain,
                false => Progress::Failed,
            }
        }
        Ending::Brought | Ending::Empty if !record.waits() => {
            let last = same_call.next();
            let changes = record.effect >= Effect::Changes;
            if changes && (record.effect == Effect::Switches || last.is_none()) {
                return Progress::Changed;
            }
            let known = |r: &CallRecord| r.tool == record.tool && r.output == record.output;
            let same = last.is_some_and(|last| changes || last.came_back_as(record));
            // The next page may look like the previous one when little of it is shown.
            let paged = record.kind == ToolKind::Page && record.length < LONG;
            if same && !changes && record.seconds().is_some_and(|s| s >= BLOCKS) {
                Progress::None
            } else if same && !paged {
                Progress::Same
            } else if record.kind == ToolKind::Talk || paged {
                Progress::None
            } else if !changes && record.length >= LONG && earlier.clone().any(known) {
                Progress::Same
            } else if moved && !changes && last.is_some() {
                Progress::Moved
            } else {
                Progress::New
            }
        }
        _ => Progress::None,
    }
}
