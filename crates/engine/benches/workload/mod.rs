//! The steps that both benchmarks drive: calls of 200 bytes of arguments, results of 2 KB, no two of them alike.

use deloop_engine::{Checkpoint, Guard};
use deloop_policy::Profile;
use deloop_types::{Body, Call, SessionId, Step, ToolResult, Turn};
use serde_json::{Value, json};

/// How many different steps there are: more than any window holds, so that nothing is found.
const DIFFERENT: usize = 150;

/// A session with its steps, ready to go on.
pub(crate) struct Run {
    guard: Guard,
    session: SessionId,
    calls: Vec<Step>,
    results: Vec<Step>,
    failures: Vec<Step>,
    lines: Vec<String>,
    next: usize,
}

impl Run {
    /// A session of `profile` that has had `steps` steps: calls, each with its result.
    pub(crate) fn new(profile: &str, steps: usize) -> Self {
        let calls: Vec<Step> = (0..DIFFERENT).map(call).collect();
        let lines = calls.iter().map(|step| serde_json::to_string(step).expect("a Step can be written"));
        let mut run = Self {
            guard: Guard::new(Profile::named(profile).expect("it comes with deloop")),
            session: SessionId::from("bench"),
            lines: lines.collect(),
            results: (0..DIFFERENT).map(|number| result(number, true)).collect(),
            failures: (0..DIFFERENT).map(|number| result(number, false)).collect(),
            calls,
            next: 0,
        };
        (0..steps / 2).for_each(|_| run.call_and_result());
        run
    }

    /// What the session is now.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        let checkpoint = self.guard.checkpoint(&self.session).expect("it can be written");
        checkpoint.expect("the session is there")
    }

    /// Puts the session back to what it was.
    pub(crate) fn restore(&self, checkpoint: Checkpoint) {
        self.guard.restore(&self.session, checkpoint).expect("it is of this profile");
    }

    /// One call that is already parsed.
    pub(crate) fn call(&mut self) {
        self.next = (self.next + 1) % DIFFERENT;
        std::hint::black_box(self.guard.observe(&self.calls[self.next]));
    }

    /// One call and its result.
    pub(crate) fn call_and_result(&mut self) {
        self.call();
        std::hint::black_box(self.guard.observe(&self.results[self.next]));
    }

    /// One call and its result, a failure.
    pub(crate) fn call_and_failure(&mut self) {
        self.call();
        std::hint::black_box(self.guard.observe(&self.failures[self.next]));
    }

    /// Reads the line of one call.
    pub(crate) fn parse(&mut self) {
        self.next = (self.next + 1) % DIFFERENT;
        let step = Step::from_slice(std::hint::black_box(self.lines[self.next].as_bytes()));
        drop(std::hint::black_box(step));
    }
}

/// A shell call with 200 bytes of arguments: the kind of call that most is asked of.
fn call(number: usize) -> Step {
    let mut args = json!({
        "command": format!("cd /work/service-{number} && cargo test -p core 'tests::case_{number}' -- --nocapture 2>&1 | tail -n 40"),
        "description": format!("Run the tests of {} once more ", NAMES[number % NAMES.len()]),
        "timeout": 120_000,
    });
    while args.to_string().len() < 200 {
        let text = args["description"].as_str().unwrap_or_default().to_owned();
        args["description"] = Value::String(text + "x");
    }
    assert_eq!(args.to_string().len(), 200, "the arguments are 200 bytes");
    let call = Call::new("Bash", args).with_id(format!("toolu_01{number:020}"));
    Step::new("bench", Body::Turn(Turn::new("", vec![call])))
}

/// What a test run prints, 2 KB of it, with the times and numbers that are masked.
fn result(number: usize, ok: bool) -> Step {
    let mut output = format!("running {} tests\n", number + 12);
    for line in 0_usize.. {
        let word = NAMES[(number + line) % NAMES.len()];
        output +=
            &format!("test core::{word}::case_{line}_of_{number} ... ok ({}.{:02}s)\n", line % 3, line % 97);
        if line % 7 == 0 {
            output += &format!(
                "[2026-01-31T10:20:{:02}Z INFO {word}] worker pid {} done\n",
                line % 60,
                4000 + line
            );
        }
        if output.len() >= 2048 {
            break;
        }
    }
    output.truncate(2048);
    let id = Some(format!("toolu_01{number:020}"));
    let mut result = ToolResult::default();
    result.id = id;
    result.ok = Some(ok);
    result.output = Value::String(output);
    Step::new("bench", Body::Result(result))
}

const NAMES: [&str; 7] = ["ledger", "parser", "cache", "router", "index", "journal", "scheduler"];
