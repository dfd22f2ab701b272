//! What hooks do not carry and the transcript does: what the model said, and what it used.

use deloop::Step;
use deloop_formats::hooks::{HookAgent, HookEvent};

/// The steps that were written since `read` bytes, and how far that is now. The seam for the readers of the
/// agents' transcripts: without one nothing is read.
pub(super) fn since(_agent: &dyn HookAgent, _event: &HookEvent, read: u64) -> (Vec<Step>, u64) {
    (Vec::new(), read)
}
