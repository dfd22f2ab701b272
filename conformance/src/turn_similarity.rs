//! turn-similarity: turns that share their words with one of the last five.

use std::collections::HashSet;

use crate::canonical::signature;
use crate::step::Turn;
use crate::swarm::Swarms;
use crate::{Answer, Judge};

const WINDOW: usize = 5;
const SIMILAR: f64 = 0.85;

/// All turns so far, and how many of the latest in a row were similar.
#[derive(Default)]
pub(crate) struct TurnSimilarity {
    history: Vec<String>,
    similar: u64,
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
        let content = content(turn);
        let window = self.history.iter().rev().take(WINDOW);
        let most = window.map(|earlier| similarity(earlier, &content)).fold(0.0, f64::max);
        self.history.push(content);
        self.similar = if most >= SIMILAR { self.similar + 1 } else { 0 };

        let count = self.similar;
        if count >= 5 {
            *self = Self::default();
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
