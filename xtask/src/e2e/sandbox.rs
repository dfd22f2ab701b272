//! Runs an agent where it can reach nothing but the fake model and leaves nothing behind.
//!
//! Everything after the set-up happens inside one network namespace that has only loopback; each agent gets a
//! process namespace of its own on top, so that a hook that hangs dies with its agent.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Set for the copy of this program that runs inside the namespace.
const INSIDE: &str = "DELOOP_E2E_INSIDE";

/// How far a run is kept apart from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolation {
    /// Loopback only, and own processes.
    Namespaces,
    /// None, because this machine has no namespaces for us.
    None,
}

/// Starts this program again inside a namespace and says how it ended; none when that cannot be, or when it already is inside.
pub(super) fn enter() -> Option<ExitStatus> {
    if std::env::var_os(INSIDE).is_some() || !available() {
        return None;
    }
    let this = std::env::current_exe().ok()?;
    namespace(&["--net", "--mount"])
        .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
        .arg(this)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .status()
        .ok()
}

/// What the run that asks has.
pub(super) fn isolation() -> Isolation {
    if std::env::var_os(INSIDE).is_some() { Isolation::Namespaces } else { Isolation::None }
}

pub(super) fn available() -> bool {
    namespace(&["--net", "--mount", "--pid", "--fork", "--mount-proc"])
        .args(["ip", "link", "set", "lo", "up"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn namespace(kinds: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    // Someone who is not root becomes root of the namespace only; root needs no mapping.
    if std::env::var_os(INSIDE).is_none() {
        command.arg("--map-root-user");
    }
    command.args(kinds);
    command
}

/// What to run, and what must be true around it.
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
    /// The whole environment.
    pub(super) environment: Vec<(String, std::ffi::OsString)>,
    /// A folder that cannot be written to meanwhile.
    pub(super) read_only: Option<PathBuf>,
    pub(super) limit: Duration,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// None when it was killed, by us after the limit or by a signal.
    pub(super) code: Option<i32>,
    pub(super) timed_out: bool,
    pub(super) output: String,
    pub(super) took: Duration,
}

/// Runs it to its end or to its limit, in this folder, with its output in `logs`.
pub(super) fn run(launch: &Launch, folder: &Path, logs: &Path) -> io::Result<Ended> {
    let (out, err) = (logs.join("stdout"), logs.join("stderr"));
    let mut command = command(launch);
    command
        .current_dir(folder)
        .env_clear()
        .envs(launch.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?);
    let start = now();
    let mut child = command.spawn()?;
    let mut timed_out = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > launch.limit {
            timed_out = true;
            child.kill()?;
            break child.wait()?;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let output =
        [&out, &err].map(|path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned());
    Ok(Ended { code: status.code(), timed_out, output: output.concat(), took: start.elapsed() })
}

fn command(launch: &Launch) -> Command {
    if isolation() == Isolation::None {
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments);
        return command;
    }
    let mut command = namespace(&["--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["sh", "-c"]);
    // Root writes wherever the mode bits forbid it, so that the folder has to be a file system that cannot be written to.
    // The shell stays the first process, because an agent in that place would get no signals by default.
    // What is left in the namespace then is written down before it dies with the shell.
    command.arg(
        "if [ -n \"$1\" ]; then mount -t tmpfs -o ro none \"$1\" || exit 97; fi; shift; \"$@\"; code=$?; \
         for process in /proc/[0-9]*; do \
         [ \"$process\" = /proc/$$ ] || tr '\\0' ' ' < \"$process/cmdline\"; done > \"$E2E_COUNTER.left\" 2> /dev/null; \
         exit $code",
    );
    command.arg("sh").arg(launch.read_only.as_deref().unwrap_or(Path::new(""))).arg(&launch.program);
    command.args(&launch.arguments);
    command
}

#[expect(clippy::disallowed_methods, reason = "a chore may look at the clock")]
fn now() -> Instant {
    Instant::now()
}
