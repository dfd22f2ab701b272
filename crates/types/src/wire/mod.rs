//! The JSON line of a [`Step`](crate::Step): one flat object. Its `type` determines which fields apply.

mod read;
#[cfg(feature = "schema")]
mod schema;
mod write;

pub use read::StepError;
