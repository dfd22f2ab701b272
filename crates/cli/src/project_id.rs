//! Identifies the project that an agent works on, without naming it.

use std::path::Path;

use deloop_detect::short_hash;

/// How many folders above the working folder are searched for a Git repository.
const HIGHEST: usize = 64;

/// Returns the id of the project that a folder belongs to: a hash of the top folder of its Git repository, or of the folder
/// itself outside of one. Returns `None` if there is no such folder.
pub(crate) fn of(folder: &Path) -> Option<String> {
    let folder = folder.is_absolute().then(|| folder.canonicalize().ok()).flatten()?;
    let top = folder.ancestors().take(HIGHEST).find(|folder| folder.join(".git").symlink_metadata().is_ok());
    let top = top.unwrap_or(&folder);
    Some(format!("p{:016x}", short_hash(top.as_os_str().as_encoded_bytes())))
}

/// Returns the id of the project that this process was started in.
pub(crate) fn here() -> Option<String> {
    std::env::current_dir().ok().and_then(|folder| of(&folder))
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
        assert_ne!(of(&inside), of(repository));
        std::fs::create_dir(repository.join(".git")).unwrap();
        assert_eq!(of(&inside), of(repository));
        assert_ne!(of(repository), of(folder.path()));
        assert_eq!((of(Path::new("src")), of(&folder.path().join("gone"))), (None, None));
    }
}
