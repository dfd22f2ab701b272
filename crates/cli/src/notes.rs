//! The notes for people when deloop ends a task: learnings.md and issues.md.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use deloop_policy::{TaskUpdate, root_cause};
use deloop_types::{Body, Decision, Step};

use crate::exit::Failure;
use crate::learnings::{HEADING, known_patterns};
use crate::safe_file::{Make, Target};

/// More forced ends than this in one session are reported as an issue.
const MANY: u64 = 2;

/// Number of tasks that are remembered as begun. A long-running stream starts over when it has seen more.
const TASKS: usize = 10_000;

/// Reads and appends notes in a memory folder.
pub(crate) struct Notes {
    folder: NotesFolder,
    forced: RefCell<HashMap<String, u64>>,
    begun: RefCell<HashSet<(String, String)>>,
}

impl Notes {
    pub(crate) fn new(folder: NotesFolder) -> Self {
        Self { folder, forced: RefCell::default(), begun: RefCell::default() }
    }

    /// Returns the recorded loops of a step's tool, if the step is the first action of its task.
    pub(crate) fn known_at_start(&self, step: &Step) -> Vec<String> {
        let Body::Turn(turn) = &step.body else { return Vec::new() };
        let Some(call) = turn.calls.first() else { return Vec::new() };
        let task = step.task.as_deref().unwrap_or(step.session.as_str());
        let mut begun = self.begun.borrow_mut();
        if begun.len() >= TASKS {
            begun.clear();
        }
        match begun.insert((step.session.to_string(), task.to_owned())) {
            true => known_patterns(&self.folder, &call.tool),
            false => Vec::new(),
        }
    }

    /// Records that a task was forced to end.
    pub(crate) fn force_done(&self, task: &str, decision: &Decision) -> Result<(), Failure> {
        let mut forced = self.forced.borrow_mut();
        let times = forced.entry(decision.session.to_string()).or_default();
        *times += 1;
        write(&self.folder, task, decision, *times)
    }

    /// Records that the session is over.
    pub(crate) fn forget(&mut self, session: &str) {
        self.forced.borrow_mut().remove(session);
        self.begun.borrow_mut().retain(|(known, _)| known != session);
    }
}

/// Writes the note about the `times`-th forced end of a session.
pub(crate) fn write(
    folder: &NotesFolder,
    task: &str,
    decision: &Decision,
    times: u64,
) -> Result<(), Failure> {
    let Some(update) = TaskUpdate::in_decision(decision) else { return Ok(()) };
    let details = &update.metadata.loop_details;
    let found = decision.findings.iter().find(|f| f.evidence.run.is_some()).or(decision.main_finding());
    let tool = found.and_then(|f| f.tool.as_deref()).unwrap_or("a tool");
    let today = jiff::Timestamp::now().to_string();
    let today = today.split('T').next().unwrap_or_default();
    let (task, tool) = (one_line(task), one_line(tool));
    let cause = root_cause(&tool, &found.and_then(|f| f.evidence.run).unwrap_or_default());
    folder.append(
        "learnings.md",
        format!(
            "{HEADING}{today}\n\
             - Task {task}: {tool} looped {} times. Final normalized args: {}.\n\
             - Root cause hypothesis: {}.\n\
             - Recommendation: {}.\n\n",
            details.run_length,
            one_line(&details.last_action),
            cause.hypothesis,
            cause.recommendation,
        )
        .as_bytes(),
    )?;
    if times > MANY {
        folder.append(
            "issues.md",
            format!(
                "{HEADING}{today}\n\
                 - Session {}: force-done fired {times} times; last on task {task} ({tool}, {} similar actions).\n\n",
                one_line(decision.session.as_str()),
                details.run_length,
            )
            .as_bytes(),
        )?;
    }
    Ok(())
}

/// Returns a text on one line, as notes show it.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(240).collect()
}

/// The folder for notes.
#[derive(Debug, Clone)]
pub(crate) struct NotesFolder {
    /// The project's folder, inside which the folder for notes must be; `None` if the user chose it.
    root: Option<PathBuf>,
    folder: PathBuf,
}

impl NotesFolder {
    /// Creates one for a folder that the user chose.
    pub(crate) fn chosen(folder: &Path) -> Self {
        Self { root: None, folder: folder.to_owned() }
    }

    /// Creates one for a folder that a project's configuration names, which must be inside `root`.
    pub(crate) fn inside(root: &Path, folder: &Path) -> Self {
        Self { root: Some(root.to_owned()), folder: folder.to_owned() }
    }

    /// Returns the path of a file in it, for messages.
    fn path(&self, name: &str) -> PathBuf {
        self.root.as_deref().unwrap_or(Path::new("")).join(&self.folder).join(name)
    }

    /// Reads the last `most` bytes of a file in it.
    ///
    /// # Errors
    /// When the file doesn't exist, when it or a folder in the path is a link, or when it can't be read.
    pub(crate) fn read_tail(&self, name: &str, most: u64) -> std::io::Result<Vec<u8>> {
        let path = self.folder.join(name);
        let target = match &self.root {
            Some(root) => Target::existing_below(root, &path)?,
            None => Target::chosen(&path, Make::Nothing)?,
        };
        target.read_tail(most)
    }

    /// Appends to a file in it.
    ///
    /// # Errors
    /// When the file or a folder in the path is a link, or can't be written.
    pub(crate) fn append(&self, name: &str, text: &[u8]) -> Result<(), Failure> {
        let write = || -> std::io::Result<()> {
            let path = self.folder.join(name);
            let target = match &self.root {
                Some(root) => Target::below(root, &path)?,
                None => Target::chosen(&path, Make::Folders)?,
            };
            target.append()?.write_all(text)
        };
        write().map_err(|e| Failure::new(format!("{}: {e}", self.path(name).display())))
    }
}
