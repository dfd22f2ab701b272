//! The command of `--then`, which takes over after a stop. It comes from the command line alone, never from a file.

use std::io::Write;
use std::process::{Command, Stdio};

use deloop_live::RecordedDecision;

use super::attempt::{Attempt, code};
use super::result::RunResult;
use super::{Runner, say};
use crate::exit::{self, Failure};

impl Runner<'_> {
    /// Runs the command with the result so far on its standard input. Returns its exit code.
    pub(super) fn then(
        &self,
        last: &Attempt,
        stop: &RecordedDecision,
        result: &RunResult,
    ) -> Result<u8, Failure> {
        let mut command = shell(self.args.then.as_deref().unwrap_or_default());
        let handoff = last.handoff.as_deref().unwrap_or_else(|| "".as_ref());
        command.env("DELOOP_HANDOFF", handoff);
        for (name, value) in [
            ("DELOOP_STATUS", stop.status.as_deref().unwrap_or_default()),
            ("DELOOP_SESSION", &stop.session),
            ("DELOOP_DECISION", &stop.id),
            ("DELOOP_RUN_ID", &last.run),
        ] {
            // The name of a session comes from the agent; nothing invisible or longer than a line passes.
            command.env(name, deloop_detect::clean(value, 200));
        }
        let mut process = match self.processes.start(command.stdin(Stdio::piped())) {
            Ok(process) => process,
            Err(error) => {
                say(&format!("can't run the command of --then: {error}"));
                return Ok(exit::NOT_STARTED);
            }
        };
        if let Some(mut stdin) = process.stdin.take() {
            let json = result.json()?;
            // A command that doesn't read it closes it.
            std::thread::spawn(move || drop(stdin.write_all(&json)));
        }
        Ok(code(self.processes.wait(&process)?))
    }
}

#[cfg(unix)]
fn shell(text: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(text);
    command
}

#[cfg(not(unix))]
fn shell(text: &str) -> Command {
    let mut command = Command::new("cmd");
    command.arg("/C").arg(text);
    command
}
