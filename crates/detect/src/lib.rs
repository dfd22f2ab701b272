//! Detects patterns: a bounded [`History`] per agent, and detectors that read it.
//!
//! Pure: no I/O, no clock, no async. [`fold`] adds a Step to a history and passes each thing that happened to
//! the detectors as a [`Moment`]. A detector returns a [`Finding`](deloop_types::Finding) or nothing.

mod detector;
mod detectors;
mod fingerprint;
mod fold;
mod history;
mod moment;
mod progress;
mod reading;
mod registry;
mod usage_amounts;
mod waiting;

pub use detector::{AnyDetector, Detector, Memory, Streak, Tuned};
pub use detectors::similar_call::{LoopDetails, RecordedAction};
pub use fingerprint::{Fingerprint, SCHEME, short_hash};
pub use fold::{FoldContext, fold, signature};
pub use history::{
    ActiveTime, CallRecord, FailureCount, FailureNote, FailureView, FailureWorker, History, KnownFailure,
    KnownFailures, LONGEST_PAUSE, Ledger, Nesting, Ring, SpawnTotals, SpawnTree, SpawnView, Stretch, Swarm,
    SwarmCall, SwarmFingerprint, SwarmParts, SwarmState, SwarmWorker, ToolTally, WINDOW, Wait, WaitCost,
    WholeSession, limited_tokens,
};
pub use moment::{CallView, Happening, Moment, ResultView, SwarmCount};
pub use progress::Progress;
pub use reading::*;
pub use registry::{DETECTORS, detector};
pub use usage_amounts::{LimitShare, RAISE, UsageAmounts};
pub use waiting::Look;
