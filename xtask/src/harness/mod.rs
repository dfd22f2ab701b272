//! `cargo xtask harness`: a minimal agent for the end-to-end tests. It asks a model, runs its shell commands, and has every
//! turn and result judged by a `deloop stream` beside it, whose decisions it carries out.

mod client;
mod guard;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use serde_json::{Value, json};

use self::guard::GuardProcess;

/// A limit of its own, as every harness should have.
const MOST_TURNS: usize = 64;
/// How long its model thinks, at least: a person who watches needs a moment, too.
const THINKS: Duration = Duration::from_millis(100);
/// The exit code after deloop stopped the session.
const STOPPED: u8 = 3;

/// Runs the agent: `--port N PROMPT [--continue]`.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> ExitCode {
    let (mut port, mut prompt, mut again) = (0, String::new(), false);
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--port" => port = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(0),
            "--continue" => again = true,
            _ => prompt = argument,
        }
    }
    let mut agent =
        HarnessAgent { session: session(again), guard: GuardProcess::start(), port, messages: Vec::new() };
    match agent.converse(&prompt) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("harness: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns a new name for a session, or the name of the last one.
fn session(again: bool) -> String {
    let file = PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join("harness-session");
    let last = fs::read_to_string(&file).ok().filter(|_| again);
    last.unwrap_or_else(|| {
        let now = fs::metadata("/proc/self").and_then(|about| about.modified()).ok();
        let now = now.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
        let name = format!("h-{}-{}", std::process::id(), now.as_nanos());
        let _ = fs::write(&file, &name);
        name
    })
}

struct HarnessAgent {
    session: String,
    guard: GuardProcess,
    port: u16,
    messages: Vec<Value>,
}

/// What a decision asks for.
enum HarnessVerdict {
    Continue,
    /// The calls that must not run, by id, and why; `all` means each.
    Refuse(Vec<String>, String),
    End,
}

impl HarnessAgent {
    fn converse(&mut self, prompt: &str) -> std::io::Result<ExitCode> {
        self.messages.push(json!({"role": "user", "content": prompt}));
        let mut notes = Vec::new();
        let began = json!({"type": "user", "session": self.session, "text": prompt, "origin": "human"});
        if let HarnessVerdict::End = self.judge(&began, &mut notes) {
            return Ok(ExitCode::from(STOPPED));
        }
        for _ in 0..MOST_TURNS {
            self.messages.extend(notes.drain(..).map(|note| json!({"role": "user", "content": note})));
            std::thread::sleep(THINKS);
            let message = client::complete(self.port, &self.messages)?;
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            let verdict = self.judge(&turn(&self.session, &message, &calls), &mut notes);
            if let HarnessVerdict::End = verdict {
                return Ok(ExitCode::from(STOPPED));
            }
            self.messages.push(message.clone());
            if calls.is_empty() {
                println!("{}", message["content"].as_str().unwrap_or_default());
                return Ok(ExitCode::SUCCESS);
            }
            for call in &calls {
                if let HarnessVerdict::End = self.call(call, &verdict, &mut notes) {
                    return Ok(ExitCode::from(STOPPED));
                }
            }
        }
        Err(std::io::Error::other("too many turns"))
    }

    /// Runs a call, or refuses it, and adds its result to the conversation.
    fn call(&mut self, call: &Value, verdict: &HarnessVerdict, notes: &mut Vec<String>) -> HarnessVerdict {
        let id = call["id"].as_str().unwrap_or_default().to_owned();
        let refused = |ids: &[String]| ids.iter().any(|named| *named == id || named == "all");
        let (content, result) = match verdict {
            HarnessVerdict::Refuse(ids, why) if refused(ids) => (
                why.clone(),
                json!({"type": "result", "session": self.session, "id": id, "outcome": "denied"}),
            ),
            _ => {
                let (ok, output) = shell(arguments(call)["command"].as_str().unwrap_or_default());
                let result =
                    json!({"type": "result", "session": self.session, "id": id, "ok": ok, "output": output});
                (output, result)
            }
        };
        self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        self.judge(&result, notes)
    }

    /// Has a step judged. Messages for the model are kept for the next request; people read theirs on standard error.
    fn judge(&mut self, step: &Value, notes: &mut Vec<String>) -> HarnessVerdict {
        let Some(decision) = self.guard.ask(step) else { return HarnessVerdict::Continue };
        let text = |key: &str| decision[key].as_str().unwrap_or_default().to_owned();
        if decision["user_message"].is_string() {
            eprintln!("{}", text("user_message"));
        }
        match decision["action"].as_str() {
            Some("nudge") => notes.push(text("message")),
            Some("block" | "ask") => {
                let calls = decision["calls"].as_array().into_iter().flatten();
                let calls = calls.filter_map(Value::as_str).map(str::to_owned).collect();
                return HarnessVerdict::Refuse(calls, text("message"));
            }
            Some("stop") => {
                eprintln!("{}", text("message"));
                return HarnessVerdict::End;
            }
            _ => {}
        }
        HarnessVerdict::Continue
    }
}

/// A turn of the model as a Step.
fn turn(session: &str, message: &Value, calls: &[Value]) -> Value {
    let call =
        |call: &Value| json!({"id": call["id"], "tool": call["function"]["name"], "args": arguments(call)});
    let calls: Vec<Value> = calls.iter().map(call).collect();
    let text = message["content"].as_str().unwrap_or_default();
    json!({"type": "turn", "session": session, "text": text, "calls": calls})
}

fn arguments(call: &Value) -> Value {
    let text = call["function"]["arguments"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// Runs a command. Returns whether it succeeded, and all it printed.
fn shell(command: &str) -> (bool, String) {
    match Command::new("sh").args(["-c", command]).output() {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&text).into_owned())
        }
        Err(error) => (false, error.to_string()),
    }
}
