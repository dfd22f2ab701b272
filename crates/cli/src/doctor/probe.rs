//! Starts this program as an agent's hook, in a temporary state folder.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use deloop_formats::hooks::HookLine;
use deloop_live::SqliteJournal;
use deloop_store::Bounds;
use tempfile::TempDir;

use crate::hook::RUN;
use crate::safe_file::{self, Expected, Links, Permission, Target};
use crate::server_link::SERVER;
use crate::state::State;
use crate::trust::TRUSTED_FILE;

/// Longer than any hook may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The run id of the rehearsal.
const REHEARSAL: &str = "doctor";

/// A temporary state folder, removed on drop.
pub(super) struct Home {
    folder: TempDir,
}

impl Home {
    /// Creates one that trusts what the user trusts.
    pub(super) fn make() -> std::io::Result<Self> {
        let home = Self { folder: TempDir::with_prefix("deloop-doctor-")? };
        if let Some(trusted) = State::here().ok().and_then(|state| state.read(TRUSTED_FILE)) {
            Target::making_folders(&home.file(TRUSTED_FILE))?.replace(
                trusted.as_bytes(),
                Permission::Private,
                Expected::Absent,
            )?;
        }
        Ok(home)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("deloop").join(name)
    }

    /// Returns the last line that a hook logged.
    pub(super) fn last_failure(&self) -> Option<String> {
        let log = safe_file::read_text(&self.file("deloop.log"), 16 << 20, Links::Refuse).ok()?;
        log.lines().last().map(|line| deloop_detect::clean(line, 300))
    }

    /// Returns whether the rehearsed run got a stop.
    pub(super) fn refuses_all(&self) -> bool {
        let store = SqliteJournal::open(&self.file("deloop.db"), Bounds::default());
        store.is_ok_and(|store| store.stop_of_run(REHEARSAL).is_ok_and(|stop| stop.is_some()))
    }

    fn settle(&self, command: &mut Command, enforce: bool) {
        command.env("XDG_STATE_HOME", self.folder.path()).env("LOCALAPPDATA", self.folder.path());
        for name in ["DELOOP", RUN, "DELOOP_MODE"] {
            command.env_remove(name);
        }
        // A rehearsal isn't a session of the user's, so no server gets it.
        command.env(SERVER, "off");
        if enforce {
            command.env(RUN, REHEARSAL);
        }
    }
}

/// Sends an event to a hook, as the agent would. Returns the reply and the duration in milliseconds.
pub(super) fn hook(
    line: &HookLine,
    agent: &str,
    event: &str,
    home: &Home,
    enforce: bool,
) -> Result<(String, f64), String> {
    run(this_program(line, &["hook", agent], home, enforce)?, event)
}

/// Sends Steps to `deloop stream`, as a plugin would.
pub(super) fn stream(
    line: &HookLine,
    agent: &str,
    steps: &str,
    home: &Home,
    enforce: bool,
) -> Result<(String, f64), String> {
    run(this_program(line, &["stream", "--agent", agent], home, enforce)?, steps)
}

/// Returns a command for this program, with the mode and profile of a line in an agent's settings. The program that
/// the line names isn't run, because anyone may have written it.
fn this_program(line: &HookLine, words: &[&str], home: &Home, enforce: bool) -> Result<Command, String> {
    let program =
        std::env::current_exe().map_err(|e| format!("can't find the path of the deloop program ({e})"))?;
    let mut process = Command::new(program);
    process.args(words);
    for (flag, value) in [("--mode", &line.mode), ("--profile", &line.profile)] {
        if let Some(value) = value {
            // As one word, so that the value can't be taken for a flag.
            process.arg(format!("{flag}={value}"));
        }
    }
    home.settle(&mut process, enforce);
    Ok(process)
}

#[expect(clippy::disallowed_methods, reason = "this measures how long a hook takes")]
fn run(mut process: Command, input: &str) -> Result<(String, f64), String> {
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = process.spawn().map_err(|e| format!("its command doesn't start ({e})"))?;
    let (Some(mut stdin), Some(mut stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("can't write to its command".to_owned());
    };
    let (sender, receiver) = channel();
    let input = input.to_owned();
    std::thread::spawn(move || {
        // A program that doesn't read its input doesn't need it.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    let Ok(text) = receiver.recv_timeout(PATIENCE) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("its command didn't finish within {} seconds", PATIENCE.as_secs()));
    };
    let status = child.wait().map_err(|e| e.to_string())?;
    let took = start.elapsed().as_secs_f64() * 1000.0;
    if status.success() { Ok((text, took)) } else { Err(format!("its command failed ({status})")) }
}
