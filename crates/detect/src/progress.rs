//! Progress: what a result is evidence of, judged once, when it comes back, and kept in the call's record.

use serde::{Deserialize, Serialize};

use crate::reading::Effect;
use crate::{CallRecord, Ending, ToolKind};

/// What a call is evidence of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Nothing, one way or the other: it has no result yet, still runs or waits, was called off, is a note or a
    /// receipt, or what came back is not recorded.
    #[default]
    None,
    /// It brought something that was not seen before.
    New,
    /// It changed something that later outcomes may depend on.
    Changed,
    /// The same call came back the same, or another call of this tool brought the same long output.
    Same,
    /// It failed, as it had not failed before.
    Failed,
    /// It failed or was refused, and the same call or the same failure was there before.
    FailedAgain,
}

impl Progress {
    /// Whether nothing new came of the call.
    #[must_use]
    pub fn nothing_new(self) -> bool {
        matches!(self, Self::Same | Self::FailedAgain)
    }
}

/// An output of at least so many bytes is known again when another call brings it; a shorter one may be a receipt.
const LONG: u16 = 200;
/// A call that takes so many seconds and comes back the same waits for something.
const BLOCKS: f64 = 5.0;

/// What `record`, which has just come back, is evidence of, after the calls `before` it (newest first).
pub(crate) fn progress<'a>(
    record: &CallRecord,
    before: impl Iterator<Item = &'a CallRecord> + Clone,
) -> Progress {
    let earlier = before.filter(|r| r.ending.tells());
    let mut same_call = earlier.clone().filter(|r| r.signature == record.signature);
    match record.ending {
        Ending::Failed | Ending::TimedOut | Ending::Refused => {
            let failure = |r: &CallRecord| r.failure == record.failure;
            let again = same_call.any(|r| r.ending.in_vain()) || earlier.clone().any(failure);
            if again { Progress::FailedAgain } else { Progress::Failed }
        }
        Ending::Brought | Ending::Empty if !record.waits() => {
            let last = same_call.next();
            let changes = record.effect >= Effect::Changes;
            if changes && (record.effect == Effect::Switches || last.is_none()) {
                return Progress::Changed;
            }
            let known = |r: &CallRecord| r.tool == record.tool && r.output == record.output;
            let same = last.is_some_and(|last| changes || last.came_back_as(record));
            // The next piece may look like the one before when little of it is shown.
            let paged = record.kind == ToolKind::Page && record.length < LONG;
            if same && !changes && record.seconds().is_some_and(|s| s >= BLOCKS) {
                Progress::None
            } else if same && !paged {
                Progress::Same
            } else if record.kind == ToolKind::Talk || paged {
                Progress::None
            } else if !changes && record.length >= LONG && earlier.clone().any(known) {
                Progress::Same
            } else {
                Progress::New
            }
        }
        _ => Progress::None,
    }
}
