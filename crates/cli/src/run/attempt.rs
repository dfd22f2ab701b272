//! One attempt: the agent is started and watched, and how it ended is reported.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use deloop_detect::Fingerprint;
use deloop_live::{RecordedDecision, RunAttempt, STALLED, SessionSource, SqliteJournal};
use deloop_types::{Millis, Mode};

use super::child::Push;
use super::guarded;
use super::handoff::{self, End, HandoffRun};
use super::{Runner, say, words};
use crate::exit::Failure;
use crate::hook::{RUN, RUN_HANDOFF, RUN_MODE};
use crate::server_link::SERVER;
use crate::state::now;

/// An attempt that is over.
pub(super) struct Attempt {
    /// Its id.
    pub(super) run: String,
    pub(super) started: Millis,
    pub(super) ended: Millis,
    /// The agent's own exit code; none if it couldn't be started.
    pub(super) exit_code: Option<u8>,
    /// The session that was stopped, or the first that called deloop.
    pub(super) source: Option<SessionSource>,
    /// The decision that ended it.
    pub(super) stop: Option<RecordedDecision>,
    /// The decision that shows that it ignored two nudges, if it was ended for that.
    pub(super) ignored: Option<RecordedDecision>,
    /// The model that was chosen for it, if it isn't the one in the command.
    pub(super) model: Option<String>,
    /// The hand-off file, if it could be written.
    pub(super) handoff: Option<PathBuf>,
    /// Whether deloop received a signal meanwhile: someone wants the run to end.
    pub(super) signalled: bool,
    /// Why the agent couldn't be started.
    pub(super) error: Option<std::io::Error>,
}

/// What an attempt follows: an attempt that was stopped, and what its agent must know of it.
pub(super) struct Retry {
    pub(super) after: String,
    pub(super) message: String,
    /// The model to use, if it isn't the one in the command.
    pub(super) model: Option<String>,
}

impl Attempt {
    /// Returns the decision because of which deloop ended it.
    pub(super) fn ended_by(&self) -> Option<&RecordedDecision> {
        self.stop.as_ref().or(self.ignored.as_ref())
    }
}

