//! turn-similarity: turns that share their words with one of the last five.

use std::collections::HashSet;

use serde_json::Value;

use crate::canonical::signature;
use crate::step::Turn;
use crate::swarm::Swarms;
use crate::{Answer, Judge};

const WINDOW: usize = 5;
const SIMILAR: f64 = 0.85;

/// All turns so far, and how many of the latest in a row were similar.
#[derive(Default)]
pub(crate) struct TurnSimilarity {
    by_embeddings: bool,
    history: Vec<Said>,
    similar: u64,
    /// The count before the latest turn.
    before: u64,
}

struct Said {
    step: u64,
    content: String,
    /// Empty when it is not known.
    embedding: Vec<f64>,
}

impl TurnSimilarity {
    pub(crate) fn by_embeddings() -> Self {
        Self { by_embeddings: true, ..Self::default() }
    }

    /// Compares the latest turn with the five before it.
    fn judge(&mut self) -> Answer {
        let Some((latest, earlier)) = self.history.split_last() else { return Answer::go_on() };
        let window = earlier.iter().rev().take(WINDOW);
        let most = window.map(|said| self.similarity(said, latest)).fold(0.0, f64::max);
        self.similar = if most >= SIMILAR { self.before + 1 } else { 0 };

        let count = self.similar;
        if count >= 5 {
            *self = Self { by_embeddings: self.by_embeddings, ..Self::default() };
            let text = format!(
                "Loop detected: {count} consecutive similar turns (>0.85 similarity). Session will be terminated."
            );
            return Answer::saying("stop", 2, text);
        }
        if count >= 3 {
            let text = format!("Loop warning: {count} consecutive similar turns. VP will be notified.");
            return Answer::saying("warn", 1, text);
        }
        Answer::go_on()
    }

    fn similarity(&self, a: &Said, b: &Said) -> f64 {
        let known = !a.embedding.is_empty() && a.embedding.len() == b.embedding.len();
        if self.by_embeddings && known {
            cosine(&a.embedding, &b.embedding)
        } else {
            similarity(&a.content, &b.content)
        }
    }
}

impl Judge for TurnSimilarity {
    fn stop_clears(&self) -> bool {
        true
    }

    fn counts_turns(&self) -> bool {
        true
    }

    fn stop_ends_session(&self) -> bool {
        true
    }

    fn turn(&mut self, turn: &Turn, _: &mut Swarms) -> Answer {
        if turn.is_empty() {
            return Answer::go_on();
        }
        let embedding = if turn.text.is_some() { numbers(&turn.embedding) } else { Vec::new() };
        self.history.push(Said { step: turn.step, content: content(turn), embedding });
        self.before = self.similar;
        self.judge()
    }

    fn embedding(&mut self, step: u64, vector: &Value) -> Answer {
        if !self.by_embeddings {
            return Answer::go_on();
        }
        let latest = self.history.last().map(|said| said.step);
        let near = self.history.iter_mut().rev().take(WINDOW + 1).find(|said| said.step == step);
        let Some(said) = near else { return Answer::go_on() };
        said.embedding = numbers(vector);
        let counted = self.similar;
        if latest != Some(step) {
            return Answer::go_on();
        }
        // The same count was answered with the turn.
        let answer = self.judge();
        if answer.action != "stop" && self.similar == counted { Answer::go_on() } else { answer }
    }
}

fn numbers(vector: &Value) -> Vec<f64> {
    let numbers: Vec<f64> = vector.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    if numbers.iter().any(|x| *x != 0.0) { numbers } else { Vec::new() }
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()).max(0.0)
}

/// The text of a turn; without one, its calls, a line each.
fn content(turn: &Turn) -> String {
    turn.text.clone().unwrap_or_else(|| {
        let calls: Vec<String> = turn.calls.iter().map(signature).collect();
        calls.join("\n")
    })
}

fn tokens(text: &str) -> HashSet<String> {
    let text = text.to_lowercase();
    text.split_whitespace().map(str::to_owned).collect()
}

fn similarity(a: &str, b: &str) -> f64 {
    let (a, b) = (tokens(a), tokens(b));
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    a.intersection(&b).count() as f64 / a.union(&b).count() as f64
}

#[cfg(test)]
mod tests {
    use super::similarity;

    #[test]
    fn worked_examples() {
        let a = "check price and decide trade";
        let close = |x: f64, y: f64| (x - y).abs() < 1e-9;
        assert!(close(similarity(a, "check current price and make trade decision"), 0.5));
        assert!(close(similarity(a, "check price and decide trade action"), 5.0 / 6.0));
        assert!(close(similarity(a, "check price and decide on trade"), 5.0 / 6.0));
    }
}
