//! What the bindings for Python and Node share: a guard from the arguments that programs pass, Steps as JSON, and the Steps
//! of a session file.
//!
//! The bindings only convert values. Everything that has a meaning is here, so that it is the same in both languages.

mod guard;
mod settings;
mod step_file;

pub use guard::{BoundGuard, read_step};
pub use settings::{BindError, GuardSettings};
pub use step_file::{StepFile, StepFileError};
