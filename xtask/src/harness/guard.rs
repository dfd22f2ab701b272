//! `deloop stream` as a co-process: one line of JSON each way. If it is missing, dies or doesn't answer in time, the agent
//! goes on without it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

/// How long the agent waits for an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running `deloop stream`, if there is one.
pub(super) struct GuardProcess {
    running: Option<RunningGuard>,
}

struct RunningGuard {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
}

impl GuardProcess {
    /// Starts the `deloop` on the PATH.
    pub(super) fn start() -> Self {
        Self { running: start() }
    }

    /// Returns the decision about a step; none if there is no guard.
    pub(super) fn ask(&mut self, step: &Value) -> Option<Value> {
        let running = self.running.as_mut()?;
        let sent = writeln!(running.stdin, "{step}").and_then(|()| running.stdin.flush());
        let answer = sent.ok().and_then(|()| running.answers.recv_timeout(PATIENCE).ok());
        if answer.is_none() {
            self.end();
        }
        serde_json::from_str(&answer?).ok()
    }

    fn end(&mut self) {
        if let Some(RunningGuard { mut child, .. }) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for GuardProcess {
    fn drop(&mut self) {
        if let Some(RunningGuard { mut child, stdin, .. }) = self.running.take() {
            // It ends with its input.
            drop(stdin);
            let _ = child.wait();
        }
    }
}

fn start() -> Option<RunningGuard> {
    let mut command = Command::new("deloop");
    command.args(["stream", "--agent", "harness", "--deliver", "user"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let (stdin, stdout) = (child.stdin.take()?, child.stdout.take()?);
    let (sender, answers) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Some(RunningGuard { child, stdin, answers })
}
