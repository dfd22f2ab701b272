//! A session that looks at something again and again, as Steps.

use std::fmt;

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said};

const START: u64 = 1_763_460_000_000;

/// What the model takes to answer if it doesn't wait, in milliseconds.
const THINKING: u64 = 2_000;

/// The time between two looks.
#[derive(Clone, Copy)]
pub(super) struct Gap {
    pub(super) seconds: u64,
    /// Whether a call of `sleep` makes the gap. Otherwise nothing happens in between.
    pub(super) sleeps: bool,
    /// Whether the steps have a `ts`.
    pub(super) timed: bool,
}

impl Gap {
    pub(super) const fn pause(seconds: u64) -> Self {
        Self { seconds, sleeps: false, timed: true }
    }

    const fn sleep(seconds: u64) -> Self {
        Self { seconds, sleeps: true, timed: true }
    }

    const fn untimed(self) -> Self {
        Self { timed: false, ..self }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gap {} s", self.seconds)?;
        f.write_str(if self.sleeps { " by a sleep call" } else { "" })?;
        f.write_str(if self.timed { "" } else { ", steps without ts" })
    }
}

/// Gaps in which nothing happens.
pub(super) const PAUSES: [Gap; 4] = [Gap::pause(2), Gap::pause(15), Gap::pause(60), Gap::pause(1_800)];

/// [`PAUSES`], and the same session without times.
pub(super) const PAUSES_OR_UNTIMED: [Gap; 5] =
    [PAUSES[0], PAUSES[1], PAUSES[2], PAUSES[3], PAUSES[2].untimed()];

/// The gaps of an agent that has a shell: it can also call `sleep`.
pub(super) const SHELL: [Gap; 10] = [
    PAUSES[0],
    PAUSES[1],
    PAUSES[2],
    PAUSES[3],
    Gap::sleep(2),
    Gap::sleep(15),
    Gap::sleep(60),
    Gap::sleep(1_800),
    PAUSES[2].untimed(),
    Gap::sleep(60).untimed(),
];

/// A call and its result.
pub(super) struct Look {
    tool: &'static str,
    args: Value,
    result: Value,
    seconds: f64,
}

impl Look {
    /// A call that succeeds.
    pub(super) fn new(tool: &'static str, args: Value, output: impl Into<Value>) -> Self {
        Self { tool, args, result: json!({"ok": true, "output": output.into()}), seconds: 0.6 }
    }

    /// A command that succeeds.
    pub(super) fn shell(command: impl Into<String>, output: impl Into<Value>) -> Self {
        Self::new("bash", json!({"command": command.into()}), output)
    }

    pub(super) fn fails(mut self) -> Self {
        self.result["ok"] = false.into();
        self
    }

    /// Replaces `ok` by an outcome.
    pub(super) fn ends(mut self, outcome: &str) -> Self {
        let result = self.result.as_object_mut().unwrap();
        result.remove("ok");
        result.insert("outcome".into(), outcome.into());
        self
    }

    /// Leaves it to the output to report how the call ended.
    pub(super) fn unreported(mut self) -> Self {
        self.result.as_object_mut().unwrap().remove("ok");
        self
    }

    pub(super) fn takes(mut self, seconds: f64) -> Self {
        self.seconds = seconds;
        self
    }
}

/// A session of one case. Looks count from 1.
pub(super) struct Session {
    pub(super) case: String,
    pub(super) gap: Gap,
    pub(super) looks: usize,
    steps: Vec<Value>,
    /// The look that each step belongs to.
    look_of: Vec<usize>,
    /// What each look uses.
    usage: Option<Value>,
    now: u64,
}

impl Session {
    /// Starts a session whose looks have a normal price: $0.0165 each.
    pub(super) fn new(case: &str, gap: Gap) -> Self {
        let usage = json!({"model": "claude-sonnet-4-5", "cache_read_tokens": 40_000, "output_tokens": 300});
        let case = case.to_owned();
        Self { case, gap, looks: 0, steps: Vec::new(), look_of: Vec::new(), usage: Some(usage), now: START }
    }

    /// Sets what each look uses.
    pub(super) fn using(mut self, usage: impl Into<Option<Value>>) -> Self {
        self.usage = usage.into();
        self
    }

    /// A prompt, and so many looks.
    pub(super) fn looking(mut self, looks: usize, look: impl Fn(usize) -> Look) -> Self {
        self.prompt("Release version 2.4.", "human");
        (0..looks).for_each(|index| self.look(look(index)));
        self
    }

    pub(super) fn prompt(&mut self, text: &str, origin: &str) {
        self.push(json!({"type": "user", "text": text, "origin": origin}));
    }

    /// Lets the gap pass; after the first look, as part of it.
    pub(super) fn wait(&mut self) {
        if self.looks == 0 {
            self.now += THINKING;
        } else if self.gap.sleeps {
            let seconds = self.gap.seconds;
            self.call(Look::shell(format!("sleep {seconds}"), "").takes(to_seconds(seconds)));
            self.now += THINKING;
        } else {
            self.now += self.gap.seconds * 1_000;
        }
    }

