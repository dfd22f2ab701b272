//! The project that a folder belongs to.

use std::path::Path;

/// Returns the folder of the repository that this folder is in, or else the folder itself, without links.
pub(crate) fn of_folder(folder: &str) -> String {
    let folder = Path::new(folder);
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    // A worktree has a file of this name.
    let root = real.ancestors().find(|above| above.join(".git").exists()).unwrap_or(&real);
    root.to_string_lossy().into_owned()
}
