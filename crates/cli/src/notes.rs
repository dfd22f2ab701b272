//! The notes for people when deloop ends a task: learnings.md and issues.md.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use deloop_policy::TaskUpdate;
use deloop_types::Decision;

use crate::exit::Failure;
use crate::safe_file::{Make, Target};

/// More forced ends than this in one session are reported as an issue.
const MANY: u64 = 2;

/// Appends notes in a memory folder.
pub(crate) struct Notes {
    folder: NotesFolder,
    forced: RefCell<HashMap<String, u64>>,
}

impl Notes {
    pub(crate) fn new(folder: NotesFolder) -> Self {
        Self { folder, forced: RefCell::default() }
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
    let tool = decision.findings.first().and_then(|f| f.tool.as_deref()).unwrap_or("a tool");
    let today = jiff::Timestamp::now().to_string();
    let today = today.split('T').next().unwrap_or_default();
    let (task, tool) = (one_line(task), one_line(tool));
    folder.append(
        "learnings.md",
        format!(
            "## Behavioral Loop Detection — {today}\n\
             - Task {task}: {tool} looped {} times. Final normalized args: {}.\n\
             - Root cause hypothesis: {tool} was called again with nearly the same arguments without making progress.\n\
             - Recommendation: say in the task prompt what to do when {tool} does not help, or give the task another tool.\n\n",
            details.run_length,
            one_line(&details.last_action),
        )
        .as_bytes(),
    )?;
    if times > MANY {
        folder.append(
            "issues.md",
            format!(
                "## Behavioral Loop Detection — {today}\n\
                 - Session {}: force-done fired {times} times; last on task {task} ({tool}, {} similar actions).\n\n",
                one_line(decision.session.as_str()),
                details.run_length,
            )
            .as_bytes(),
        )?;
    }
    Ok(())
}

fn one_line(text: &str) -> String {
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
