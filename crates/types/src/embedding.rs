/// The embedding of an earlier turn's text.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct TurnEmbedding {
    /// The `step` of the decision about that turn.
    pub step: u64,
    /// The embedding.
    pub vector: Vec<f32>,
}

impl TurnEmbedding {
    /// Creates the embedding of the turn at `step`.
    #[must_use]
    pub fn new(step: u64, vector: Vec<f32>) -> Self {
        Self { step, vector }
    }
}
