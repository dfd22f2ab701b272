use std::path::{Path, PathBuf};

/// Returns the path that a setting names; `~/` stands for the home folder.
pub(crate) fn from_home(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}
