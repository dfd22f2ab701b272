//! Hands a stopped run over to the person at the terminal.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::Path;
use std::process::Command;

use deloop_formats::hooks::{Installable, installable};
use deloop_live::RecordedDecision;

use super::attempt::{Attempt, code};
use super::result::RunOutcome;
use super::{AfterAttempt, Runner, ended, retry, say};
use crate::exit::{self, Failure};

impl Runner<'_> {
    /// Asks what to do. Without a terminal, the exit code tells the pipeline that a person must continue.
    pub(super) fn ask(&self, last: &Attempt, stop: &RecordedDecision) -> Result<AfterAttempt, Failure> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            say("a person must continue: read the summary, then resume the session or start again");
            return Ok(AfterAttempt::End(RunOutcome::HandedOver, exit::HANDED_OVER));
        }
        let agent = installable(&stop.agent);
        let resume = agent.as_ref().and_then(|agent| self.resume(agent, &stop.session));
        loop {
            let open = match (&agent, &resume) {
                (Some(agent), Some(_)) => format!("[o] open the session in {}, ", agent.title),
                _ => String::new(),
            };
            say(&format!("[r] retry, {open}[e] end?"));
            let Some(answer) = self.processes.line()? else {
                return Ok(ended(stop));
            };
            match (answer.trim().to_ascii_lowercase().as_str(), &resume) {
                ("r" | "retry", _) => {
                    say("an instruction for the agent, or Enter for none:");
                    let Some(instruction) = self.processes.line()? else {
                        return Ok(ended(stop));
                    };
                    return Ok(AfterAttempt::Again(retry(last, stop, Some(&instruction))));
                }
                ("o" | "open", Some(words)) => return self.open(words),
                ("e" | "end", _) => return Ok(ended(stop)),
                _ => {}
            }
        }
    }

    /// Returns the words of the command that opens a session, if the agent has one and the session's name, which comes
    /// from the agent, can't be taken for anything else.
    fn resume(&self, agent: &Installable, session: &str) -> Option<Vec<String>> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if session.is_empty() || session.starts_with('-') || !session.chars().all(plain) {
            return None;
        }
        let mut words = agent.wiring.resume.split_whitespace().map(|word| word.replace("{session}", session));
        let program = words.next()?;
        // The same program that was run, which may not be the one on the PATH.
        let own = Path::new(&self.args.command[0]);
        let is_own = own.file_stem() == Some(OsStr::new(&program));
        let program = if is_own { own.to_string_lossy().into_owned() } else { program };
        Some(std::iter::once(program).chain(words).collect())
    }

    fn open(&self, words: &[String]) -> Result<AfterAttempt, Failure> {
        let mut command = Command::new(&words[0]);
        match self.processes.start(command.args(&words[1..])) {
            Ok(process) => {
                let status = self.processes.wait(&process)?;
                Ok(AfterAttempt::End(RunOutcome::HandedOver, code(status)))
            }
            Err(error) => {
                say(&format!("{}: {error}", words[0]));
                Ok(AfterAttempt::End(RunOutcome::HandedOver, exit::HANDED_OVER))
            }
        }
    }
}
