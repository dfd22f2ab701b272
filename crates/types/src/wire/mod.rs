//! The JSON line of a [`Step`](crate::Step): one flat object. Its `type` determines which fields apply.

mod read;
mod write;

pub use read::StepError;
