//! What deloop sees: a bounded [`History`] per agent, and detectors that look at it.
//!
//! Pure: no I/O, no clock, no async. [`fold`] enters a Step into a history and shows each thing that happened to
//! the detectors as a [`Moment`]; a detector answers with a [`Finding`](deloop_types::Finding) or nothing.

mod asked;
mod canonical;
mod command;
mod detector;
mod detectors;
mod edits;
mod effect;
mod exchange;
mod fingerprint;
mod fold;
mod fruitless;
mod history;
mod mask;
mod moment;
mod normalise;
mod registry;
mod ring;
mod scan;
pub mod shell;
mod short;
mod sketch;
mod swarm;
mod target;
mod test_runs;
mod tools;
mod words;

pub use canonical::write_canonical;
pub use command::command_line;
pub use detector::{AnyDetector, Detector, Memory, Tuned};
pub use exchange::{Exchange, Said};
pub use fingerprint::{Fingerprint, SCHEME, short_hash};
pub use fold::{Around, fold};
pub use history::{CallRecord, History, Ledger, Nature, Size, ToolTally, WINDOW};
pub use mask::{mask, mask_into};
pub use moment::{CallView, Happening, Moment, ResultView, SwarmCount};
pub use normalise::{CUT, normalise};
pub use registry::{DETECTORS, detector};
pub use ring::Ring;
pub use short::{clean, short_call};
pub use sketch::Sketch;
pub use swarm::Swarm;
pub use target::target;
pub use test_runs::{is_test_command, is_test_tool, test_verdict};
pub use tools::{ToolKind, ToolRule, Tools};
pub use words::Words;
