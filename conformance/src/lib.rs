//! A reference for the five document profiles of deloop: slow, plain, and written from the documents alone.
//!
//! An engine is right when it gives the same action and level as [`Reference`] for every step of the
//! [`vectors`] and of the sessions that [`random`] makes up.

mod behavioral;
mod canonical;
mod doom_loop;
pub mod random;
mod shell;
mod signature;
mod step;
mod swarm;
mod test_run;
mod turn_hash;
mod turn_similarity;
pub mod vectors;

use std::collections::HashMap;

use serde_json::Value;

use step::{Turn, Worker};
use swarm::Swarms;

/// The profiles this crate can judge by.
pub const PROFILES: [&str; 5] = ["behavioral", "signature", "doom-loop", "turn-similarity", "turn-hash"];

/// What a profile says about one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// `continue`, `warn`, `nudge`, `ask`, `block` or `stop`.
    pub action: String,
    /// The rung of the ladder, 0 for `continue`.
    pub level: u64,
}

/// A verdict and, where the document fixes its text, the message.
#[derive(Debug, Clone)]
struct Answer {
    action: &'static str,
    level: u64,
    message: Option<String>,
}

impl Answer {
    fn go_on() -> Self {
        Self::silent("continue", 0)
    }

    fn silent(action: &'static str, level: u64) -> Self {
        Self { action, level, message: None }
    }

    fn saying(action: &'static str, level: u64, message: impl Into<String>) -> Self {
        Self { action, level, message: Some(message.into()) }
    }

    fn strength(&self) -> (usize, u64) {
        let order = ["continue", "warn", "nudge", "ask", "block", "stop"];
        let rank = order.iter().position(|action| *action == self.action);
        (rank.unwrap_or(0), self.level)
    }

    /// The stronger of two; the earlier one on a tie.
    fn or(self, later: Self) -> Self {
        if later.strength() > self.strength() { later } else { self }
    }
}

/// One document's memory of one worker.
trait Judge {
    fn turn(&mut self, turn: &Turn, swarms: &mut Swarms) -> Answer;

    fn result(&mut self, _result: &Value) -> Answer {
        Answer::go_on()
    }
}

/// Judges steps by one profile, keeping everything it has ever seen.
pub struct Reference {
    start: fn() -> Box<dyn Judge>,
    workers: HashMap<Worker, Box<dyn Judge>>,
    swarms: Swarms,
    message: Option<String>,
}

impl Reference {
    /// A reference that has seen nothing yet.
    ///
    /// # Panics
    ///
    /// When `profile` is not one of [`PROFILES`]: a typing error must not pass for silence.
    pub fn new(profile: &str) -> Self {
        let start: fn() -> Box<dyn Judge> = match profile {
            "behavioral" => || Box::<behavioral::Behavioral>::default(),
            "signature" => || Box::<signature::Signature>::default(),
            "doom-loop" => || Box::<doom_loop::DoomLoop>::default(),
            "turn-similarity" => || Box::<turn_similarity::TurnSimilarity>::default(),
            "turn-hash" => || Box::<turn_hash::TurnHash>::default(),
            other => panic!("no profile `{other}`; the profiles are {PROFILES:?}"),
        };
        Self { start, workers: HashMap::new(), swarms: Swarms::default(), message: None }
    }

    /// Takes in one step, as it is on the wire, and judges it.
    pub fn observe(&mut self, step: &Value) -> Verdict {
        let answer = self.judge(step);
        self.message = answer.message;
        Verdict { action: answer.action.to_owned(), level: answer.level }
    }

    /// The message of the latest verdict, where the document fixes its text.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    fn judge(&mut self, step: &Value) -> Answer {
        let worker = Worker::of(step);
        match step["type"].as_str() {
            Some("end") => {
                self.workers.retain(|known, _| known.session != worker.session);
                Answer::go_on()
            }
            Some("turn" | "call") => {
                let turn = Turn::of(step);
                self.workers.entry(worker).or_insert_with(self.start).turn(&turn, &mut self.swarms)
            }
            Some("result") => self.workers.entry(worker).or_insert_with(self.start).result(step),
            _ => Answer::go_on(),
        }
    }
}
