//! Sessions that `default` once judged wrongly, rebuilt small: each is either honest work that must stay undisturbed, or
//! a loop that must be found. Everything goes through the real binary.

mod found;
mod silent;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said};

/// A call with the result it gets, unless deloop blocks it.
#[derive(Clone)]
struct Done {
    tool: &'static str,
    args: Value,
    /// The fields of the result: `ok`, `outcome`, `output`.
    result: Value,
    seconds: i64,
}

fn done(tool: &'static str, args: Value, result: Value) -> Done {
    Done { tool, args, result, seconds: 1 }
}

/// A shell command that succeeds.
fn passes(command: &str, output: &str) -> Done {
    done("Bash", json!({"command": command}), json!({"ok": true, "output": output}))
}

/// A shell command that fails.
fn fails(command: &str, output: &str) -> Done {
    done("Bash", json!({"command": command}), json!({"ok": false, "output": output}))
}

/// An edit that succeeds.
fn edit(path: &str, old: &str, new: &str) -> Done {
    let args = json!({"file_path": path, "old_string": old, "new_string": new});
    done("Edit", args, json!({"ok": true, "output": format!("The file {path} has been updated.")}))
}

/// An agent that keeps `deloop stream` open beside it: it sends each step, and obeys the answer.
struct Agent {
    process: Child,
    input: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// What every step carries: the worker, its session, its swarm.
    who: Value,
    /// Whether steps carry times.
    timed: bool,
    now: i64,
    calls: usize,
    decisions: Vec<Value>,
    /// How many calls were made, not blocked.
    made: usize,
    _home: tempfile::TempDir,
}

impl Agent {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(arguments: &[&str]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = deloop(home.path());
        command.args(["stream", "--profile", "default"]).args(arguments);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self {
            process,
            input,
            answers,
            who: json!({}),
            timed: true,
            now: 1_780_000_000_000,
            calls: 0,
            decisions: Vec::new(),
            made: 0,
            _home: home,
        }
    }

    fn without_times() -> Self {
        let mut agent = Self::new();
        agent.timed = false;
        agent
    }

    /// Sends a step and waits for the answer.
    #[expect(clippy::needless_pass_by_value, reason = "a step reads better with its JSON in place")]
    fn send(&mut self, step: Value) -> Value {
        let mut line = self.who.as_object().unwrap().clone();
        line.extend(step.as_object().unwrap().clone());
        if self.timed {
            line.insert("ts".to_owned(), json!(self.now));
        }
        let line = Value::Object(line);
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
        assert!(answer["error"].is_null(), "{line}: {answer}");
        self.decisions.push(answer.clone());
        answer
    }

    fn user(&mut self, text: &str) -> &mut Self {
        self.send(json!({"type": "user", "text": text}));
        self
    }

    fn says(&mut self, text: &str) -> &mut Self {
        self.now += 10_000;
        self.send(json!({"type": "turn", "text": text}));
        self
    }

    fn does(&mut self, one: Done) -> &mut Self {
        self.turn(vec![one])
    }

    /// Makes calls in one turn. What is blocked comes back as a refusal in deloop's words; after a stop nothing happens.
    fn turn(&mut self, calls: Vec<Done>) -> &mut Self {
        if self.stopped() {
            return self;
        }
        self.now += 10_000;
        let first = self.calls;
        self.calls += calls.len();
        let listed = calls.iter().enumerate();
        let listed: Vec<Value> = listed
            .map(|(n, c)| json!({"id": format!("c{}", first + n), "tool": c.tool, "args": c.args}))
            .collect();
        let answer = self.send(json!({"type": "turn", "calls": listed}));
        if answer["action"] == "stop" {
            return self;
        }
        let blocked = answer["calls"].as_array().cloned().unwrap_or_default();
        for (n, call) in calls.into_iter().enumerate() {
            let id = json!(format!("c{}", first + n));
            let refused = answer["action"] == "block" && blocked.contains(&id);
            let mut result = match refused {
                true => json!({"outcome": "denied", "output": answer["message"]}),
                false => call.result,
            };
            self.made += usize::from(!refused);
            self.now += call.seconds * 1000;
            result["type"] = json!("result");
            result["id"] = id;
            self.send(result);
        }
        self
    }

    fn stopped(&self) -> bool {
        self.decisions.last().is_some_and(|d| d["action"] == "stop")
    }

    /// The actions of all decisions above `continue`; of what follows a stop, only the stop.
    fn actions(&self) -> Vec<&str> {
        let actions = self.decisions.iter().map(|d| d["action"].as_str().unwrap());
        let mut actions: Vec<&str> = actions.filter(|a| *a != "continue").collect();
        if let Some(stop) = actions.iter().position(|a| *a == "stop") {
            actions.truncate(stop + 1);
        }
        actions
    }

    /// The first decision above `continue`.
    fn first(&self) -> &Value {
        self.decisions.iter().find(|d| d["action"] != "continue").expect("a decision above continue")
    }

