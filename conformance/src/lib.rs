//! A reference for the five document profiles of deloop: slow, plain, and written from the documents alone.
//!
//! An engine is right when it gives the same action and level as [`Reference`] for every step of the
//! [`vectors`] and of the sessions that [`random`] makes up.

mod behavioral;
mod canonical;
mod doom_loop;
pub mod random;
mod seen;
mod shell;
mod signature;
mod step;
mod swarm;
mod test_run;
mod turn_hash;
mod turn_similarity;
pub mod vectors;
mod work;

use std::collections::HashMap;

use serde_json::Value;

use seen::SeenCalls;
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
    /// Every finding's detector and count, in order; `None` for a profile whose findings are not checked.
    pub findings: Option<Vec<(&'static str, u64)>>,
}

/// A verdict and, where the document fixes its text, the message.
#[derive(Debug, Clone)]
struct Answer {
    action: &'static str,
    level: u64,
    message: Option<String>,
    findings: Vec<(&'static str, u64)>,
}

impl Answer {
    fn go_on() -> Self {
        Self::silent("continue", 0)
    }

    fn silent(action: &'static str, level: u64) -> Self {
        Self { action, level, message: None, findings: Vec::new() }
    }

    fn saying(action: &'static str, level: u64, message: impl Into<String>) -> Self {
        Self { action, level, message: Some(message.into()), findings: Vec::new() }
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

    /// Whether a stop ends the whole session: "the session is done".
    fn stop_ends_session(&self) -> bool {
        false
    }

    /// Whether a stop clears all that is known of the worker.
    fn stop_clears(&self) -> bool {
        false
    }

    /// Whether it compares turns, not calls.
    fn counts_turns(&self) -> bool {
        false
    }

    fn result(&mut self, _result: &Value) -> Answer {
        Answer::go_on()
    }

    /// Whether the message of the decision at `step` reached the agent.
    fn delivery(&mut self, _step: u64, _ok: bool) {}

    /// The embedding of the turn at `step`, which was not known with it.
    fn embedding(&mut self, _step: u64, _vector: &Value) -> Answer {
        Answer::go_on()
    }
}

/// Judges steps by one profile, keeping everything it has ever seen.
pub struct Reference {
    lists_findings: bool,
    start: fn() -> Box<dyn Judge>,
    workers: HashMap<Worker, Box<dyn Judge>>,
    swarms: Swarms,
    /// The sessions that were ended, with the stop that ended them.
    ended: HashMap<String, Answer>,
    seen: HashMap<Worker, SeenCalls>,
    /// How many steps each session has had.
    steps: HashMap<String, u64>,
    message: Option<String>,
}

impl Reference {
    /// A reference that has seen nothing yet.
    ///
    /// # Panics
    ///
    /// When `profile` is not one of [`PROFILES`]: a typing error must not pass for silence.
    pub fn new(profile: &str) -> Self {
        Self::with_config(profile, &Value::Null)
    }

    /// A reference with settings over those of the profile. The only one it knows is what similar-turn compares by.
    ///
    /// # Panics
    ///
    /// As [`Reference::new`].
    pub fn with_config(profile: &str, config: &Value) -> Self {
        let by_embeddings = config["detectors"]["similar-turn"]["by"] == "embeddings";
        let start: fn() -> Box<dyn Judge> = match profile {
            "turn-similarity" if by_embeddings => {
                || Box::new(turn_similarity::TurnSimilarity::by_embeddings())
            }
            "behavioral" => || Box::<behavioral::Behavioral>::default(),
            "signature" => || Box::<signature::Signature>::default(),
            "doom-loop" => || Box::<doom_loop::DoomLoop>::default(),
            "turn-similarity" => || Box::<turn_similarity::TurnSimilarity>::default(),
            "turn-hash" => || Box::<turn_hash::TurnHash>::default(),
            other => panic!("no profile `{other}`; the profiles are {PROFILES:?}"),
        };
        Self {
            lists_findings: profile == "behavioral",
            start,
            workers: HashMap::new(),
            swarms: Swarms::default(),
            ended: HashMap::new(),
            seen: HashMap::new(),
            steps: HashMap::new(),
            message: None,
        }
    }

