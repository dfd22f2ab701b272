//! The files that keep tasks between two calls of the hook.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use deloop_detect::Fingerprint;
use deloop_types::Millis;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::output::Answered;
use crate::exit::Failure;
use crate::safe_file::{self, Target};

/// The folder of all tasks, below the state folder.
const FOLDER: &str = "behavioral";
/// How the names of the files that belong to a whole session end.
const SESSION: &str = "session.json";
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
    /// The time of the last action or result.
    pub(super) last: Option<Millis>,
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
    /// Starts afresh if nothing happened in the task for so long, and notes this time.
    pub(super) fn at(self, now: Millis, idle: Duration) -> Self {
        let idle = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
        let ended = self.last.is_some_and(|last| now.0.saturating_sub(last.0) >= idle);
        Self { last: Some(now), ..if ended { Self::default() } else { self } }
    }

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
        Self::open(state, &task_name(session, task))
    }

    fn open(state: &Path, name: &str) -> Result<Self, Failure> {
        let path = Path::new(FOLDER).join(name);
        let open = || -> io::Result<File> {
            safe_file::private_folder(state)?;
            loop {
                let file = Target::below(state, &path)?.edit()?;
                file.lock()?;
                // Another hook may have removed it in the meantime.
                if !is_removed(&file)? {
                    return Ok(file);
                }
            }
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
    let mut file = LockedFile::open(state, &format!("{}{SESSION}", prefix(Some(session))))?;
    let mut saved: SavedSession = file.read();
    saved.forced += 1;
    file.write(&saved)?;
    Ok(saved.forced)
}

/// Removes the file of a task that is over.
pub(super) fn end_task(state: &Path, session: Option<&str>, task: &str) -> Result<(), Failure> {
    let path = state.join(FOLDER).join(task_name(session, task));
    remove(&path, &|_| true).map_err(|e| Failure::new(format!("{}: {e}", path.display())))
}

/// Removes the files of a session that is over.
pub(super) fn end_session(state: &Path, session: &str) -> Result<(), Failure> {
    let prefix = prefix(Some(session));
    remove_all(state, &|name| name.starts_with(&prefix), &|_| true)
}

/// Removes the files of tasks in which nothing happened for so long.
pub(super) fn end_idle(state: &Path, now: Millis, idle: Duration) -> Result<(), Failure> {
    let now = UNIX_EPOCH + Duration::from_millis(now.0.unsigned_abs());
    let is_old =
        |file: &Metadata| file.modified().is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= idle));
    // A session may be at other tasks.
    remove_all(state, &|name| !name.ends_with(SESSION), &is_old)
}

/// Returns the file name of a task.
fn task_name(session: Option<&str>, task: &str) -> String {
    format!("{}{}.json", prefix(session), Fingerprint::of_bytes(task.as_bytes()))
}

/// Returns how the names of a session's files begin.
fn prefix(session: Option<&str>) -> String {
    session.map_or_else(|| "task-".to_owned(), |id| format!("{}-", Fingerprint::of_bytes(id.as_bytes())))
}

fn remove_all(
    state: &Path,
    is_meant: &dyn Fn(&str) -> bool,
    ends: &dyn Fn(&Metadata) -> bool,
) -> Result<(), Failure> {
    let folder = state.join(FOLDER);
    let told = |e: io::Error| Failure::new(format!("{}: {e}", folder.display()));
    let files = match std::fs::read_dir(&folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        files => files.map_err(told)?,
    };
    for file in files.flatten().filter(|file| file.file_name().to_str().is_some_and(is_meant)) {
        remove(&file.path(), ends).map_err(told)?;
    }
    Ok(())
}

/// Removes a file that no hook is using.
fn remove(path: &Path, ends: &dyn Fn(&Metadata) -> bool) -> io::Result<()> {
    let remove = || {
        let known = std::fs::symlink_metadata(path)?;
        if known.is_file() && ends(&known) {
            let file = File::open(path)?;
            if file.try_lock().is_ok() && ends(&file.metadata()?) {
                return std::fs::remove_file(path);
            }
        }
        Ok(())
    };
    remove().or_else(|e: io::Error| if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(e) })
}

#[cfg(unix)]
fn is_removed(file: &File) -> io::Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) == 0)
}

/// Elsewhere, a file that is open isn't removed.
#[cfg(not(unix))]
fn is_removed(_: &File) -> io::Result<bool> {
    Ok(false)
}
