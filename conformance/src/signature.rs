//! signature: cycles of one, two or three identical calls.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::canonical::signature;
use crate::step::Turn;
use crate::swarm::Swarms;
use crate::{Answer, Judge};

/// A pattern is forgotten when it was last counted this many calls ago.
const FORGET_AFTER: usize = 10;

/// A pattern: which calls are in the cycle, whatever their order.
type Pattern = BTreeSet<String>;

/// Of one pattern: the steps at which it was counted, and the call at which it was seen last.
#[derive(Default)]
struct Counted {
    steps: Vec<u64>,
    last: usize,
}

/// Every call so far, what was counted of each pattern, and which warnings were not delivered.
#[derive(Default)]
pub(crate) struct Signature {
    calls: Vec<String>,
    counted: HashMap<Pattern, Counted>,
    /// Whether the current turn has a detection that counts.
    detected: bool,
    undelivered: HashSet<u64>,
}

impl Judge for Signature {
    fn stop_ends_session(&self) -> bool {
        true
    }

    fn turn(&mut self, turn: &Turn, _: &mut Swarms) -> Answer {
        let mut answer = Answer::go_on();
        self.detected &= turn.continued;
        for call in &turn.calls {
            self.calls.push(signature(call));
            answer = answer.or(self.latest(turn.step));
        }
        answer
    }

    fn delivery(&mut self, step: u64, ok: bool) {
        if ok {
            self.undelivered.remove(&step);
        } else if self.counted.values().any(|counted| counted.steps.contains(&step)) {
            self.undelivered.insert(step);
        }
    }
}

impl Signature {
    fn latest(&mut self, step: u64) -> Answer {
        let Some(period) = (1..=3).find(|period| self.cycles(*period)) else {
            return Answer::go_on();
        };
        let now = self.calls.len();
        self.counted.retain(|_, counted| now - counted.last < FORGET_AFTER);
        let pattern: Pattern = self.calls[now - period..].iter().cloned().collect();
        if let Some(counted) = self.counted.get_mut(&pattern) {
            if now - counted.last < period {
                return Answer::go_on();
            }
            counted.last = now;
        }
        // "If the loop continues after warning injection": the model has seen nothing yet.
        if self.detected {
            return Answer::go_on();
        }
        self.detected = true;
        let counted = self.counted.entry(pattern).or_default();
        counted.last = now;
        counted.steps.push(step);
        match counted.steps.iter().filter(|step| !self.undelivered.contains(step)).count() {
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
