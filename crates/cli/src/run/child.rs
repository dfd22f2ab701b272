//! Processes: the agent, and what runs after it. Starting them, waiting for them and ending them.

use std::io::{BufRead, IsTerminal};
use std::process::{ChildStdin, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::exit::Failure;

/// How forcefully to end an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Push {
    /// Interrupt, like Ctrl-C.
    Interrupt,
    /// Terminate, like `kill`.
    Terminate,
    /// Kill.
    Kill,
}

impl Push {
    /// Returns the next stronger one.
    pub(super) fn after(last: Option<Self>) -> Self {
        match last {
            None => Self::Interrupt,
            Some(Self::Interrupt) => Self::Terminate,
            Some(Self::Terminate | Self::Kill) => Self::Kill,
        }
    }
}

/// The result of a wait.
pub(super) enum Happened {
    /// The process has exited.
    Ended(ExitStatus),
    /// deloop received this signal, which asks it to end.
    Signal(i32),
    /// deloop received this signal, which means nothing to it and is for the agent.
    Message(i32),
    /// The person at the terminal typed a line; none at the end of the input.
    Line(Option<String>),
    /// The time is up.
    Nothing,
}

/// Starts processes one after the other, and waits for them and for signals.
pub(super) struct Processes {
    sender: Sender<Happened>,
    happened: Receiver<Happened>,
}

impl Processes {
    /// Starts to listen for the signals that would end deloop, before any process starts, so that none is lost.
    pub(super) fn new() -> std::io::Result<Self> {
        let (sender, happened) = channel();
        #[cfg(unix)]
        unix::listen(sender.clone())?;
        #[cfg(target_os = "linux")]
        unix::adopt_orphans();
        Ok(Self { sender, happened })
    }

    /// Starts a process. It gets deloop's standard streams unless the command says otherwise.
    pub(super) fn start(&self, command: &mut Command) -> std::io::Result<AgentProcess> {
        let own_group = !has_terminal();
        #[cfg(unix)]
        if own_group {
            std::os::unix::process::CommandExt::process_group(command, 0);
        }
        let mut child = command.spawn()?;
        let (id, stdin) = (child.id(), child.stdin.take());
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            if let Ok(status) = child.wait() {
                let _ = sender.send(Happened::Ended(status));
            }
        });
        Ok(AgentProcess { id, own_group, stdin })
    }

    /// Returns the next event within this time.
    pub(super) fn next(&self, time: Duration) -> Result<Happened, Failure> {
        match self.happened.recv_timeout(time) {
            Ok(happened) => Ok(happened),
            Err(RecvTimeoutError::Timeout) => Ok(Happened::Nothing),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::new("can't wait for the agent")),
        }
    }

    /// Waits until a process has exited, and sends it the signals that deloop receives.
    pub(super) fn wait(&self, process: &AgentProcess) -> Result<ExitStatus, Failure> {
        loop {
            match self.next(Duration::from_secs(3600))? {
                Happened::Ended(status) => return Ok(status),
                Happened::Signal(signal) | Happened::Message(signal) => process.pass_on(signal),
                Happened::Line(_) | Happened::Nothing => {}
            }
        }
    }

    /// Reads a line from the terminal; none at the end of the input, or when a signal comes first.
    pub(super) fn line(&self) -> Result<Option<String>, Failure> {
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            let _ = sender.send(Happened::Line(read.is_ok_and(|count| count > 0).then_some(line)));
        });
        loop {
            match self.next(Duration::from_secs(3600))? {
                Happened::Line(line) => return Ok(line),
                Happened::Signal(_) => return Ok(None),
                Happened::Ended(_) | Happened::Message(_) | Happened::Nothing => {}
            }
        }
    }
}

/// Returns whether this process belongs to a terminal, even if its standard input is something else. A process in a group of
/// its own would be stopped as soon as it used that terminal.
fn has_terminal() -> bool {
    #[cfg(unix)]
    let is_open = unix::terminal().is_some();
    #[cfg(not(unix))]
    let is_open = false;
    is_open || std::io::stdin().is_terminal()
}

/// A running agent, or another program in its place.
#[derive(Default)]
pub(super) struct AgentProcess {
    pub(super) id: u32,
    /// Whether it leads its own process group, to which everything it starts belongs. On a terminal it doesn't, because
    /// only the terminal's group can read from it and gets its Ctrl-C.
    pub(super) own_group: bool,
    /// Its standard input, if that is a pipe.
    pub(super) stdin: Option<ChildStdin>,
}

#[cfg(unix)]
mod unix {
    use rustix::process::{
        Pid, Signal, kill_process, kill_process_group, test_kill_process, test_kill_process_group,
    };
    use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    use signal_hook::iterator::Signals;

    use super::super::process_table;
    use super::{AgentProcess, Happened, Push, Sender};

    /// How often what is left of a run is looked for and killed, at most, and the time in between.
    const ROUNDS: usize = 50;
    const BETWEEN: std::time::Duration = std::time::Duration::from_millis(20);

