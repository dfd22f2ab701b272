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

use self::provider::Provider;
use crate::config::Config;
use crate::exit::Failure;

/// Checks whether embeddings can be computed; `None` if nothing uses them or none are configured.
pub(crate) fn check(config: &Config) -> Option<Result<(), Failure>> {
    if !config.profile.compares_embeddings() {
        return None;
    }
    let provider = Provider::of(&config.embeddings).transpose()?;
    let embed = |provider: Provider| {
        let embedded = provider.load()?.embed(&["deloop"]);
        embedded.map(drop).map_err(|e| Failure::new(deloop_detect::clean(&e.to_string(), 300)))
    };
    Some(provider.and_then(embed))
}
