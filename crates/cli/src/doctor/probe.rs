//! Starting the commands of the settings, in a state folder of their own.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use deloop::{Bounds, SqliteStore};
use deloop_formats::hooks::HookLine;

use crate::hook::RUN;

/// Longer than any hook may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The name of the rehearsal as a run.
const REHEARSAL: &str = "doctor";

/// A state folder that goes when this does.
pub(super) struct Home {
    folder: PathBuf,
}

impl Home {
    pub(super) fn make() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!(
            "deloop-doctor-{}-{:x}",
            std::process::id(),
            crate::state::now().0
        ));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder)?;
        Ok(Self { folder })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join("deloop").join(name)
    }

    /// The last line that a hook noted.
    pub(super) fn last_failure(&self) -> Option<String> {
        let log = std::fs::read_to_string(self.file("deloop.log")).ok()?;
        log.lines().last().map(|line| deloop::clean(line, 300))
    }

    /// Whether a stop was decided in the rehearsal of a run.
    pub(super) fn refuses_all(&self) -> bool {
        let store = SqliteStore::open(&self.file("deloop.db"), Bounds::default());
        store.is_ok_and(|store| store.stop_of_run(REHEARSAL).is_ok_and(|stop| stop.is_some()))
    }

    fn settle(&self, command: &mut Command, enforce: bool) {
        command.env("XDG_STATE_HOME", &self.folder).env("LOCALAPPDATA", &self.folder);
        for name in ["DELOOP", RUN, "DELOOP_MODE"] {
            command.env_remove(name);
        }
        if enforce {
            command.env(RUN, REHEARSAL);
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Sends an event to a hook, as the agent would: the reply, and how many milliseconds it took.
pub(super) fn hook(command: &str, event: &str, home: &Home, enforce: bool) -> Result<(String, f64), String> {
    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut process = Command::new(shell);
    process.args([flag, command]);
    home.settle(&mut process, enforce);
    run(process, event)
}

/// Sends Steps to `deloop stream`, as a plugin would.
pub(super) fn stream(
    line: &HookLine,
    agent: &str,
    steps: &str,
    home: &Home,
    enforce: bool,
) -> Result<(String, f64), String> {
    let mut process = Command::new(&line.program);
    process.args(["stream", "--agent", agent]);
    for (flag, value) in [("--mode", &line.mode), ("--profile", &line.profile)] {
        if let Some(value) = value {
            process.args([flag, value]);
        }
    }
    home.settle(&mut process, enforce);
    run(process, steps)
}

/// What `PROGRAM --version` prints.
pub(super) fn version(program: &str) -> Option<String> {
    let mut process = Command::new(program);
    process.arg("--version");
    run(process, "").ok().map(|(text, _)| text.trim().to_owned())
}

#[expect(clippy::disallowed_methods, reason = "how long a hook takes is what is measured here")]
fn run(mut process: Command, input: &str) -> Result<(String, f64), String> {
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = process.spawn().map_err(|e| format!("its command does not start ({e})"))?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("its command has no input".to_owned());
    };
    let (sender, receiver) = channel();
    let input = input.to_owned();
    std::thread::spawn(move || {
        // One that does not read has no use for it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    let Ok(text) = receiver.recv_timeout(PATIENCE) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("its command did not end within {} seconds", PATIENCE.as_secs()));
    };
    let status = child.wait().map_err(|e| e.to_string())?;
    let took = start.elapsed().as_secs_f64() * 1000.0;
    if status.success() { Ok((text, took)) } else { Err(format!("its command failed ({status})")) }
}
