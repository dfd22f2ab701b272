//! signature: cycles of one, two or three identical calls.

use std::collections::{BTreeSet, HashMap};

use crate::canonical::signature;
use crate::step::Turn;
use crate::swarm::Swarms;
use crate::{Answer, Judge};

/// A pattern is forgotten when it was last counted this many calls ago.
const FORGET_AFTER: usize = 10;

/// A pattern: which calls are in the cycle, whatever their order.
type Pattern = BTreeSet<String>;

/// Every call so far, and of each pattern how often it was counted and at which call last.
#[derive(Default)]
pub(crate) struct Signature {
    calls: Vec<String>,
    counted: HashMap<Pattern, (u64, usize)>,
}

impl Judge for Signature {
    fn stop_ends_session(&self) -> bool {
        true
    }

    fn turn(&mut self, turn: &Turn, _: &mut Swarms) -> Answer {
        let mut answer = Answer::go_on();
        for call in &turn.calls {
            self.calls.push(signature(call));
            answer = answer.or(self.latest());
        }
        answer
    }
}

impl Signature {
    fn latest(&mut self) -> Answer {
        let Some(period) = (1..=3).find(|period| self.cycles(*period)) else {
            return Answer::go_on();
        };
        let now = self.calls.len();
        let pattern: Pattern = self.calls[now - period..].iter().cloned().collect();
        let count = match self.counted.get(&pattern) {
            Some((_, last)) if now - last >= FORGET_AFTER => 1,
            Some((_, last)) if now - last < period => return Answer::go_on(),
            Some((count, _)) => count + 1,
            None => 1,
        };
        self.counted.insert(pattern, (count, now));
        match count {
            1 => Answer::silent("nudge", 1),
            2 => Answer::silent("nudge", 2),
            _ => Answer::silent("stop", 3),
        }
    }

    /// Whether the last `period` calls are the `period` calls before them.
    fn cycles(&self, period: usize) -> bool {
        let n = self.calls.len();
        n >= 2 * period && self.calls[n - period..] == self.calls[n - 2 * period..n - period]
    }
}
