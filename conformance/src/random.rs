//! Made-up sessions, the same for the same seed, that reach every rung of every profile often.

mod actor;
mod content;
mod editing;
mod habit;
mod outcome;

use std::collections::HashMap;

use serde_json::{Value, json};

use actor::Actor;

/// Interleaved sessions of 30 to 200 steps in all.
pub fn steps(seed: u64) -> Vec<Value> {
    let mut rng = Rng::new(seed);
    let scene = Scene::new(&mut rng);
    let mut actors = scene.actors(&mut rng);
    let length = 30 + rng.below(171);
    let mut steps = Vec::with_capacity(length);
    let mut current = 0;
    // The steps of each session so far: a delivery names one of them.
    let mut counts: HashMap<Value, usize> = HashMap::new();
    while steps.len() < length {
        // Mostly the same actor goes on, so that runs are seen both whole and interleaved.
        if rng.percent(35) {
            current = rng.below(actors.len());
        }
        let actor = &mut actors[current];
        let said = actor.last_step(&counts);
        let mut step = match said {
            Some(said) if rng.percent(6) => json!({"type": "delivery", "step": said, "ok": rng.percent(25)}),
            _ if rng.percent(6) => aside(&mut rng, steps.len(), actor),
            _ => actor.next(&mut rng, &scene),
        };
        actor.sign(&mut rng, &mut step, steps.len());
        match step["type"].as_str() {
            Some("end") => drop(counts.remove(&step["session"])),
            Some("state") => {}
            _ => *counts.entry(step["session"].clone()).or_default() += 1,
        }
        steps.push(step);
    }
    steps
}

/// The same sessions as text, one step a line, the keys of every object in a random order.
pub fn lines(seed: u64) -> Vec<String> {
    let mut rng = Rng::new(!seed);
    let steps = steps(seed);
    steps.iter().map(|step| shuffled(&mut rng, step)).collect()
}

fn shuffled(rng: &mut Rng, value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let mut members: Vec<String> = object
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::String(key.clone()), shuffled(rng, value)))
                .collect();
            for i in (1..members.len()).rev() {
                members.swap(i, rng.below(i + 1));
            }
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| shuffled(rng, item)).collect();
            format!("[{}]", items.join(","))
        }
        plain => plain.to_string(),
    }
}

/// A step that no document counts, or that forgets the session or its swarm.
fn aside(rng: &mut Rng, index: usize, actor: &Actor) -> Value {
    match rng.below(21) {
        0..=3 => json!({"type": "user", "text": "Please go on.", "origin": "harness"}),
        4..=6 => json!({"type": "user", "text": "Try the other file.", "origin": "human"}),
        7 => json!({"type": "user", "text": "Hm."}),
        8..=9 => {
            json!({"type": "usage", "model": "m", "input_tokens": 900, "output_tokens": 40, "cost_usd": 0.5})
        }
        10..=11 => json!({"type": "compact"}),
        12 => json!({"type": "delivery", "step": index, "ok": false}),
        13 => json!({"type": "turn", "text": " \n"}),
        14 => json!({"type": "turn", "calls": []}),
        15 => json!({"type": "embedding", "step": index, "embedding": [0.6, 0.8]}),
        16 if rng.percent(30) => json!({"type": "intervention"}),
        17..=18 => json!({"type": "state"}),
        19 if actor.in_swarm() && rng.percent(50) => json!({"type": "swarm_end"}),
        _ if rng.percent(60) => json!({"type": "end"}),
        _ => json!({"type": "compact"}),
    }
}

/// What all actors of one case share.
struct Scene {
    /// The name of the shell tool.
    shell: &'static str,
    /// The call on which a whole swarm may be stuck.
    target: Value,
    /// How many swarms the sessions are spread over.
    swarms: usize,
    /// Whether turns have many calls, so that a swarm's tally overflows.
    crowd: bool,
}

impl Scene {
    fn new(rng: &mut Rng) -> Self {
        let shells = ["bash", "bash", "Bash", "shell", "run_command"];
        let shell = rng.pick(&shells);
        Self { shell, target: content::plain_call(rng, shell), swarms: rng.below(3), crowd: rng.percent(12) }
    }

    fn actors(&self, rng: &mut Rng) -> Vec<Actor> {
        let sessions = 1 + rng.below(3);
        let mut actors = Vec::new();
        for number in 0..sessions {
            let session = rng.percent(90).then(|| format!("s{number}"));
            let swarm = rng.below(self.swarms + 1);
            let swarm = (swarm > 0).then(|| format!("w{swarm}"));
            let agents = [1, 1, 2, 3];
            for agent in 0..rng.pick(&agents) {
                let agent = (agent > 0 || rng.percent(20)).then(|| format!("a{agent}"));
                actors.push(Actor::new(rng, session.clone(), agent, swarm.clone()));
            }
        }
        actors
    }
}

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// True this often in a hundred.
    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}
