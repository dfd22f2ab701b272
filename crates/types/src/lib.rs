//! The data types of deloop and their JSON: a [`Step`] goes in, a [`Decision`] with its
//! [`Finding`]s comes out, and [`Event`]s notify people.
//!
//! This crate contains no logic.
//!
//! ```
//! use deloop_types::{Body, Step};
//!
//! let step: Step = r#"{"type":"call","tool":"bash","args":{"command":"ls"}}"#.parse()?;
//! assert_eq!(step.session.as_str(), "default");
//! let Body::Turn(turn) = &step.body else { unreachable!("a call is a turn with one call") };
//! assert_eq!(turn.calls[0].tool, "bash");
//! # Ok::<(), deloop_types::StepError>(())
//! ```

mod action;
mod decision;
mod embedding;
mod event;
mod finding;
pub mod limits;
mod millis;
mod notice;
mod rollback;
mod session;
mod step;
mod usage;
mod wire;

pub use action::{Action, Mode, Role, Roles};
pub use decision::{DecidedBy, Decision};
pub use embedding::TurnEmbedding;
pub use event::{Event, EventKind};
pub use finding::{
    ArgumentVariation, CameBack, Evidence, Finding, PatternId, Repeats, RunEvidence, ShortCall,
};
pub use millis::Millis;
pub use notice::ControllerNotice;
pub use rollback::Rollback;
pub use session::SessionId;
pub use step::{Body, Call, Delivery, Origin, Outcome, Step, ToolResult, Turn, UserText};
pub use usage::Usage;
pub use wire::StepError;
