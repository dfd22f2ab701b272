//! Runs a program of the user with an alert on its standard input.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::outcome::AlertOutcome;

const TOTAL: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// Runs the program, and kills it with everything it started after ten seconds, or when `is_over`.
///
/// The alert is only on its input: nothing of it is in an argument, and no shell is involved.
pub(crate) fn run(argv: &[String], alert: &[u8], is_over: &dyn Fn() -> bool) -> AlertOutcome {
    let retry = |why: String| AlertOutcome::Retry { why, wait: None };
    let Some((program, arguments)) = argv.split_first() else { return retry("no command".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(if cfg!(windows) { "\\" } else { "/" });
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return retry(format!("it couldn't be started: {error}")),
    };
    if let Some(mut stdin) = child.stdin.take() {
        let alert = alert.to_vec();
        // A program that doesn't read must not keep this thread.
        std::thread::spawn(move || {
            let _ = stdin.write_all(&alert);
        });
    }
    match wait(&mut child, is_over) {
        Ok(Some(status)) if status.success() => AlertOutcome::Accepted(status.to_string()),
        Ok(Some(status)) => retry(status.to_string()),
        Ok(None) => retry(format!("it was killed: it ran for more than {} s", TOTAL.as_secs())),
        Err(error) => retry(error.to_string()),
    }
}

#[expect(clippy::disallowed_methods, reason = "a program may run for ever")]
fn wait(child: &mut Child, is_over: &dyn Fn() -> bool) -> std::io::Result<Option<std::process::ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= TOTAL || is_over() {
            kill(child);
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(unix)]
fn kill(child: &mut Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The child hasn't been waited for, so the id is still its own.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill(child: &mut Child) {
    let _ = child.kill();
}
