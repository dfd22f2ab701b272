//! What people see of the hooks, and what they can say to them.

pub(crate) mod allow;
pub(crate) mod args;
pub(crate) mod explain;
mod holdout;
pub(crate) mod log;
mod named;
pub(crate) mod pause;
mod redact;
pub(crate) mod state;
mod summary;
pub(crate) mod swarm;
mod weekly;
pub(crate) mod words;
pub(crate) mod wrong;
