//! turn-hash: a turn that is the same as one of the last twenty.

use crate::canonical::signature;
use crate::step::Turn;
use crate::swarm::Swarms;
use crate::{Answer, Judge};

const WINDOW: usize = 20;
const LOOP_LIMIT: u64 = 5;

/// A turn's text, and its calls without their ids.
type Content = (Option<String>, Vec<String>);

/// All turns so far, and how many of them were duplicates.
#[derive(Default)]
pub(crate) struct TurnHash {
    history: Vec<Content>,
    duplicates: u64,
}

impl Judge for TurnHash {
    fn counts_turns(&self) -> bool {
        true
    }

    fn turn(&mut self, turn: &Turn, _: &mut Swarms) -> Answer {
        if turn.is_empty() {
            return Answer::go_on();
        }
        let calls = turn.calls.iter().map(signature).collect();
        let content: Content = (turn.text.clone(), calls);
        let duplicate = self.history.iter().rev().take(WINDOW).any(|t| *t == content);
        self.history.push(content);
        if !duplicate {
            return Answer::go_on();
        }
        self.duplicates += 1;
        if self.duplicates <= LOOP_LIMIT { Answer::silent("nudge", 1) } else { Answer::go_on() }
    }
}
