//! The HTTP API of `deloop serve`: Steps in, Decisions out, for many agents at once.
//!
//! [`Broker`] decides and stores, and blocks while it does. [`serve`] puts it behind HTTP and is the only async code of
//! the workspace. Nothing here prints: the caller gets a [`ServerNotice`] for what people should see.

mod admission;
mod broker;
mod caller_options;
mod http_error;
mod listener;
mod metrics;
mod project;
#[expect(dead_code, reason = "handlers take it next")]
mod requester;
mod routes;
mod server_time;
mod shared;
mod step_batch;

pub use broker::{Broker, CostFn};
pub use listener::serve;
pub use project::Project;
pub use shared::ServerNotice;
