//! Watches a running agent, and ends it when deloop decides to stop or when nothing happens any more.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use deloop_live::{RecordedDecision, SqliteJournal};
use deloop_types::Mode;

use super::attempt::{Attempt, stop_of};
use super::child::{AgentProcess, Happened, Push};
use super::guarded;
use super::stall::{StallNotice, StallWatch};
use super::{Runner, say};
use crate::exit::Failure;
use crate::state::now;

/// How often the state is checked.
const BEAT: Duration = Duration::from_millis(100);
/// After how many beats without news the process table is cleaned up.
const CLEANING: u32 = 100;
/// How long an agent that its hook can stop gets to exit, at most.
const BY_ITSELF: Duration = Duration::from_secs(2);

/// How the watched agent ended.
pub(super) struct Watched {
    pub(super) status: ExitStatus,
    /// The last signal that deloop ended it with.
    pub(super) pushed: Option<Push>,
    pub(super) signalled: bool,
    /// Whether it was to be ended because it ignored two nudges.
    pub(super) ignores: bool,
}

impl Runner<'_> {
    /// Waits until the agent exits, and ends it when it must end.
    pub(super) fn watch(
        &self,
        agent: &AgentProcess,
        run: &str,
        earlier: &[Attempt],
    ) -> Result<Watched, Failure> {
        let grace = self.args.grace_time();
        let store = self.store.as_ref();
        let mut stall = store.and_then(|store| StallWatch::new(store, run, self.stall, self.clock.now()));
        // When the agent gets the next signal.
        let mut next_push: Option<Instant> = None;
        let (mut pushed, mut signalled, mut idle, mut ignores) = (None, false, 0_u32, false);
        loop {
            match self.processes.next(self.clock.beat(BEAT))? {
                Happened::Ended(status) => return Ok(Watched { status, pushed, signalled, ignores }),
                Happened::Signal(signal) => {
                    signalled = true;
                    agent.pass_on(signal);
                }
                Happened::Message(signal) => agent.pass_on(signal),
                Happened::Line(_) => {}
                Happened::Nothing => {
                    idle = idle.wrapping_add(1);
                    if idle.is_multiple_of(CLEANING) {
                        agent.reap_adopted();
                    }
                    let time = self.clock.now();
                    match next_push {
                        None => {
                            let stop = store.and_then(|store| stop_of(store, run));
                            let by_itself =
                                |stop: RecordedDecision| match guarded::ends_by_itself(&stop.agent) {
                                    true => grace.min(BY_ITSELF),
                                    false => Duration::ZERO,
                                };
                            ignores = self.ignores_nudges(run, earlier).is_some();
                            // An agent that ignores messages won't exit by itself.
                            let wait = ignores.then_some(Duration::ZERO).or_else(|| stop.map(by_itself));
                            let wait = wait.or_else(|| self.stalled(store?, run, &mut stall, time));
                            next_push = wait.map(|wait| time + wait);
                        }
                        Some(at) if time < at => {}
                        Some(_) => {
                            let push = Push::after(pushed);
                            agent.push(push);
                            pushed = Some(push);
                            next_push = Some(time + grace);
                        }
                    }
                }
            }
        }
    }

    /// Looks whether anything happens. Returns how long a stalled agent gets before its first signal: it won't exit by
    /// itself.
    fn stalled(
        &self,
        store: &SqliteJournal,
        run: &str,
        watch: &mut Option<StallWatch<'_>>,
        time: Instant,
    ) -> Option<Duration> {
        match watch.as_mut()?.look(time)? {
            StallNotice::Warning(text) => {
                say(&text);
                None
            }
            StallNotice::Stalled(_, summary) if !self.ends_stalls() => {
                say(&format!("{summary}; deloop doesn't end it {}", self.why_not()));
                *watch = None;
                None
            }
            StallNotice::Stalled(activity, summary) => {
                // Without the record there would be no hand-off; a failed attempt to write it is repeated.
                store.record_stall(run, &activity, &summary, now()).ok().map(|()| Duration::ZERO)
            }
        }
    }

    /// Returns whether an agent that hangs is ended: not if the mode forbids it, and not at a terminal, where it may wait for
    /// a person, unless the command line sets a limit.
    fn ends_stalls(&self) -> bool {
        Mode::from(self.args.mode) == Mode::Enforce && (self.args.stall.is_some() || !self.at_terminal)
    }

    fn why_not(&self) -> &'static str {
        match Mode::from(self.args.mode) {
            Mode::Enforce => "at a terminal unless you set --stall",
            _ => "in this mode",
        }
    }
}
