//! Embeddings in running sessions. The agent never waits for one: a turn whose embedding isn't ready is judged without
//! it, and again at the next event if it is ready by then.

use deloop_detect::Fingerprint;
use deloop_types::{Body, SessionId, Step};
use serde::{Deserialize, Serialize};

/// Provides embeddings without waiting for them.
pub trait EmbeddingSource {
    /// Returns the embedding of the text with this fingerprint, if it is ready.
    fn ready(&self, text: Fingerprint) -> Option<Vec<f32>>;

    /// Requests the embedding of a text, to be ready later.
    fn request(&self, text: &str);
}

/// A turn whose embedding wasn't ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedEmbedding {
    /// The turn's step, once it is known.
    step: u64,
    text: Fingerprint,
}

impl AwaitedEmbedding {
    /// Adds the embedding to a turn if it is ready. Otherwise requests it and returns what to wait for.
    pub fn begin(step: &mut Step, source: &dyn EmbeddingSource) -> Option<Self> {
        let Body::Turn(turn) = &mut step.body else { return None };
        if turn.embedding.is_some() {
            return None;
        }
        let text = Fingerprint::of_bytes(turn.said()?.as_bytes());
        turn.embedding = source.ready(text);
        if turn.embedding.is_none() {
            turn.said().into_iter().for_each(|text| source.request(text));
            // A local model is done at once.
            turn.embedding = source.ready(text);
        }
        turn.embedding.is_none().then_some(Self { step: 0, text })
    }

    /// Sets the step of the turn.
    #[must_use]
    pub fn at(self, step: u64) -> Self {
        Self { step, ..self }
    }

    /// Returns the step that adds the embedding, if it is ready now.
    #[must_use]
    pub fn arrived(
        &self,
        session: &SessionId,
        agent: Option<&str>,
        source: &dyn EmbeddingSource,
    ) -> Option<Step> {
        let mut step = Step::embedding(session.clone(), self.step, source.ready(self.text)?);
        step.agent = agent.map(str::to_owned);
        Some(step)
    }
}