    /// Waits, and looks.
    pub(super) fn look(&mut self, look: Look) {
        self.wait();
        self.looks += 1;
        self.pay_and(look);
    }

    /// Waits, gets a message, makes a call if there is one, and answers.
    pub(super) fn beat(&mut self, (text, origin): (&str, &str), look: Option<Look>, answer: &str) {
        self.wait();
        self.looks += 1;
        self.prompt(text, origin);
        self.now += THINKING;
        look.into_iter().for_each(|look| self.pay_and(look));
        self.says(answer);
    }

    /// Makes a call that never gets a result.
    pub(super) fn call_without_result(&mut self, tool: &str, args: &Value) {
        self.wait();
        self.looks += 1;
        let id = self.steps.len().to_string();
        self.push(json!({"type": "call", "id": id, "tool": tool, "args": args}));
        self.pay();
    }

    /// Does something else between two looks.
    pub(super) fn works(&mut self, work: Look) {
        self.now += THINKING;
        self.call(work);
    }

    /// A turn without calls, which costs what a look does.
    pub(super) fn says(&mut self, text: &str) {
        self.push(json!({"type": "turn", "text": text, "calls": []}));
        self.pay();
    }

    fn call(&mut self, look: Look) {
        let id = self.steps.len().to_string();
        self.push(json!({"type": "call", "id": id, "tool": look.tool, "args": look.args}));
        self.come_back(&id, look);
    }

    fn pay_and(&mut self, look: Look) {
        let id = self.steps.len().to_string();
        self.push(json!({"type": "call", "id": id, "tool": look.tool, "args": look.args}));
        self.pay();
        self.come_back(&id, look);
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few seconds")]
    fn come_back(&mut self, id: &str, look: Look) {
        self.now += (look.seconds * 1_000.0) as u64;
        let mut result = look.result;
        result["type"] = "result".into();
        result["id"] = id.into();
        self.push(result);
    }

    fn pay(&mut self) {
        if let Some(mut usage) = self.usage.clone() {
            usage["type"] = "usage".into();
            self.push(usage);
        }
    }

    fn push(&mut self, mut step: Value) {
        if self.gap.timed {
            step["ts"] = self.now.into();
        }
        self.steps.push(step);
        self.look_of.push(self.looks);
    }

    /// Runs it, and returns what deloop did up to the first stop.
    pub(super) fn decisions(&self, arguments: &[&str]) -> Vec<Decision> {
        let home = tempfile::tempdir().unwrap();
        let input: String = self.steps.iter().map(|step| format!("{step}\n")).collect();
        let output = run(deloop(home.path()).arg("stream").args(arguments), input.as_bytes());
        assert!(output.status.success(), "{}, {}: {}", self.case, self.gap, said(&output));
        let answers = lines(&output.stdout);
        assert_eq!(answers.len(), self.steps.len(), "{}, {}: an answer a step", self.case, self.gap);
        let mut decisions: Vec<Decision> = Vec::new();
        for (answer, look) in answers.into_iter().zip(&self.look_of) {
            if answer["action"] != "continue" {
                decisions.push(Decision { look: *look, answer });
            }
            if decisions.last().is_some_and(|d| d.action() == "stop") {
                break;
            }
        }
        decisions
    }
}

fn to_seconds(seconds: u64) -> f64 {
    std::time::Duration::from_secs(seconds).as_secs_f64()
}

/// An answer other than `continue`.
pub(super) struct Decision {
    pub(super) look: usize,
    answer: Value,
}

impl Decision {
    pub(super) fn action(&self) -> &str {
        self.answer["action"].as_str().unwrap_or_default()
    }

    /// Whether it only messages the agent or the person.
    pub(super) fn is_message(&self) -> bool {
        matches!(self.action(), "nudge" | "warn")
    }

    pub(super) fn message(&self) -> &str {
        let text = |key: &str| self.answer[key].as_str();
        text("message").or_else(|| text("user_message")).unwrap_or_default()
    }

    /// The detectors that decided: those whose summary is what the person is told, or else all.
    pub(super) fn detectors(&self) -> Vec<&str> {
        let told = self.answer["user_message"].as_str().unwrap_or_default();
        let findings: Vec<&Value> = self.answer["findings"].as_array().into_iter().flatten().collect();
        let decided = |finding: &&Value| finding["summary"].as_str().is_some_and(|s| told.contains(s));
        let mut deciding: Vec<&Value> = findings.iter().copied().filter(decided).collect();
        if deciding.is_empty() {
            deciding = findings;
        }
        deciding.into_iter().filter_map(|finding| finding["detector"].as_str()).collect()
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.detectors().join(", ");
        write!(f, "look {}: {} by {by}: {}", self.look, self.action(), self.message())
    }
}
