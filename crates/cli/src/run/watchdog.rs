//! Ends the agent if `deloop run` itself is killed, even with a signal that nothing can catch. A second process of deloop
//! waits at a pipe: its end comes with the end of the first, and says so unless the first one said goodbye.

use std::io::{BufRead, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;

use super::args::RunArgs;
use super::child::{AgentProcess, Push};
use super::say;
use crate::config;
use crate::exit::{self, Failure};

/// How often the watchdog looks whether the agent has exited.
const BEAT: Duration = Duration::from_millis(20);
/// Longer lines aren't deloop's.
const LONGEST_LINE: usize = 4096;

/// `deloop watchdog`
#[derive(Debug, Args)]
pub(crate) struct WatchdogArgs {
    /// How long the agent gets to exit, in seconds
    #[arg(long, value_name = "SECONDS")]
    grace: f64,
}

/// The watchdog of a run, as `deloop run` sees it; nothing where it couldn't be started, or on a system without signals.
/// Dropping it tells the watchdog that all is well.
#[derive(Default)]
pub(super) struct Watchdog {
    process: Option<(u32, ChildStdin)>,
}

impl Watchdog {
    /// Starts the watchdog of a run. Without it, the run goes on.
    pub(super) fn of(args: &RunArgs) -> Self {
        if config::is_off() || cfg!(not(unix)) {
            return Self::default();
        }
        let why = |error| say(&format!("if deloop is killed, the agent will continue: {error}"));
        Self { process: start(args.grace_time()).map_err(why).ok() }
    }

    /// Returns the id of its process.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.as_ref().map(|(id, _)| *id)
    }

    /// An attempt begins. `mark` is a variable in the environment of the attempt's processes alone.
    pub(super) fn begin(&self, mark: &str) {
        self.tell(&format!("run {mark}"));
    }

    /// Its agent has started.
    pub(super) fn started(&self, agent: &AgentProcess) {
        self.tell(&format!("agent {} {}", agent.id, agent.own_group));
    }

    /// The attempt is over.
    pub(super) fn end(&self) {
        self.tell("end");
    }

    fn tell(&self, what: &str) {
        if let Some((_, pipe)) = &self.process {
            let mut pipe: &ChildStdin = pipe;
            // A watchdog that is gone can't help any more; the run goes on without it.
            let _ = pipe.write_all(format!("{what}\n").as_bytes());
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the process, in a group of its own, so that what ends deloop's group doesn't end it.
fn start(grace: Duration) -> std::io::Result<(u32, ChildStdin)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("watchdog").arg(format!("--grace={}", grace.as_secs_f64()));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    let pipe = child.stdin.take().ok_or_else(|| std::io::Error::other("no pipe to the watchdog"))?;
    Ok((child.id(), pipe))
}

/// What the watchdog was told.
#[derive(Default)]
struct GuardedAttempt {
    mark: String,
    agent: Option<AgentProcess>,
}

/// Waits until `deloop run` is gone, and ends what it left running.
#[expect(clippy::unnecessary_wraps, reason = "the same as every command")]
pub(crate) fn watchdog(args: &WatchdogArgs) -> Result<u8, Failure> {
    let mut guarded = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line.len() <= LONGEST_LINE {
            read(&line, &mut guarded);
        }
    }
    let grace = if args.grace.is_finite() { args.grace.clamp(0.0, 3600.0) } else { 0.0 };
    if let Some(GuardedAttempt { mark, agent }) = guarded {
        end(agent, &mark, Duration::from_secs_f64(grace));
    }
    Ok(exit::OK)
}

fn read(line: &str, guarded: &mut Option<GuardedAttempt>) {
    match line.split_once(' ') {
        Some(("run", mark)) => *guarded = Some(GuardedAttempt { mark: mark.to_owned(), agent: None }),
        Some(("agent", agent)) => {
            if let (Some(guarded), Some((id, group))) = (guarded, agent.split_once(' ')) {
                guarded.agent =
                    id.parse().ok().map(|id| AgentProcess { id, own_group: group == "true", stdin: None });
            }
        }
        _ => *guarded = None,
    }
}

/// Asks an agent to exit, kills it after the grace time, and then kills what it left running.
#[expect(clippy::disallowed_methods, reason = "a grace time is wall-clock time, not session time")]
fn end(agent: Option<AgentProcess>, mark: &str, grace: Duration) {
    let agent = agent.unwrap_or_default();
    if agent.is_running(mark) {
        agent.push(Push::Terminate);
    }
    let until = Instant::now() + grace;
    while agent.is_running(mark) && Instant::now() < until {
        std::thread::sleep(BEAT);
    }
    if agent.is_running(mark) {
        agent.push(Push::Kill);
    }
    agent.clear_away(mark, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_guards_the_last_attempt_until_it_is_over() {
        let after = |lines: &[&str]| {
            let mut guarded = None;
            lines.iter().for_each(|line| read(line, &mut guarded));
            guarded.map(|g| (g.mark, g.agent.map(|agent| (agent.id, agent.own_group))))
        };
        assert_eq!(after(&[]), None);
        assert_eq!(after(&["run A=1"]), Some(("A=1".to_owned(), None)));
        assert_eq!(after(&["run A=1", "agent 7 true"]), Some(("A=1".to_owned(), Some((7, true)))));
        assert_eq!(after(&["run A=1", "agent 7 true", "end"]), None);
        let second = ["run A=1", "agent 7 true", "end", "run A=2", "agent 8 false"];
        assert_eq!(after(&second), Some(("A=2".to_owned(), Some((8, false)))));
    }
}
