//! Files of which nothing could be read. In a folder that also holds sessions they are no problem; if they are all
//! there is, the command fails and says why.

use deloop_formats::FileRead;

use super::{Problem, SessionInput};
use crate::exit::Failure;

/// The files of which nothing was read.
#[derive(Default)]
pub(crate) struct UnreadFiles {
    /// Number of files.
    pub(crate) number: u64,
    /// Why, of the files that are a problem only if nothing else was read.
    unreported: Vec<Problem>,
    any_read: bool,
}

impl UnreadFiles {
    /// Notes that a file with steps was read.
    pub(crate) fn read(&mut self) {
        self.any_read = true;
    }

    /// Counts a file whose problem is reported in any case.
    pub(crate) fn add_reported(&mut self) {
        self.number += 1;
    }

    /// Counts a file that is a problem only if nothing else was read.
    pub(crate) fn add(&mut self, problem: Problem) {
        self.number += 1;
        self.unreported.push(problem);
    }

    /// Returns whether there were files and nothing was read of any, and then adds the reasons to the problems.
    pub(crate) fn is_everything(&mut self, problems: &mut Vec<Problem>) -> bool {
        let is_everything = !self.any_read && self.number > 0;
        if is_everything {
            problems.append(&mut self.unreported);
        }
        is_everything
    }
}

/// Returns the failure of a command that found this many files and read nothing.
pub(crate) fn nothing_read(files: u64) -> Failure {
    let none = match files {
        1 => "couldn't read the only file found".to_owned(),
        files => format!("couldn't read any of the {files} files found"),
    };
    Failure::new(format!(
        "{none}. If you know the format, name it with `--format`; `deloop formats` lists the formats"
    ))
}

/// Returns why a file has no steps, if it isn't just a session in which nothing happened.
pub(crate) fn without_steps(input: &SessionInput, read: &FileRead) -> Option<Problem> {
    let report = &read.report;
    let is_odd = input.forced.is_some() || report.unreadable > 0 || !report.unknown.is_empty();
    let problem = || format!("read as `{}`, but contains no steps", read.format.name());
    is_odd.then(|| Problem::lost(input.path(), problem()))
}
