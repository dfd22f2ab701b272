//! What is noted for people when a task is forced to its end: learnings.md and issues.md.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use deloop::Decision;

use crate::exit::Failure;

/// More forced ends than this in one session are an issue.
const MANY: u64 = 2;

/// Appends notes in a memory folder.
pub(crate) struct Notes {
    folder: PathBuf,
    forced: RefCell<HashMap<String, u64>>,
}

impl Notes {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, forced: RefCell::default() }
    }

    /// A task was forced to its end.
    pub(crate) fn force_done(&self, task: &str, decision: &Decision) -> Result<(), Failure> {
        let mut forced = self.forced.borrow_mut();
        let times = forced.entry(decision.session.to_string()).or_default();
        *times += 1;
        write(&self.folder, task, decision, *times)
    }

    /// The session is over.
    pub(crate) fn forget(&mut self, session: &str) {
        self.forced.borrow_mut().remove(session);
    }
}

/// Notes the `times`-th forced end of a session.
pub(crate) fn write(folder: &Path, task: &str, decision: &Decision, times: u64) -> Result<(), Failure> {
    let Some(update) = &decision.task_update else { return Ok(()) };
    let details = &update.metadata.loop_details;
    let tool = decision.findings.first().and_then(|f| f.tool.as_deref()).unwrap_or("a tool");
    let today = jiff::Timestamp::now().to_string();
    let today = today.split('T').next().unwrap_or_default();
    let (task, tool) = (one_line(task), one_line(tool));
    append(
        &folder.join("learnings.md"),
        &format!(
            "## Behavioral Loop Detection — {today}\n\
             - Task {task}: {tool} looped {} times. Final normalized args: {}.\n\
             - Root cause hypothesis: {tool} was called again with nearly the same arguments after it had not led on.\n\
             - Recommendation: say in the task prompt what to do when {tool} does not help, or give the task another tool.\n\n",
            details.run_length,
            one_line(&details.last_action),
        ),
    )?;
    if times > MANY {
        append(
            &folder.join("issues.md"),
            &format!(
                "## Behavioral Loop Detection — {today}\n\
                 - Session {}: force-done fired {times} times; last on task {task} ({tool}, {} similar actions).\n\n",
                one_line(decision.session.as_str()),
                details.run_length,
            ),
        )?;
    }
    Ok(())
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(240).collect()
}

fn append(path: &Path, text: &str) -> Result<(), Failure> {
    let told = |e: std::io::Error| Failure::new(format!("{}: {e}", path.display()));
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(told)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(told)?;
    file.write_all(text.as_bytes()).map_err(told)
}
