//! Embeddings for commands that read finished sessions, where nothing waits for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deloop_detect::Fingerprint;
use deloop_engine::{EmbedFn, Engine};

use super::provider::{Provider, prepared};
use crate::config::Config;
use crate::exit::Failure;
use crate::state::{State, now};

/// Returns the engine with the embeddings that the configuration names. Those of an endpoint are kept in the database.
pub(crate) fn offline(engine: Engine, config: &Config) -> Result<Engine, Failure> {
    if !engine.profile().compares_embeddings() {
        return Ok(engine);
    }
    let Some(provider) = Provider::of(&config.embeddings)? else { return Ok(engine) };
    let embedder = provider.load()?;
    let journal = match provider.is_local() {
        true => None,
        false => State::here().and_then(|state| state.open()).ok(),
    };
    let is_broken = AtomicBool::new(false);
    let embed: EmbedFn = Arc::new(move |text| {
        let key = Fingerprint::of_bytes(text.as_bytes());
        let stored = journal.as_ref().and_then(|journal| journal.embedding(&provider.id, key).ok().flatten());
        if stored.is_some() || is_broken.load(Ordering::Relaxed) {
            return stored;
        }
        match embedder.embed(&[&prepared(text)]) {
            Ok(mut vectors) => {
                let vector = vectors.pop()?;
                if let Some(journal) = &journal {
                    // Without the database, the same text is computed again next time.
                    let _ = journal.keep_embedding(&provider.id, key, &vector, now());
                }
                Some(vector)
            }
            Err(error) => {
                if !is_broken.swap(true, Ordering::Relaxed) {
                    let error = deloop_detect::clean(&error.to_string(), 300);
                    crate::print::tell(format_args!(
                        "deloop: {error}; turns are compared by words from here"
                    ));
                }
                None
            }
        }
    });
    Ok(engine.with_embeddings(embed))
}
