//! How similar two turns are: one function, [`TurnContent::similarity`].

use deloop_types::Turn;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Words, write_canonical};

/// Maximum number of dimensions of an embedding. A longer one is ignored.
const MOST: usize = 4096;
/// The length of a stored embedding. Rounding to it changes a cosine by less than 0.001.
const LENGTH: f32 = 32_767.0;

/// What turns are compared by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SimilarityMeasure {
    /// The share of their words that two turns have in common.
    #[default]
    Words,
    /// The cosine of their embeddings. Turns without embeddings are compared by words.
    Embeddings,
}

/// The content of a turn, in the form in which it is compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TurnContent {
    words: Words,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding: Option<Embedding>,
}

impl TurnContent {
    /// Returns the content of a turn: its text, or its calls if it has no text. A turn with neither has none.
    pub(crate) fn of(turn: &Turn, by: SimilarityMeasure) -> Option<Self> {
        let embedding = turn.embedding.as_deref().filter(|_| by == SimilarityMeasure::Embeddings);
        if let Some(text) = turn.said() {
            return Some(Self { words: Words::of_text(text), embedding: embedding.and_then(Embedding::new) });
        }
        let mut text = String::new();
        for call in &turn.calls {
            text.push_str(&call.tool);
            text.push(' ');
            write_canonical(&call.args, &mut text);
            text.push('\n');
        }
        (!text.is_empty()).then(|| Self { words: Words::of_text(&text), embedding: None })
    }

    /// Sets the embedding.
    pub(crate) fn embed(&mut self, vector: &[f32]) {
        self.embedding = Embedding::new(vector);
    }

    /// Returns how similar two turns are, 0 to 1.
    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        match (&self.embedding, &other.embedding) {
            (Some(a), Some(b)) if a.0.len() == b.0.len() => a.cosine(b),
            _ => self.words.jaccard(&other.words),
        }
    }
}

/// A vector of unit length, in whole numbers so that it stays small and compares the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Embedding(Vec<i16>);

impl Embedding {
    /// Returns `None` for a vector without a direction.
    fn new(vector: &[f32]) -> Option<Self> {
        let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
        if vector.len() > MOST || !length.is_normal() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "between -32,767 and 32,767")]
        let round = |x: &f32| (f64::from(*x) / length * f64::from(LENGTH)).round() as i16;
        Some(Self(vector.iter().map(round).collect()))
    }

    /// Returns the cosine of the angle between two vectors; 0 if they point apart.
    fn cosine(&self, other: &Self) -> f64 {
        let dot = |a: &Self, b: &Self| {
            a.0.iter().zip(&b.0).map(|(x, y)| i64::from(*x) * i64::from(*y)).sum::<i64>()
        };
        #[expect(clippy::cast_precision_loss, reason = "4,096 products of 2^30 are below 2^53")]
        let cosine = dot(self, other) as f64 / ((dot(self, self) as f64) * (dot(other, other) as f64)).sqrt();
        if cosine.is_finite() { cosine.clamp(0.0, 1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str, vector: &[f32]) -> TurnContent {
        let mut turn = Turn::new(text, Vec::new());
        turn.embedding = Some(vector.to_vec());
        TurnContent::of(&turn, SimilarityMeasure::Embeddings).unwrap()
    }

    #[test]
    fn embeddings_compare_meaning_and_words_compare_words() {
        let a = content("analyze the price movement", &[0.9, 0.1, 0.4]);
        let b = content("examine how prices changed", &[0.8, 0.15, 0.45]);
        assert!(a.similarity(&b) > 0.98, "{}", a.similarity(&b));
        let by_words =
            |text: &str| TurnContent::of(&Turn::new(text, Vec::new()), SimilarityMeasure::Words).unwrap();
        let (a, b) = (by_words("analyze the price movement"), by_words("examine how prices changed"));
        assert!(a.similarity(&b) < 0.01);
    }

    #[test]
    fn without_a_comparable_embedding_words_decide() {
        let a = content("the same words", &[1.0, 0.0]);
        let same = |vector: &[f32]| (a.similarity(&content("the same words", vector)) - 1.0).abs() < 1e-9;
        assert!(same(&[1.0, 0.0, 0.0]), "another model");
        assert!(same(&[0.0, 0.0]) && same(&[f32::NAN, 1.0]) && same(&[f32::INFINITY, 1.0]), "no direction");
        assert!(same(&vec![1.0; MOST + 1]), "too long");
        assert!(!same(&[0.0, 1.0]));
        assert!(same(&[f32::MAX, 0.0]));
    }

    proptest::proptest! {
        #[test]
        fn rounding_changes_little(a in proptest::collection::vec(-1.0_f32..1.0, 8), b in proptest::collection::vec(-1.0_f32..1.0, 8)) {
            let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
            let exact = (dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()).max(0.0);
            if let (Some(a), Some(b)) = (Embedding::new(&a), Embedding::new(&b)) {
                proptest::prop_assert!((a.cosine(&b) - exact).abs() < 1e-3);
            }
        }
    }
}