    /// Takes in one step, as it is on the wire, and judges it.
    pub fn observe(&mut self, step: &Value) -> Verdict {
        let answer = self.judge(step);
        self.message = answer.message;
        let findings = self.lists_findings.then_some(answer.findings);
        Verdict { action: answer.action.to_owned(), level: answer.level, findings }
    }

    /// The message of the latest verdict, where the document fixes its text.
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    fn judge(&mut self, step: &Value) -> Answer {
        let worker = Worker::of(step);
        let kind = step["type"].as_str();
        if kind == Some("state") {
            // A question: nothing happened.
            return Answer::go_on();
        }
        let index = self.steps.entry(worker.session.clone()).or_default();
        *index += 1;
        let index = *index - 1;
        if kind == Some("swarm_end") {
            self.swarms.end(step["swarm"].as_str().unwrap_or_default());
        }
        if kind == Some("intervention") {
            self.ended.remove(&worker.session);
        }
        if let Some(stop) = self.ended.get(&worker.session).filter(|_| kind != Some("end")) {
            return stop.clone();
        }
        match kind {
            Some("end") => {
                self.steps.remove(&worker.session);
                self.workers.retain(|known, _| known.session != worker.session);
                self.seen.retain(|known, _| known.session != worker.session);
                self.ended.remove(&worker.session);
                self.swarms.runs.end(&worker.session);
                Answer::go_on()
            }
            Some("turn" | "call") => {
                let mut turn = Turn::of(step);
                let seen = self.seen.entry(worker.clone()).or_default();
                let calls = turn.calls.len();
                let first = !seen.continues(turn.id.as_deref());
                let over = seen.turn_over();
                turn.continued = !first;
                let whole = turn.clone();
                turn.calls.retain(|call| seen.enter(call, first, over));
                // Nothing but calls that were seen before: a resumed run repeats itself.
                if turn.calls.is_empty() && calls > 0 {
                    return Answer::go_on();
                }
                seen.begin(turn.id.as_deref());
                let session = worker.session.clone();
                let judge = self.workers.entry(worker).or_insert_with(self.start);
                // More of a turn that has begun is calls, never a turn.
                if !first && (turn.calls.is_empty() || judge.counts_turns()) {
                    return Answer::go_on();
                }
                let mut turn = if judge.counts_turns() { whole } else { turn };
                turn.step = index;
                let answer = judge.turn(&turn, &mut self.swarms);
                if answer.action == "stop" && judge.stop_clears() {
                    self.seen.remove(&turn.worker);
                }
                if answer.action == "stop" && judge.stop_ends_session() {
                    self.ended.insert(session, answer.clone());
                }
                answer
            }
            Some("result") => {
                self.seen.entry(worker.clone()).or_default().answer(step["id"].as_str());
                self.workers.entry(worker).or_insert_with(self.start).result(step)
            }
            Some("delivery") => {
                if let (Some(at), Some(ok)) = (step["step"].as_u64(), step["ok"].as_bool())
                    && let Some(judge) = self.workers.get_mut(&worker)
                {
                    judge.delivery(at, ok);
                }
                Answer::go_on()
            }
            Some("embedding") => {
                let session = worker.session.clone();
                let judge = self.workers.entry(worker.clone()).or_insert_with(self.start);
                let answer = judge.embedding(step["step"].as_u64().unwrap_or(u64::MAX), &step["embedding"]);
                if answer.action == "stop" && judge.stop_clears() {
                    self.seen.remove(&worker);
                }
                if answer.action == "stop" && judge.stop_ends_session() {
                    self.ended.insert(session, answer.clone());
                }
                answer
            }
            _ => Answer::go_on(),
        }
    }
}
