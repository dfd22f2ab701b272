//! Turns text into embeddings, from a static model in model2vec's format or an OpenAI-compatible endpoint.
//!
//! Used at the edge of deloop only: the engine compares embeddings but never computes one.

mod endpoint;
mod error;
mod model;
mod tokenizer;

pub use endpoint::{Endpoint, EndpointOptions};
pub use error::EmbedError;
pub use model::StaticModel;

/// Computes embeddings. The same model gives the same embedding for the same text.
pub trait Embedder: Send + Sync {
    /// Returns one embedding per text, in the same order.
    ///
    /// # Errors
    /// When the model can't be reached, or its answer isn't a list of embeddings.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}
