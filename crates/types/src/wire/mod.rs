//! The JSON line of a [`Step`](crate::Step): one flat object whose `type` says which fields count.

mod read;
mod write;

pub use read::StepError;
