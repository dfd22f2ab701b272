//! The files that keep tasks between two calls of the hook.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use deloop_detect::Fingerprint;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::output::Answered;
use crate::exit::Failure;
use crate::safe_file::{self, Target};

/// A larger file wasn't written by deloop.
const LONGEST: u64 = 64 << 20;
/// Maximum number of actions that wait for their results.
const OPEN: usize = 32;

/// The state of a task between two calls.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SavedTask {
    pub(super) checkpoint: Option<deloop_engine::Checkpoint>,
    /// Number of forced ends, if the task has no session.
    pub(super) forced: u64,
    /// Number of actions so far.
    pub(super) actions: u64,
    /// Actions without a result.
    open: Vec<OpenAction>,
}

/// An action that was checked before it was taken, and whose result hasn't arrived.
#[derive(Debug, Serialize, Deserialize)]
struct OpenAction {
    /// The number of the action in the task.
    number: u64,
    tool: String,
    call: Fingerprint,
    answered: Answered,
}

impl SavedTask {
    /// Keeps an action until its result arrives.
    pub(super) fn open(&mut self, number: u64, tool: &str, args: &Value, answered: Answered) {
        if self.open.len() >= OPEN {
            self.open.remove(0);
        }
        let call = Fingerprint::of_call(tool, args);
        self.open.push(OpenAction { number, tool: tool.to_owned(), call, answered });
    }

    /// Returns the action that a result belongs to: the oldest of this tool with these arguments.
    pub(super) fn close(&mut self, tool: &str, args: &Value) -> Option<(u64, Answered)> {
        let call = Fingerprint::of_call(tool, args);
        let same = |a: &OpenAction| a.tool == tool && a.call == call;
        let at = self.open.iter().position(same)?;
        let action = self.open.remove(at);
        Some((action.number, action.answered))
    }
}

/// The number of forced ends of a session, over all of its tasks.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedSession {
    forced: u64,
}

/// A locked file, so that hooks of parallel calls wait for each other.
pub(super) struct LockedFile(File);

impl LockedFile {
    /// Opens and locks the file of a task.
    pub(super) fn of_task(state: &Path, session: Option<&str>, task: &str) -> Result<Self, Failure> {
        Self::open(state, Fingerprint::of_call(session.unwrap_or_default(), &Value::from(task)))
    }

    fn open(state: &Path, name: Fingerprint) -> Result<Self, Failure> {
        let path = format!("behavioral/{name}.json");
        let open = || -> std::io::Result<File> {
            safe_file::private_folder(state)?;
            let file = Target::below(state, Path::new(&path))?.edit()?;
            file.lock()?;
            Ok(file)
        };
        open().map(Self).map_err(|e| Failure::new(format!("{}: {e}", state.join(&path).display())))
    }

    /// Reads the state; a file that can't be read counts as empty, because a guard must not stop the work it guards.
    pub(super) fn read<T: Default + DeserializeOwned>(&mut self) -> T {
        let mut text = Vec::new();
        match (&mut self.0).take(LONGEST).read_to_end(&mut text) {
            Ok(_) => serde_json::from_slice(&text).unwrap_or_default(),
            Err(_) => T::default(),
        }
    }

    pub(super) fn write<T: Serialize>(&mut self, saved: &T) -> Result<(), Failure> {
        let text = serde_json::to_vec(saved)?;
        self.0.rewind()?;
        self.0.write_all(&text)?;
        self.0.set_len(text.len() as u64)?;
        Ok(())
    }
}

/// Counts a forced end of a session. Returns their number.
pub(crate) fn count_forced(state: &Path, session: &str) -> Result<u64, Failure> {
    let mut file = LockedFile::open(state, Fingerprint::of_bytes(format!("session\0{session}").as_bytes()))?;
    let mut saved: SavedSession = file.read();
    saved.forced += 1;
    file.write(&saved)?;
    Ok(saved.forced)
}
