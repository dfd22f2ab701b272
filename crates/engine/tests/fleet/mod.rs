//! Sessions as a fleet of coding agents has them: calls and results of all sizes, some of them parallel, some failing.

use deloop_types::{Body, Call, SessionId, Step, ToolResult, Turn, Usage};
use serde_json::{Value, json};

/// How many different sessions there are; the others are like one of them.
pub(crate) const SCRIPTS: usize = 48;

/// Makes sessions, each out of one of a few scripts under a name of its own.
#[derive(Clone)]
pub(crate) struct Fleet {
    scripts: Vec<Vec<Step>>,
}

impl Fleet {
    pub(crate) fn new(steps: usize) -> Self {
        Self { scripts: (0..SCRIPTS).map(|seed| script(seed as u64, steps)).collect() }
    }

    /// The steps of one session.
    pub(crate) fn session(&mut self, number: usize) -> &[Step] {
        let script = &mut self.scripts[number % SCRIPTS];
        let name = SessionId::from(format!("01994f0e-7c1d-7e4b-9c55-{number:012x}"));
        for step in script.iter_mut() {
            step.session.clone_from(&name);
        }
        script
    }

    /// The calls of the session with the fewest.
    pub(crate) fn calls_of_a_session(&self) -> usize {
        let calls = |steps: &Vec<Step>| {
            steps
                .iter()
                .map(|step| match &step.body {
                    Body::Turn(turn) => turn.calls.len(),
                    _ => 0,
                })
                .sum()
        };
        self.scripts.iter().map(calls).min().unwrap_or(0)
    }
}

/// Turns of one to three parallel calls with their results; now and then a text, a message and what it cost.
fn script(seed: u64, length: usize) -> Vec<Step> {
    let mut rng = Rng(seed);
    let tools = &TOOLS[..4 + rng.below(TOOLS.len() - 4)];
    let mut steps = Vec::with_capacity(length);
    let mut number = 0;
    while steps.len() < length {
        match rng.below(20) {
            0 => steps.push(Step::text("", words(&mut rng, 30))),
            1 => steps.push(Step::user("", words(&mut rng, 12))),
            2 => {
                let mut usage = Usage::default();
                usage.input_tokens = 9000;
                usage.output_tokens = 400;
                steps.push(Step::new("", Body::Usage(usage)));
            }
            _ => {
                let calls: Vec<Call> = (0..1 + rng.below(3))
                    .map(|_| {
                        number += 1;
                        let tool = tools[rng.below(tools.len())];
                        Call::new(tool.to_owned(), args(&mut rng, tool))
                            .with_id(format!("toolu_{seed:04x}{number:08x}"))
                    })
                    .collect();
                let text = if rng.below(2) == 0 { words(&mut rng, 20) } else { String::new() };
                let ids: Vec<Option<String>> = calls.iter().map(|call| call.id.clone()).collect();
                steps.push(Step::new("", Body::Turn(Turn::new(text, calls))));
                for id in ids {
                    let (ok, length) = (rng.below(6) > 0, [2, 6, 20, 90][rng.below(4)]);
                    let output = Value::from(words(&mut rng, length));
                    let mut result = ToolResult::default();
                    result.id = id;
                    result.ok = Some(ok);
                    result.output = output;
                    steps.push(Step::new("", Body::Result(result)));
                }
            }
        }
    }
    steps.truncate(length);
    steps
}

const TOOLS: [&str; 12] = [
    "Bash",
    "Read",
    "Edit",
    "Grep",
    "Glob",
    "Write",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Task",
    "mcp__tracker__get_issue",
    "mcp__browser__take_screenshot",
];

fn args(rng: &mut Rng, tool: &str) -> Value {
    let length = [2, 6, 12, 60][rng.below(4)];
    match tool {
        "Bash" => {
            json!({"command": format!("cargo test -p {} 2>&1 | tail -{}", words(rng, 2), rng.below(50)), "description": words(rng, 4)})
        }
        "Read" => {
            json!({"file_path": format!("/work/src/{}.rs", words(rng, 1)), "offset": rng.below(900), "limit": 100})
        }
        "Edit" => {
            json!({"file_path": "/work/src/main.rs", "old_string": words(rng, length), "new_string": words(rng, length)})
        }
        _ => json!({"query": words(rng, length), "options": {"deep": true, "most": rng.below(9)}}),
    }
}

fn words(rng: &mut Rng, count: usize) -> String {
    let word = |_| {
        format!(
            "{}{}",
            ["file", "check", "line ", "error", "value", "10:20:3", "src/", "ok"][rng.below(8)],
            rng.below(400)
        )
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// splitmix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap_or(0)
    }
}
