//! Static models in model2vec's format: a text's embedding is the mean of its tokens' vectors.

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use crate::tokenizer::Tokenizer;
use crate::{EmbedError, Embedder};

const TENSORS: &str = "model.safetensors";
/// Maximum number of tokens, if the model sets none.
const TOKENS: usize = 512;

/// A static model. It needs no network and no inference: a few microseconds per text.
pub struct StaticModel {
    tokenizer: Tokenizer,
    dimensions: usize,
    /// One row per vector.
    vectors: Vec<f32>,
    /// One weight per token, if the model has weights.
    weights: Option<Vec<f32>>,
    /// The row of each token, if tokens share vectors.
    rows: Option<Vec<usize>>,
    normalize: bool,
    tokens: usize,
}

#[derive(Deserialize)]
struct ModelConfig {
    #[serde(default)]
    normalize: bool,
    #[serde(default)]
    max_length: Option<usize>,
}

impl StaticModel {
    /// Reads a model from the contents of its three files: `config.json`, `tokenizer.json` and `model.safetensors`.
    ///
    /// # Errors
    /// When a file isn't what it should be, or the tokenizer isn't supported.
    pub fn new(config: &[u8], tokenizer: &[u8], tensors: &[u8]) -> Result<Self, EmbedError> {
        let config: ModelConfig =
            serde_json::from_slice(config).map_err(|e| EmbedError::model("config.json", e))?;
        let tokenizer = Tokenizer::parse(tokenizer)?;
        let broken = |why: String| EmbedError::model(TENSORS, why);
        let tensors = SafeTensors::deserialize(tensors).map_err(|e| broken(e.to_string()))?;
        let table = tensors.tensor("embeddings").or_else(|_| tensors.tensor("embedding.weight"));
        let table = table.map_err(|e| broken(e.to_string()))?;
        let &[count, dimensions] = table.shape() else {
            return Err(broken("`embeddings` isn't a table".to_owned()));
        };
        if count == 0 || dimensions == 0 {
            return Err(broken("`embeddings` is empty".to_owned()));
        }
        let vectors = numbers(&table).ok_or_else(|| broken("`embeddings` has an unknown type".to_owned()))?;
        let optional = |name: &str| tensors.tensor(name).ok().and_then(|tensor| numbers(&tensor));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked below")]
        let rows: Option<Vec<usize>> =
            optional("mapping").map(|rows| rows.into_iter().map(|row| row as usize).collect());
        let weights = optional("weights");
        let tokens = tokenizer.len();
        let fits = match &rows {
            Some(rows) => rows.len() >= tokens && rows.iter().all(|row| *row < count),
            None => count >= tokens,
        };
        if !fits || weights.as_ref().is_some_and(|weights| weights.len() < tokens) {
            return Err(broken("it has fewer vectors than tokenizer.json has tokens".to_owned()));
        }
        Ok(Self {
            tokenizer,
            dimensions,
            vectors,
            weights,
            rows,
            normalize: config.normalize,
            tokens: config.max_length.unwrap_or(TOKENS),
        })
    }

    fn embed_one(&self, text: &str) -> Vec<f32> {
        let tokens = self.tokenizer.encode(text, self.tokens);
        let mut sum = vec![0.0_f32; self.dimensions];
        for token in &tokens {
            let row = self.rows.as_ref().map_or(*token, |rows| rows[*token]);
            let weight = self.weights.as_ref().map_or(1.0, |weights| weights[*token]);
            let vector = &self.vectors[row * self.dimensions..][..self.dimensions];
            sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += weight * x);
        }
        #[expect(clippy::cast_precision_loss, reason = "a few hundred tokens")]
        let count = tokens.len().max(1) as f32;
        sum.iter_mut().for_each(|x| *x /= count);
        if self.normalize {
            let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt() + 1e-32;
            sum.iter_mut().for_each(|x| *x /= length);
        }
        sum
    }
}

impl Embedder for StaticModel {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        Ok(texts.iter().map(|text| self.embed_one(text)).collect())
    }
}

/// Returns the numbers of a tensor; `None` for a type that no model uses.
fn numbers(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    let bytes = tensor.data();
    fn read<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        let (chunks, _) = bytes.as_chunks::<N>();
        chunks.iter().map(|chunk| number(*chunk)).collect()
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "no model needs more digits"
    )]
    Some(match tensor.dtype() {
        Dtype::F32 => read(bytes, f32::from_le_bytes),
        Dtype::F64 => read(bytes, |b| f64::from_le_bytes(b) as f32),
        Dtype::F16 => read(bytes, |b| half(u16::from_le_bytes(b))),
        Dtype::BF16 => read(bytes, |b| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16)),
        Dtype::I8 => read(bytes, |b: [u8; 1]| f32::from(i8::from_le_bytes(b))),
        Dtype::I32 => read(bytes, |b| i32::from_le_bytes(b) as f32),
        Dtype::I64 => read(bytes, |b| i64::from_le_bytes(b) as f32),
        Dtype::U32 => read(bytes, |b| u32::from_le_bytes(b) as f32),
        Dtype::U64 => read(bytes, |b| u64::from_le_bytes(b) as f32),
        _ => return None,
    })
}

/// Converts a number of 16 bits: 1 for the sign, 5 for the exponent, 10 for the fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2.0_f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2.0_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &[u8] = include_bytes!("../fixtures/tiny/config.json");
    const TOKENIZER: &[u8] = include_bytes!("../fixtures/tiny/tokenizer.json");
    const TENSORS: &[u8] = include_bytes!("../fixtures/tiny/model.safetensors");
    /// What the Python package model2vec 0.10 computes with the same files.
    const EXPECTED: &[u8] = include_bytes!("../fixtures/expected.json");

    #[derive(Deserialize)]
    struct Expected {
        text: String,
        vector: Vec<f32>,
    }

    #[test]
    fn agrees_with_the_python_package() {
        let model = StaticModel::new(CONFIG, TOKENIZER, TENSORS).unwrap();
        let expected: Vec<Expected> = serde_json::from_slice(EXPECTED).unwrap();
        assert!(expected.len() > 5);
        for Expected { text, vector } in expected {
            let found = &model.embed(&[&text]).unwrap()[0];
            let far = found.iter().zip(&vector).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(far < 1e-5 && found.len() == vector.len(), "{text:?}: {found:?}, not {vector:?}");
        }
    }

    #[test]
    fn errors_name_the_file() {
        let error = |config: &[u8], tokenizer: &[u8], tensors: &[u8]| {
            StaticModel::new(config, tokenizer, tensors).err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert!(error(b"{", TOKENIZER, TENSORS).starts_with("config.json: "));
        assert!(error(CONFIG, b"{}", TENSORS).starts_with("tokenizer.json: "));
        assert!(error(CONFIG, TOKENIZER, b"short").starts_with("model.safetensors: "));
        let unigram = br#"{"model":{"type":"Unigram","vocab":[]}}"#;
        assert!(error(CONFIG, unigram, TENSORS).contains("the model `Unigram` isn't supported"));
    }

    #[test]
    fn halves() {
        let close = |bits: u16, expected: f32| (half(bits) - expected).abs() < 1e-7;
        assert!(close(0x3c00, 1.0) && close(0xc000, -2.0) && close(0x3555, 0.333_251_95) && close(0, 0.0));
        assert!(close(0x0001, 2.0_f32.powi(-24)) && half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}