    #[track_caller]
    fn stays_silent(&self) {
        assert_silent(&self.decisions);
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

/// No decision does anything, or would in another mode.
#[track_caller]
fn assert_silent(decisions: &[Value]) {
    let loud = decisions.iter().find(|d| d["action"] != "continue" || !d["would"].is_null());
    assert!(loud.is_none(), "of {} decisions one is {:#}", decisions.len(), loud.unwrap_or(&Value::Null));
}

/// The decisions about a file in an agent's own format, and the loops that `deloop scan` lists in it.
fn judged(name: &str, text: &str, steps_at_least: usize) -> (Vec<Value>, Value) {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join(name), text).unwrap();
    let steps = run(deloop(home.path()).args(["steps", name]), b"");
    assert!(steps.status.success(), "{}", said(&steps));
    let count = lines(&steps.stdout).len();
    assert!(count >= steps_at_least, "only {count} steps were read");
    let decisions = crate::binary::stream(home.path(), &["--profile", "default"], &steps.stdout);
    assert_eq!(decisions.len(), count);
    let report = crate::scan::scan(home.path(), &["--profile", "default", name]);
    assert_eq!((&report["problems"], &report["totals"]["sessions"]), (&json!([]), &json!(1)), "{report}");
    (decisions, report["loops"].clone())
}

#[track_caller]
fn assert_file_is_silent(name: &str, text: &str, steps_at_least: usize) {
    let (decisions, loops) = judged(name, text, steps_at_least);
    assert_silent(&decisions);
    assert_eq!(loops, json!([]));
}

/// Writes the lines of a rollout, with or without times.
struct Rollout {
    text: String,
    timed: bool,
    seconds: u32,
    calls: usize,
}

impl Rollout {
    fn new(timed: bool, source: &Value) -> Self {
        let mut rollout = Self { text: String::new(), timed, seconds: 0, calls: 0 };
        let meta = json!({"id": "019f-0a1b", "timestamp": "2026-09-01T08:00:00.000Z", "cwd": "/home/dev/shop",
            "cli_version": "0.166.0", "source": source});
        rollout.line("session_meta", meta);
        rollout
    }

    #[expect(clippy::needless_pass_by_value, reason = "a line reads better with its JSON in place")]
    fn line(&mut self, kind: &str, payload: Value) {
        let mut line = json!({"type": kind, "payload": payload});
        if self.timed {
            let (hours, minutes) = (8 + self.seconds / 3600, self.seconds / 60 % 60);
            line["timestamp"] =
                json!(format!("2026-09-01T{hours:02}:{minutes:02}:{:02}.000Z", self.seconds % 60));
        }
        self.text += &format!("{line}\n");
    }

    fn message(&mut self, role: &str, text: &str) {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        let content = json!([{"type": kind, "text": text}]);
        self.line("response_item", json!({"type": "message", "role": role, "content": content}));
    }

    /// A script of code mode, and what it prints.
    fn script(&mut self, code: &str, output: &str, seconds: u32) {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        self.seconds += 2;
        let call = json!({"type": "custom_tool_call", "status": "completed", "call_id": id, "name": "exec",
            "input": code});
        self.line("response_item", call);
        self.seconds += seconds;
        let output = json!({"type": "custom_tool_call_output", "call_id": id, "output": output});
        self.line("response_item", output);
    }
}

/// Writes a Claude Code session of one call a turn.
struct Transcript {
    text: String,
    records: u32,
}

impl Transcript {
    fn new(prompt: &str) -> Self {
        let mut transcript = Self { text: String::new(), records: 0 };
        transcript.record("user", json!({"role": "user", "content": prompt}));
        transcript
    }

    #[expect(clippy::needless_pass_by_value, reason = "a record reads better with its JSON in place")]
    fn record(&mut self, kind: &str, message: Value) {
        let n = self.records;
        self.records += 1;
        let parent = n.checked_sub(1).map(|n| format!("u{n}"));
        let record = json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/home/dev/shop",
            "sessionId": "5f0c", "version": "2.1.325", "type": kind, "message": message, "uuid": format!("u{n}"),
            "timestamp": format!("2026-09-01T08:{:02}:{:02}.000Z", n * 7 / 60, n * 7 % 60)});
        self.text += &format!("{record}\n");
    }

    #[expect(clippy::needless_pass_by_value, reason = "a call reads better with its JSON in place")]
    fn call(&mut self, tool: &str, input: Value, output: &str, is_error: bool) {
        let n = self.records;
        let id = format!("toolu_{n}");
        let call = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
        let message = json!({"model": "claude-opus-4-5", "id": format!("msg_{n}"), "type": "message",
            "role": "assistant", "content": [call], "usage": {"input_tokens": 8, "output_tokens": 90}});
        self.record("assistant", message);
        let mut result = json!({"tool_use_id": id, "type": "tool_result", "content": output});
        if is_error {
            result["is_error"] = json!(true);
        }
        self.record("user", json!({"role": "user", "content": [result]}));
    }
}
