//! What actors do over and over.

use serde_json::{Value, json};

use super::content::{cycle_turn, letters, masked, plain_call, read, sentence};
use super::editing;
use super::{Rng, Scene};

/// One turn: its text, its calls, and how likely they are to fail.
pub(super) struct Said {
    pub text: Option<String>,
    pub calls: Vec<Value>,
    pub fails: usize,
    pub tests: bool,
}

impl Said {
    fn calls(calls: Vec<Value>) -> Self {
        Self { text: None, calls, fails: 15, tests: false }
    }

    fn failing(call: Value, fails: usize, tests: bool) -> Self {
        Self { fails, tests, ..Self::calls(vec![call]) }
    }
}

/// A way to behave for a while.
pub(super) enum Habit {
    /// Anything.
    Noise,
    /// The same turns again and again, in order.
    Cycle(Vec<(Option<String>, Vec<Value>)>, usize),
    /// One call, with arguments that do not matter varied.
    Vary(Value),
    /// One file, by any verb.
    Read(&'static str),
    /// One call whose words are replaced one by one, this often in a hundred.
    Drift(Vec<String>, usize, usize),
    /// Arguments that differ in paths, times, ids and numbers only.
    Masked(usize),
    /// Test runs, with edits in between.
    Tests(usize),
    /// Shell commands that fail.
    Fail(usize),
    /// Text only, nearly the same.
    Talk(Vec<Vec<String>>),
    /// Edits of one file, with test runs in between.
    Edit(&'static str),
    /// Rewrites of a plan.
    Plan(editing::Planning),
    /// Calls whose task changes its state now and then.
    Task,
    /// Turns of several calls out of a few.
    Parallel(Vec<Value>, usize),
}

impl Habit {
    /// A habit, and for how many turns.
    pub fn choose(rng: &mut Rng, scene: &Scene, swarm: bool) -> (Self, usize) {
        let turns = 2 + rng.below(11);
        if scene.crowd && rng.percent(50) {
            let width = 4 + rng.below(5);
            return (Self::parallel(rng, scene, width), turns);
        }
        if swarm && rng.percent(35) {
            return (Self::Vary(scene.target.clone()), turns);
        }
        let habit = match rng.below(18) {
            0 => Self::Noise,
            1 | 2 => {
                let period = rng.pick(&[1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 7, 18, 20, 21]);
                let cycle: Vec<_> = (0..period).map(|at| cycle_turn(rng, scene, at)).collect();
                let rounds = if period > 10 { 2 } else { 2 + rng.below(4) };
                let turns = period * rounds + rng.below(period + 3);
                return (Self::Cycle(cycle, 0), turns);
            }
            3 => Self::Vary(plain_call(rng, scene.shell)),
            4 => Self::Read(rng.pick(&["foo.ts", "src/a.rs", "a|b.txt"])),
            5 => {
                let length = 4 + rng.below(37);
                Self::Drift(sentence(rng, length), 0, rng.pick(&[30, 60, 100]))
            }
            6 => Self::Masked(rng.below(4)),
            7 | 12 => Self::Tests(rng.pick(&[60, 85, 100, 100])),
            8 | 13 => Self::Fail(rng.pick(&[60, 85, 100])),
            9 | 10 => {
                let length = rng.pick(&[5, 12, 17, 34, 40]);
                let kinds = rng.pick(&[1, 1, 2, 6]);
                Self::Talk((0..kinds).map(|_| sentence(rng, length)).collect())
            }
            14 | 17 => Self::Edit(rng.pick(&["src/auth.py", "tests/auth_test.py", "src/api.test.ts"])),
            15 => return (Self::Plan(editing::Planning::choose(rng)), turns + 6),
            16 => return (Self::Task, turns + 10),
            _ => {
                let width = 2 + rng.below(3);
                Self::parallel(rng, scene, width)
            }
        };
        (habit, turns)
    }

    fn parallel(rng: &mut Rng, scene: &Scene, width: usize) -> Self {
        let kinds = 1 + rng.below(3);
        let calls = (0..kinds).map(|_| plain_call(rng, scene.shell)).collect();
        Self::Parallel(calls, width)
    }

    /// The next turn.
    pub fn act(&mut self, rng: &mut Rng, scene: &Scene) -> Said {
        let shell = scene.shell;
        match self {
            Self::Noise => Said::calls(vec![plain_call(rng, shell)]),
            Self::Cycle(turns, at) => {
                let (text, calls) = turns[*at % turns.len()].clone();
                *at += 1;
                Said { text, ..Said::calls(calls) }
            }
            Self::Vary(call) => {
                let mut call = call.clone();
                if rng.percent(60) && call["args"].is_object() {
                    call["args"]["timeout"] = json!(1000 * (1 + rng.below(4)));
                }
                Said::calls(vec![call])
            }
            Self::Read(file) => Said::calls(vec![read(rng, shell, file)]),
            Self::Drift(words, at, chance) => {
                if rng.percent(*chance) {
                    let place = *at % words.len();
                    words[place] = format!("new{}", letters(*at));
                    *at += 1;
                }
                let args = json!({"query": words.join(" ")});
                Said::calls(vec![json!({"tool": "search", "args": args})])
            }
            Self::Masked(kind) => Said::calls(vec![masked(rng, *kind)]),
            Self::Tests(fails) => {
                if rng.percent(30) {
                    return Said::calls(vec![plain_call(rng, shell)]);
                }
                let commands =
                    ["cargo test", "pytest -q", "npm test", "go test ./...", "cargo test 2>&1 | tail -5"];
                let args = json!({"command": rng.pick(&commands)});
                Said::failing(json!({"tool": shell, "args": args}), *fails, true)
            }
            Self::Fail(fails) => {
                let command =
                    format!("{} {}", rng.pick(&["make", "sed -i s/a/b/", "ls"]), letters(rng.below(40)));
                let args = json!({ "command": command });
                Said::failing(json!({"tool": shell, "args": args}), *fails, false)
            }
            Self::Talk(sentences) => {
                let mut words = rng.pick(sentences);
                for _ in 0..rng.pick(&[0, 0, 0, 1, 2, 3, 4]) {
                    let fresh = format!("so{}", letters(rng.below(200)));
                    if rng.percent(50) {
                        words.push(fresh);
                    } else {
                        let at = rng.below(words.len());
                        words[at] = fresh;
                    }
                }
                let mut text = words.join(rng.pick(&[" ", " ", "\n"]));
                if rng.percent(20) {
                    text = text.to_uppercase();
                }
                Said { text: Some(text), ..Said::calls(Vec::new()) }
            }
            Self::Edit(file) => match rng.below(10) {
                0 | 1 => Said::failing(editing::test_run(rng, shell), 80, true),
                2 => Said::calls(vec![plain_call(rng, shell)]),
                3 => Said::calls(vec![editing::edit(rng, file), editing::edit(rng, "src/other.py")]),
                _ => Said::calls(vec![editing::edit(rng, file)]),
            },
            Self::Plan(planning) => Said::calls(vec![editing::plan(rng, planning)]),
            Self::Task => match rng.below(12) {
                0 => Said::calls(vec![editing::task(rng)]),
                1 => Said::failing(editing::test_run(rng, shell), 90, true),
                _ => Said::calls(vec![plain_call(rng, shell)]),
            },
            Self::Parallel(calls, width) => {
                let calls = (0..*width).map(|_| rng.pick(calls)).collect();
                Said::calls(calls)
            }
        }
    }
}
