//! Turns Steps into Decisions: [`Engine`] with any store, [`Guard`] in memory.
//!
//! Applications use the crate `deloop`, which re-exports this one with the types it needs.

mod checkpoint;
mod engine;
mod guard;
mod session;

pub use checkpoint::{Checkpoint, RestoreError};
pub use engine::{EmbedFn, Engine, Observed, Options};
pub use guard::{Guard, SwarmCheckpoint};
pub use session::Session;
