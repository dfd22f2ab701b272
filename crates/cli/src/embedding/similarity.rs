//! `deloop similarity`: compares two texts the way similar-turn does.

use std::io::Write;

use deloop_detect::Words;
use serde::Serialize;

use super::args::SimilarityArgs;
use super::provider::{Provider, prepared};
use crate::config;
use crate::exit::{self, Failure};

#[derive(Serialize)]
struct TextSimilarity {
    words: f64,
    embeddings: Option<f64>,
}

pub(crate) fn run(args: &SimilarityArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let config = config::load(&args.rules)?;
    let words = Words::of_text(&args.a).jaccard(&Words::of_text(&args.b));
    let provider = Provider::of(&config.embeddings)?;
    let embeddings = match &provider {
        None => None,
        Some(provider) => {
            let (a, b) = (prepared(&args.a), prepared(&args.b));
            let vectors = provider.load()?.embed(&[&a, &b]);
            match vectors.map_err(|e| Failure::new(e.to_string()))?.as_slice() {
                [a, b] => Some(cosine(a, b)),
                _ => None,
            }
        }
    };
    if args.json {
        serde_json::to_writer(&mut *out, &TextSimilarity { words, embeddings })?;
        writeln!(out)?;
        return Ok(exit::OK);
    }
    writeln!(out, "words       {words:.3}")?;
    match embeddings {
        Some(embeddings) => writeln!(out, "embeddings  {embeddings:.3}")?,
        None => writeln!(out, "embeddings  not configured: set `embeddings.model` or `embeddings.endpoint`")?,
    }
    Ok(exit::OK)
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length.is_normal() { (dot(a, b) / length).clamp(0.0, 1.0) } else { 0.0 }
}
