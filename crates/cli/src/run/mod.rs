//! `deloop run`: runs an agent unattended. If deloop stops it, `--on-stop` says what happens next, and the exit code is one
//! that no script takes for success.

pub(crate) mod args;
mod attempt;
mod child;
mod corrective;
mod guarded;
mod handoff;
mod input;
mod person;
mod process_table;
mod recover;
pub(crate) mod result;
mod stall;
mod then_command;
mod watch;
pub(crate) mod watchdog;

use std::io::IsTerminal;

use deloop_live::{RecordedDecision, SqliteJournal};
use deloop_policy::RecoverWith;

use self::args::{OnStop, RunArgs};
use self::attempt::{Attempt, Retry, is_stall};
use self::child::Processes;
use self::input::RepeatableInput;
use self::result::{RunOutcome, RunResult};
use self::stall::StallLimits;
use self::watchdog::Watchdog;
use crate::args::RuleArgs;
use crate::clock::WaitClock;
use crate::config;
use crate::exit::{self, Failure};
use crate::server_link::check_url;
use crate::state::State;

/// What all attempts of a run share.
struct Runner<'a> {
    args: &'a RunArgs,
    /// Where its hand-off is written; none if there is no store.
    state: Option<State>,
    /// None if the run can't be watched. It isn't stopped then: the agent continues.
    store: Option<SqliteJournal>,
    processes: Processes,
    /// What ends the agent if deloop is killed.
    watchdog: Watchdog,
    clock: WaitClock,
    /// Standard input, if more than one attempt may need it.
    input: Option<RepeatableInput>,
    /// How long nothing may happen.
    stall: StallLimits,
    /// Whether a person may be asked.
    at_terminal: bool,
    /// What happens when the agent ignores two nudges.
    recover: Option<RecoverWith>,
}

/// What follows an attempt.
enum AfterAttempt {
    /// Another attempt.
    Again(Retry),
    /// The end of the run, with its exit code.
    End(RunOutcome, u8),
}

pub(crate) fn run(args: &RunArgs) -> Result<u8, Failure> {
    args.check()?;
    if let Some(url) = args.server.as_deref().filter(|url| *url != "off") {
        let allow_http = config::load_for_hook(&RuleArgs::default()).server.allow_http;
        check_url(url, allow_http)?;
    }
    let runner = Runner::new(args)?;
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut retry = None;
    let (outcome, code) = loop {
        let attempt = runner.attempt(&attempts, retry.take())?;
        attempts.push(attempt);
        match runner.next(&attempts)? {
            AfterAttempt::Again(another) => retry = Some(another),
            AfterAttempt::End(outcome, code) => break (outcome, code),
        }
    };
    if let Some(path) = &args.json {
        let error = attempts.last().and_then(|attempt| attempt.error.as_ref()).map(ToString::to_string);
        if let Err(failure) = RunResult::new(&attempts, outcome, code, error).write(path) {
            say(&format!("can't write the result: {}", words(failure)));
        }
    }
    Ok(code)
}

impl<'a> Runner<'a> {
    /// Prepares a run, and warns about what keeps deloop from guarding it.
    fn new(args: &'a RunArgs) -> Result<Self, Failure> {
        let unwatched = |failure| say(&format!("deloop can't stop this run: {}", words(failure)));
        let opened = State::here().and_then(|state| Ok((state.open()?, state)));
        let (store, state) = opened.map_err(unwatched).ok().unzip();
        if config::is_off() {
            say("DELOOP=off is set, so this run is not guarded");
        } else if let Some(problem) = guarded::problem(&args.command[0]) {
            say(&problem);
        }
        let config = config::load_for_hook(&RuleArgs::default());
        if let Some(notice) = config.notice() {
            say(&notice);
        }
        let stall = match config::is_off() {
            true => StallLimits::default(),
            false => StallLimits::read(args.stall.as_deref().or(config.run.stall.as_deref()))?,
        };
        let recover = args.recover.as_deref().map(recover::parse).transpose()?.or(config.run.recover);
        let processes = Processes::new()?;
        let at_terminal = std::io::stdin().is_terminal();
        let repeats = (args.on_stop == OnStop::Retry || recover.is_some()) && !at_terminal;
        let input = repeats.then(RepeatableInput::read);
        Ok(Self {
            args,
            state,
            store,
            processes,
            watchdog: Watchdog::of(args),
            clock: WaitClock::new(),
            input,
            stall,
            at_terminal,
            recover,
        })
    }

    /// Decides what follows the last attempt.
    fn next(&self, attempts: &[Attempt]) -> Result<AfterAttempt, Failure> {
        let Some(last) = attempts.last() else {
            return Ok(AfterAttempt::End(RunOutcome::Failed, exit::NOT_STARTED));
        };
        if let Some(error) = &last.error {
            say(&format!("{}: {error}", self.args.command[0].to_string_lossy()));
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let code = if missing { exit::NOT_FOUND } else { exit::NOT_STARTED };
            return Ok(AfterAttempt::End(RunOutcome::Failed, code));
        }
        if let Some(ignored) = &last.ignored {
            return Ok(match last.signalled {
                true => ended(ignored),
                false => AfterAttempt::Again(self.fresh_start(last, ignored)),
            });
        }
        let Some(stop) = &last.stop else {
            let code = last.exit_code.unwrap_or(u8::MAX);
            let outcome = match (code, attempts.len()) {
                (0, 1) => RunOutcome::Completed,
                (0, _) => RunOutcome::Retried,
                _ => RunOutcome::Failed,
            };
            return Ok(AfterAttempt::End(outcome, code));
        };
        let (outcome, code) = stopped(stop);
        let stopped = Ok(ended(stop));
        if last.signalled {
            // Whoever sent the signal wants the run to end, not to begin again.
            return stopped;
        }
        let stops = attempts.iter().filter(|attempt| attempt.ignored.is_none()).count();
        match self.args.on_stop {
            // Another attempt would have a ceiling of its own.
            OnStop::Retry if stop.detector.as_deref() == Some("over-budget") => {
                say("not starting another attempt: a ceiling was reached");
                stopped
            }
            OnStop::Retry if stops < self.args.attempts() => {
                say(&format!("starting attempt {} of {}", stops + 1, self.args.attempts()));
                Ok(AfterAttempt::Again(retry(last, stop, None)))
            }
            OnStop::End | OnStop::Retry => stopped,
            OnStop::Run => {
                let code = self.then(last, stop, &RunResult::new(attempts, outcome, code, None))?;
                Ok(AfterAttempt::End(RunOutcome::Handled, code))
            }
            OnStop::Person => self.ask(last, stop),
        }
    }
}

/// Returns the outcome and the exit code of a run that deloop ended.
fn stopped(stop: &RecordedDecision) -> (RunOutcome, u8) {
    match is_stall(stop) {
        true => (RunOutcome::Stalled, exit::STALLED),
        false => (RunOutcome::Stopped, exit::STOPPED),
    }
}

fn ended(stop: &RecordedDecision) -> AfterAttempt {
    let (outcome, code) = stopped(stop);
    AfterAttempt::End(outcome, code)
}

/// Returns what the next attempt follows.
fn retry(last: &Attempt, stop: &RecordedDecision, instruction: Option<&str>) -> Retry {
    let message = corrective::message(stop, last.handoff.as_deref(), instruction);
    Retry { after: stop.session.clone(), message, model: None }
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
