//! Problems with files. One bad file never affects the others.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::print;

/// Number of problems printed on standard error; `--json` has more.
const PRINTED: usize = 10;

/// A problem with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// The file or folder.
    pub(crate) path: String,
    /// A description of the problem.
    pub(crate) problem: String,
    /// Whether the whole file was skipped.
    pub(crate) lost: bool,
}

impl Problem {
    /// Reports that a file couldn't be opened or read at all.
    pub(crate) fn unread(path: &Path, error: &std::io::Error) -> Self {
        let problem = match error.kind() {
            std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            std::io::ErrorKind::NotFound => "no such file or folder".to_owned(),
            _ => error.to_string(),
        };
        Self { path: home_relative(path), problem, lost: true }
    }

    /// Reports that nothing of a file was read, and why.
    pub(crate) fn lost(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: home_relative(path), problem: problem.into(), lost: true }
    }

    /// Reports something about a file that was read.
    pub(crate) fn note(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: home_relative(path), problem: problem.into(), lost: false }
    }

    /// Reports a file of a format that deloop doesn't know.
    pub(crate) fn unknown_format(path: &Path, looks_like: &str) -> Self {
        Self::lost(path, format!("unknown session format: {looks_like}; see `deloop formats`"))
    }
}

/// Prints problems on standard error.
pub(crate) fn print_problems(problems: &[Problem]) {
    for Problem { path, problem, .. } in problems.iter().take(PRINTED) {
        print::tell(format_args!("deloop: {path}: {problem}"));
    }
    if let Some(more) = problems.len().checked_sub(PRINTED).filter(|more| *more > 0) {
        print::tell(format_args!("deloop: … and {more} more (`--json` lists them)"));
    }
}

/// Returns a path for people: below the home folder it starts with `~`.
pub(crate) fn home_relative(path: &Path) -> String {
    let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    let below = home.as_ref().filter(|h| h.len() > 1).and_then(|home| path.strip_prefix(home).ok());
    match below {
        Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    }
}
