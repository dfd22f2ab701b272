//! Turns Steps into Decisions: [`Engine`] with any store, [`Guard`] in memory.
//!
//! Applications use the crate `deloop`, which re-exports this one with the types it needs.

mod checkpoint;
mod engine;
mod guard;
mod loop_detection_state;
mod memories;
mod options;
mod report;
mod session;
mod stored_session;
mod surroundings;
mod tasks;

pub use checkpoint::{Checkpoint, RestoreError};
pub use engine::{EmbedFn, Engine, Observed};
pub use guard::{Guard, SwarmCheckpoint};
pub use loop_detection_state::LoopDetectionState;
pub use options::Options;
pub use report::{AgentReport, LOOP_DETECTION_STATE, SWARM_STATE};
pub use session::Session;
