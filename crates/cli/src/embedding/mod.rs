//! Embeddings at the edge: where they come from, and how each command gets them without keeping an agent waiting.
//!
//! - `deloop hook` looks them up in the database. What isn't there is computed by a process in the background, and used
//!   at the session's next event.
//! - `deloop stream` computes them itself with a local model, or asks an endpoint in a thread.
//! - `scan`, `show`, `compare` and `eval` compute them as they read.

pub(crate) mod args;
mod background;
mod in_process;
mod offline;
mod provider;
mod similarity;

pub(crate) use background::{EmbeddingRequests, HookEmbeddings, embed, start};
pub(crate) use in_process::StreamEmbeddings;
pub(crate) use offline::offline;
pub(crate) use similarity::run as similarity;
