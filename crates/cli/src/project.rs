//! The project that an agent works on: the top folder of a Git repository, or a folder outside of one.

use std::path::{Path, PathBuf};

use deloop_detect::short_hash;

/// How many folders above the working folder are searched for a Git repository.
const HIGHEST: usize = 64;

/// Returns the folder of the project that a folder belongs to, or else the folder itself, without links.
pub(crate) fn of_folder(folder: &str) -> String {
    let folder = Path::new(folder);
    top(folder).unwrap_or_else(|| folder.to_owned()).to_string_lossy().into_owned()
}

/// Returns the id of the project that a folder belongs to, which doesn't name it: a hash of the project's folder. Returns
/// `None` if there is no such folder.
pub(crate) fn id_of(folder: &Path) -> Option<String> {
    let top = folder.is_absolute().then(|| top(folder)).flatten()?;
    Some(format!("p{:016x}", short_hash(top.as_os_str().as_encoded_bytes())))
}

/// Returns the id of the project that this process was started in.
pub(crate) fn id_here() -> Option<String> {
    std::env::current_dir().ok().and_then(|folder| id_of(&folder))
}

fn top(folder: &Path) -> Option<PathBuf> {
    let folder = folder.canonicalize().ok()?;
    // A worktree has a file of this name.
    let is_top = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    Some(folder.ancestors().take(HIGHEST).find(is_top).unwrap_or(&folder).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_one_project_and_another_folder_another() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("repository/src");
        std::fs::create_dir_all(&inside).unwrap();
        let repository = inside.parent().unwrap();
        assert_ne!(id_of(&inside), id_of(repository));
        std::fs::create_dir(repository.join(".git")).unwrap();
        assert_eq!(id_of(&inside), id_of(repository));
        assert_ne!(id_of(repository), id_of(folder.path()));
        assert_eq!((id_of(Path::new("src")), id_of(&folder.path().join("gone"))), (None, None));
    }
}
