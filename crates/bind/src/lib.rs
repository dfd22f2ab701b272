//! What the bindings for Python and Node share: a guard from the arguments that programs pass, and Steps as JSON.
//!
//! The bindings only convert values. Everything that has a meaning is here, so that it is the same in both languages.

mod guard;
mod settings;

pub use guard::{BoundGuard, read_step};
pub use settings::{BindError, GuardSettings};