    /// Becomes the parent of processes whose own parents are gone, so that they can still be found.
    #[cfg(target_os = "linux")]
    pub(super) fn adopt_orphans() {
        // Without it, the run's mark in the environment still finds most of them.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }

    /// Opens the terminal that this process belongs to.
    pub(super) fn terminal() -> Option<std::fs::File> {
        let mut options = std::fs::OpenOptions::new();
        let flags = rustix::fs::OFlags::NOCTTY.bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), flags);
        options.open("/dev/tty").ok()
    }

    /// Returns whether Ctrl-C at the terminal reaches this process and the agent in its group.
    fn is_in_foreground() -> bool {
        let group = terminal().and_then(|terminal| rustix::termios::tcgetpgrp(terminal).ok());
        group == Some(rustix::process::getpgrp())
    }

    /// Forwards the signals that would end deloop.
    pub(super) fn listen(sender: Sender<Happened>) -> std::io::Result<()> {
        let messages = [SIGALRM, SIGUSR1, SIGUSR2];
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().chain(messages))?;
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let is_message = messages.contains(&signal);
                let happened = if is_message { Happened::Message(signal) } else { Happened::Signal(signal) };
                if sender.send(happened).is_err() {
                    break;
                }
            }
        });
        Ok(())
    }

    impl AgentProcess {
        /// Sends the agent a signal that deloop received.
        pub(in super::super) fn pass_on(&self, signal: i32) {
            let signal = match signal {
                // The terminal has already sent these to the agent.
                SIGINT | SIGQUIT if !self.own_group && is_in_foreground() => return,
                // What the agent started doesn't expect these, and would end.
                SIGALRM => return self.send_alone(Signal::ALARM),
                SIGUSR1 => return self.send_alone(Signal::USR1),
                SIGUSR2 => return self.send_alone(Signal::USR2),
                SIGINT => Signal::INT,
                SIGQUIT => Signal::QUIT,
                SIGHUP => Signal::HUP,
                _ => Signal::TERM,
            };
            self.send(signal);
        }

        /// Ends the agent and everything it started.
        pub(in super::super) fn push(&self, push: Push) {
            self.send(match push {
                Push::Interrupt => Signal::INT,
                Push::Terminate => Signal::TERM,
                Push::Kill => Signal::KILL,
            });
        }

        /// Ends what the agent left running: its group, whose id stays valid while any process is in it, and what left the
        /// group. `mark` is a variable in the environment of the run's processes alone, and `spared` is none of them.
        pub(in super::super) fn clear_away(&self, mark: &str, spared: Option<u32>) {
            if self.own_group {
                self.send(Signal::KILL);
            }
            for _ in 0..ROUNDS {
                let mut left = process_table::started_here(Some(mark));
                left.retain(|id| Some(*id) != spared);
                if left.is_empty() {
                    break;
                }
                for pid in left.into_iter().filter_map(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
                    // A process that is gone needs no signal.
                    let _ = kill_process(pid, Signal::KILL);
                }
                std::thread::sleep(BETWEEN);
            }
        }

        /// Notices the ends of adopted processes, so that they leave the process table.
        pub(in super::super) fn reap_adopted(&self) {
            let adopted = process_table::ended_children().into_iter().filter(|id| *id != self.id);
            for pid in adopted.filter_map(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
            }
        }

        /// Returns whether it still runs, or, in a group of its own, anything that it started. On Linux, its environment shows
        /// that its id wasn't given to another process.
        pub(in super::super) fn is_running(&self, mark: &str) -> bool {
            let Some(pid) = self.pid() else { return false };
            let is_there = match self.own_group {
                true => test_kill_process_group(pid),
                false => test_kill_process(pid),
            };
            is_there.is_ok() && (cfg!(not(target_os = "linux")) || process_table::is_marked(self.id, mark))
        }

        fn pid(&self) -> Option<Pid> {
            i32::try_from(self.id).ok().and_then(Pid::from_raw)
        }

        fn send(&self, signal: Signal) {
            let Some(pid) = self.pid() else { return };
            // A process that is gone needs no signal.
            let _ = if self.own_group { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
        }

        fn send_alone(&self, signal: Signal) {
            let _ = self.pid().map(|pid| kill_process(pid, signal));
        }
    }
}

#[cfg(not(unix))]
impl AgentProcess {
    #[expect(clippy::unused_self, reason = "the same as on Unix")]
    pub(super) fn pass_on(&self, _signal: i32) {}

    /// Ends the agent and everything it started. Windows has nothing gentler for a program without a window.
    pub(super) fn push(&self, _push: Push) {
        let _ = Command::new("taskkill").args(["/F", "/T", "/PID", &self.id.to_string()]).output();
    }

    #[expect(clippy::unused_self, reason = "the same as on Unix")]
    pub(super) fn clear_away(&self, _mark: &str, _spared: Option<u32>) {}

    #[expect(clippy::unused_self, reason = "the same as on Unix")]
    pub(super) fn reap_adopted(&self) {}

    #[expect(clippy::unused_self, reason = "the same as on Unix")]
    pub(super) fn is_running(&self, _mark: &str) -> bool {
        false
    }
}
