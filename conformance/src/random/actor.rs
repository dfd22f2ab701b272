//! One worker of a made-up case: what it does next, and which results it still owes.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::habit::{Habit, Said};
use super::outcome;
use super::{Rng, Scene};

pub(super) struct Actor {
    session: Option<String>,
    agent: Option<String>,
    swarm: Option<String>,
    /// How often in a hundred a step names its task.
    tasks: usize,
    ids: bool,
    reuses_ids: bool,
    results: bool,
    call_steps: usize,
    timestamps: bool,
    habit: Habit,
    left: usize,
    serial: usize,
    owed: Vec<Value>,
    /// Parallel calls arrive one by one, with the id of their turn.
    splits: bool,
    /// Such calls, still to come.
    rest: Vec<Value>,
    /// The last turn: a resumed run repeats it.
    last: Option<Value>,
}

impl Actor {
    pub fn new(rng: &mut Rng, session: Option<String>, agent: Option<String>, swarm: Option<String>) -> Self {
        Self {
            session,
            agent,
            swarm,
            tasks: rng.pick(&[0, 0, 0, 97, 100]),
            ids: rng.percent(70),
            reuses_ids: rng.percent(20),
            results: rng.percent(85),
            call_steps: rng.pick(&[0, 30, 60, 100]),
            timestamps: rng.percent(30),
            habit: Habit::Noise,
            left: 0,
            serial: 0,
            owed: Vec::new(),
            splits: rng.percent(30),
            rest: Vec::new(),
            last: None,
        }
    }

    /// Writes on a step whose it is.
    pub fn sign(&self, rng: &mut Rng, step: &mut Value, index: usize) {
        if rng.percent(self.tasks) {
            // Two tasks at a time, which agents of a session share.
            step["task"] = json!((self.serial / 60 + usize::from(rng.percent(5))).to_string());
        }
        let fields = [("session", &self.session), ("agent", &self.agent), ("swarm", &self.swarm)];
        for (key, value) in fields {
            if let Some(value) = value {
                step[key] = json!(value);
            }
        }
        if self.timestamps {
            step["ts"] = json!(1_700_000_000_000_u64 + index as u64 * 1500);
        }
    }

    /// The latest step of its session, if there was one.
    pub fn last_step(&self, counts: &HashMap<Value, usize>) -> Option<usize> {
        counts.get(&json!(self.session))?.checked_sub(1)
    }

    /// Whether its steps name a swarm.
    pub fn in_swarm(&self) -> bool {
        self.swarm.is_some()
    }

    /// A result that is owed, or the next turn.
    pub fn next(&mut self, rng: &mut Rng, scene: &Scene) -> Value {
        if let Some(step) = self.rest.pop() {
            return step;
        }
        if self.ids
            && rng.percent(3)
            && let Some(last) = &self.last
        {
            return last.clone();
        }
        if !self.owed.is_empty() && rng.percent(92) {
            // Parallel calls with ids come back in any order.
            let which = if self.ids { rng.below(self.owed.len()) } else { 0 };
            let mut result = self.owed.remove(which);
            if self.ids && rng.percent(4) {
                match rng.below(3) {
                    0 => self.owed.push(result.clone()),
                    1 => result["id"] = json!("nobody"),
                    _ => drop(result.as_object_mut().map(|result| result.remove("id"))),
                }
            }
            return result;
        }
        if self.left == 0 {
            (self.habit, self.left) = Habit::choose(rng, scene, self.swarm.is_some());
        }
        self.left -= 1;
        let said = self.habit.act(rng, scene);
        let turn = self.turn(rng, said);
        self.last = Some(turn.clone());
        turn
    }

    fn turn(&mut self, rng: &mut Rng, mut said: Said) -> Value {
        for call in &mut said.calls {
            self.serial += 1;
            let mut result = outcome::result(rng, said.fails, said.tests);
            if self.ids {
                let number = if self.reuses_ids { self.serial % 7 } else { self.serial };
                call["id"] = json!(format!("c{number}"));
                result["id"] = call["id"].clone();
            }
            if self.results && rng.percent(97) {
                self.owed.push(result);
            }
        }
        if let [call] = said.calls.as_slice()
            && said.text.is_none()
            && rng.percent(self.call_steps)
        {
            let mut step = call.clone();
            step["type"] = json!("call");
            return step;
        }
        if self.splits && said.calls.len() > 1 {
            self.rest = said.calls.iter().rev().cloned().collect();
            for step in &mut self.rest {
                step["type"] = json!("call");
                step["turn_id"] = json!(format!("t{}", self.serial));
            }
            let mut first = self.rest.pop().unwrap_or_default();
            if let Some(text) = said.text {
                first = json!({"type": "turn", "text": text, "turn_id": first["turn_id"].clone(), "calls": [without_turn(first)]});
            }
            return first;
        }
        let mut step = json!({"type": "turn"});
        if let Some(text) = said.text {
            step["text"] = json!(text);
        } else if rng.percent(10) {
            step["text"] = json!("");
        }
        if !said.calls.is_empty() || rng.percent(10) {
            step["calls"] = json!(said.calls);
        }
        step
    }
}

/// A call as it stands in a turn.
fn without_turn(mut call: Value) -> Value {
    if let Some(call) = call.as_object_mut() {
        call.remove("type");
        call.remove("turn_id");
    }
    call
}
