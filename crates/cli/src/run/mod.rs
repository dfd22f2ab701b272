//! `deloop run`: runs an agent unattended. If deloop stops it, the exit code is one that no script takes for success.

pub(crate) mod args;
mod child;
mod guarded;
mod handoff;

use std::process::ExitStatus;
use std::time::Duration;

use deloop_detect::Fingerprint;
use deloop_live::{RecordedDecision, SqliteJournal};
use deloop_types::Mode;

use self::args::RunArgs;
use self::child::{AgentProcess, Happened, Push};
use self::handoff::{End, HandoffRun};
use crate::args::RuleArgs;
use crate::config;
use crate::exit::{self, Failure};
use crate::hook::{RUN, RUN_MODE};
use crate::state::{State, now};

/// How often the state is checked.
const BEAT: Duration = Duration::from_millis(100);
/// How long an agent that its hook can stop gets to exit, at most.
const BY_ITSELF: f64 = 2.0;

pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let started = now();
    let id = format!("{started}\0{}", std::process::id());
    let id = format!("r{}", &Fingerprint::of_bytes(id.as_bytes()).to_string()[..12]);
    let state = State::here()?;
    // A run that can't be watched isn't stopped: the agent continues.
    let store =
        state.open().map_err(|failure| say(&format!("deloop can't stop this run: {}", words(failure)))).ok();
    if config::is_off() {
        say("DELOOP=off is set, so this run is not guarded");
    } else if let Some(problem) = guarded::problem(&args.command[0]) {
        say(&problem);
    }
    if let Some(notice) = config::load_for_hook(&RuleArgs::default()).notice() {
        say(&notice);
    }
    let mode = match Mode::from(args.mode) {
        Mode::Shadow => "shadow",
        Mode::Nudge => "nudge",
        Mode::Enforce => "enforce",
    };
    let agent = match AgentProcess::start(&args.command, &[(RUN, &id), (RUN_MODE, mode)]) {
        Ok(agent) => agent,
        Err(error) => {
            say(&format!("{}: {error}", args.command[0].to_string_lossy()));
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            return Ok(if missing { exit::NOT_FOUND } else { exit::NOT_STARTED });
        }
    };
    let (status, pushed) = watch(&agent, store.as_ref(), &id, args.grace)?;
    // It may have exited by itself between two checks.
    let Some(stop) = store.as_ref().and_then(|store| stop_of(store, &id)) else {
        if let Some(store) = &store
            && let Some(problem) = guarded::never_called(store, &id, &args.command[0])
        {
            say(&problem);
        }
        return Ok(code(status));
    };
    if pushed.is_some() {
        agent.clear_away();
    }
    let run = HandoffRun {
        id: &id,
        command: &args.command,
        started,
        ended: now(),
        end: End { status: code(status), pushed },
    };
    let summary = stop.summary.as_deref().unwrap_or("it repeats itself");
    say(&format!("stopped the run: {} ({})", deloop_detect::clean(summary, 200), stop.id));
    if let Some(store) = &store {
        match handoff::write(&run, &stop, store, &state, args.handoff.as_deref()) {
            Ok(path) => say(&format!("summary and next steps: {}", path.display())),
            Err(failure) => say(&format!("can't write the hand-off file: {}", words(failure))),
        }
    }
    Ok(exit::STOPPED)
}

/// Waits until the agent exits, and ends it when deloop decides to stop. Returns how it exited and the last signal.
fn watch(
    agent: &AgentProcess,
    store: Option<&SqliteJournal>,
    id: &str,
    grace: f64,
) -> Result<(ExitStatus, Option<Push>), Failure> {
    let grace = if grace.is_finite() { grace.clamp(0.0, 3600.0) } else { 5.0 };
    let beats = |seconds: f64| (seconds / BEAT.as_secs_f64()).ceil();
    let mut patience: Option<f64> = None;
    let mut pushed = None;
    loop {
        match agent.next(BEAT)? {
            Happened::Ended(status) => return Ok((status, pushed)),
            Happened::Signal(signal) => agent.pass_on(signal),
            Happened::Nothing => match &mut patience {
                None => {
                    let stop = store.and_then(|store| stop_of(store, id));
                    let by_itself = |stop: RecordedDecision| match guarded::ends_by_itself(&stop.agent) {
                        true => beats(grace.min(BY_ITSELF)),
                        false => 0.0,
                    };
                    patience = stop.map(by_itself);
                }
                Some(left) if *left > 0.0 => *left -= 1.0,
                Some(left) => {
                    let push = Push::after(pushed);
                    agent.push(push);
                    pushed = Some(push);
                    *left = beats(grace);
                }
            },
        }
    }
}

fn stop_of(store: &SqliteJournal, id: &str) -> Option<RecordedDecision> {
    // A failed check is repeated.
    store.stop_of_run(id).ok().flatten()
}

/// Returns the agent's own exit code, or 128+N if signal N ended it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    status.code().map_or(u8::MAX, |code| u8::try_from(code & 0xff).unwrap_or(u8::MAX))
}

/// Prints a message for the user on standard error; standard output belongs to the agent.
fn say(what: &str) {
    crate::print::tell(format_args!("deloop: {what}"));
}

fn words(failure: Failure) -> String {
    match failure {
        Failure::Message(why) => why,
        Failure::ClosedPipe => "standard output is closed".to_owned(),
    }
}
