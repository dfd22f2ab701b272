//! What could not be read, or not all of it: one bad file never loses the others.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

/// Something about a file that people should know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// The file or folder.
    pub(crate) path: String,
    /// What is the matter with it.
    pub(crate) problem: String,
    /// Nothing of it was read.
    pub(crate) lost: bool,
}

impl Problem {
    /// Nothing of it could be read.
    pub(crate) fn unread(path: &Path, error: &std::io::Error) -> Self {
        let problem = match error.kind() {
            std::io::ErrorKind::PermissionDenied => "no permission to read it".to_owned(),
            std::io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
            _ => error.to_string(),
        };
        Self { path: shown(path), problem, lost: true }
    }

    /// Nothing of it was read, and this is why.
    pub(crate) fn lost(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: shown(path), problem: problem.into(), lost: true }
    }

    /// It was read, but.
    pub(crate) fn note(path: &Path, problem: impl Into<String>) -> Self {
        Self { path: shown(path), problem: problem.into(), lost: false }
    }
}

/// A path for people: below the home folder it starts with `~`.
pub(crate) fn shown(path: &Path) -> String {
    let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    let below = home.as_ref().filter(|h| h.len() > 1).and_then(|home| path.strip_prefix(home).ok());
    match below {
        Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    }
}