impl Runner<'_> {
    /// Runs the agent once. `earlier` are the attempts so far.
    pub(super) fn attempt(&self, earlier: &[Attempt], retry: Option<Retry>) -> Result<Attempt, Failure> {
        let started = now();
        let number = earlier.len() + 1;
        let run = format!("{started}\0{}\0{number}", std::process::id());
        let run = format!("r{}", &Fingerprint::of_bytes(run.as_bytes()).to_string()[..12]);
        let first = earlier.first().map_or(&run, |attempt| &attempt.run).clone();
        let model = retry.as_ref().and_then(|retry| retry.model.clone());
        self.record(&run, &first, number, retry, started);
        let mut attempt = Attempt {
            run,
            started,
            ended: started,
            exit_code: None,
            source: None,
            stop: None,
            ignored: None,
            model,
            handoff: None,
            signalled: false,
            error: None,
        };
        let mark = format!("{RUN}={}", attempt.run);
        self.watchdog.begin(&mark);
        let mut process = match self.processes.start(&mut self.command(&attempt, &first, number)) {
            Ok(process) => process,
            Err(error) => {
                attempt.error = Some(error);
                return Ok(attempt);
            }
        };
        if let (Some(stdin), Some(input)) = (process.stdin.take(), &self.input) {
            input.feed(stdin);
        }
        self.watchdog.started(&process);
        let store = self.store.as_ref();
        let watched = self.watch(&process, &attempt.run, earlier)?;
        attempt.ended = now();
        attempt.exit_code = Some(code(watched.status));
        attempt.signalled = watched.signalled;
        if let Some(store) = store {
            // It may have exited by itself between two checks.
            attempt.stop = stop_of(store, &attempt.run);
            // A loop may be stopped between two checks; a fresh session is better than a stop.
            let looped = attempt.stop.as_ref().is_some_and(|stop| !is_stall(stop));
            if looped || (watched.ignores && watched.pushed.is_some()) {
                attempt.ignored = self.ignores_nudges(&attempt.run, earlier);
            }
            if attempt.ignored.is_some() {
                attempt.stop = None;
            }
            let mut sources = store.sources_of_run(&attempt.run).unwrap_or_default();
            let stopped =
                attempt.ended_by().and_then(|stop| sources.iter().position(|s| s.session == stop.session));
            attempt.source = (!sources.is_empty()).then(|| sources.swap_remove(stopped.unwrap_or(0)));
        }
        if attempt.ended_by().is_some() && watched.pushed.is_some() {
            process.clear_away(&mark, self.watchdog.id());
        }
        self.watchdog.end();
        self.report(&mut attempt, number, watched.pushed);
        Ok(attempt)
    }

    /// Writes down that an attempt begins, and what its agent must know.
    fn record(&self, run: &str, first: &str, number: usize, retry: Option<Retry>, now: Millis) {
        let Some(store) = &self.store else { return };
        let (after, handoff) = retry.map(|retry| (retry.after, retry.message)).unzip();
        let attempt = RunAttempt {
            run: run.to_owned(),
            first: first.to_owned(),
            attempt: number as u64,
            after,
            handoff,
        };
        if let Err(error) = store.record_attempt(&attempt, now)
            && number > 1
        {
            say(&format!("can't give the new attempt the hand-off: {error}"));
        }
    }

    fn command(&self, attempt: &Attempt, first: &str, number: usize) -> Command {
        let mode = Mode::from(self.args.mode).as_str();
        let mut command = Command::new(&self.args.command[0]);
        command.args(self.arguments(attempt.model.as_deref())).env(RUN, &attempt.run).env(RUN_MODE, mode);
        if let Some(url) = &self.args.server {
            command.env(SERVER, url);
        }
        if number > 1 {
            command.env(RUN_HANDOFF, first);
        } else {
            command.env_remove(RUN_HANDOFF);
        }
        if self.input.is_some() {
            command.stdin(Stdio::piped());
        }
        command
    }

    /// Tells the user how an attempt ended, and writes the hand-off of a stopped one.
    fn report(&self, attempt: &mut Attempt, number: usize, pushed: Option<Push>) {
        let (Some(store), Some(state)) = (&self.store, &self.state) else { return };
        let Some(stop) = attempt.ended_by().cloned() else {
            if let Some(problem) = guarded::never_called(store, &attempt.run, &self.args.command[0]) {
                say(&problem);
            }
            return;
        };
        let summary = stop.summary.as_deref().unwrap_or("it repeats itself");
        let ended = match (is_stall(&stop), &attempt.ignored) {
            (true, _) => "ended the run",
            (false, Some(_)) => "ended the agent, which ignored two messages",
            (false, None) => "stopped the run",
        };
        say(&format!("{ended}: {} ({})", deloop_detect::clean(summary, 200), stop.id));
        let run = HandoffRun {
            id: &attempt.run,
            command: &self.args.command,
            started: attempt.started,
            ended: attempt.ended,
            end: End { status: attempt.exit_code.unwrap_or(u8::MAX), pushed },
        };
        let file = self.args.handoff.as_deref().map(|path| numbered(path, number));
        match handoff::write(&run, &stop, store, state, file.as_deref()) {
            Ok(path) => {
                say(&format!("summary and next steps: {}", path.display()));
                attempt.handoff = std::path::absolute(&path).ok().or(Some(path));
            }
            Err(failure) => say(&format!("can't write the hand-off file: {}", words(failure))),
        }
    }
}

/// Returns the path for an attempt: `handoff.md`, then `handoff.2.md`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let extension = path.extension().map(|text| format!(".{}", text.to_string_lossy())).unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}.{number}{extension}"))
}

/// Returns whether a run was ended because nothing happened.
pub(super) fn is_stall(stop: &RecordedDecision) -> bool {
    stop.status.as_deref() == Some(STALLED)
}

/// Returns the decision that ended a run, if there is one.
pub(super) fn stop_of(store: &SqliteJournal, run: &str) -> Option<RecordedDecision> {
    // A failed check is repeated.
    store.stop_of_run(run).ok().flatten()
}

/// Returns the process's own exit code, or 128+N if signal N ended it.
pub(super) fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().map_or(u8::MAX, |code| u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_has_a_handoff_file_of_its_own() {
        for (path, second) in [("h.md", "h.2.md"), ("a/b.c/h", "a/b.c/h.2"), ("a.b.md", "a.b.2.md")] {
            assert_eq!(numbered(Path::new(path), 1), Path::new(path));
            assert_eq!(numbered(Path::new(path), 2), Path::new(second));
        }
    }
}
