//! A settings file: read and replaced as a whole, with a backup copy.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::safe_file::{self, Expected, Links, Permission, Target};

/// The suffix of the copy's name.
const BACKUP: &str = ".deloop-backup";
/// Maximum size in bytes. No agent has larger settings.
const LONGEST: u64 = 16 << 20;

/// A settings file, which may not exist.
pub(super) struct SettingsFile {
    pub(super) path: PathBuf,
    /// The content; `None` if the file doesn't exist.
    pub(super) text: Option<String>,
    /// The project's folder, below which no link is followed; `None` for the user's own settings.
    root: Option<PathBuf>,
}

impl SettingsFile {
    /// Reads the settings of the user, or those in the folder `root`.
    pub(super) fn read(path: PathBuf, root: Option<PathBuf>) -> Result<Self, Failure> {
        let links = if root.is_some() { Links::Refuse } else { Links::Follow };
        let text = read(&path, links)?;
        Ok(Self { path, text, root })
    }

    /// Returns the path of the copy.
    pub(super) fn backup(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(BACKUP);
        self.path.with_file_name(name)
    }

    /// Returns the content of the copy, if there is one.
    pub(super) fn kept(&self) -> Result<Option<String>, Failure> {
        read(&self.backup(), Links::Refuse)
    }

    /// Copies the current content of the file.
    pub(super) fn keep(&self) -> Result<(), Failure> {
        let Some(text) = &self.text else { return Ok(()) };
        let backup = self.backup();
        let mode = Permission::Mode(mode(&self.path));
        let done = self.target(&backup).and_then(|t| t.replace(text.as_bytes(), mode, Expected::Any));
        done.map_err(|e| told(&backup, &e))
    }

    /// Removes the copy, if there is one.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        let backup = self.backup();
        let done = self.target(&backup).and_then(|target| target.remove(Expected::Any));
        done.map_err(|e| told(&backup, &e))
    }

    /// Replaces the file with this text and creates missing folders.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        let path = self.real()?;
        let done = self.target(&path);
        let done = done.and_then(|t| t.replace(text.as_bytes(), Permission::Keep, self.expected()));
        done.map_err(|e| told(&path, &e))
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        let done = self.target(&self.path).and_then(|target| target.remove(self.expected()));
        done.map_err(|e| told(&self.path, &e))
    }

    fn expected(&self) -> Expected<'_> {
        self.text.as_ref().map_or(Expected::Absent, |text| Expected::Bytes(text.as_bytes()))
    }

    fn target(&self, path: &Path) -> std::io::Result<Target> {
        match &self.root {
            Some(root) => Target::below(root, path.strip_prefix(root).unwrap_or(path)),
            None => Target::making_folders(path),
        }
    }

    /// Returns the file itself. The user's own settings may be a link to a file kept elsewhere.
    fn real(&self) -> Result<PathBuf, Failure> {
        if self.root.is_some() || !self.path.is_symlink() {
            return Ok(self.path.clone());
        }
        std::fs::canonicalize(&self.path).map_err(|_| {
            let link = self.path.display();
            Failure::new(format!("{link} is a link to a missing file; create the file, or remove the link"))
        })
    }
}

fn read(path: &Path, links: Links) -> Result<Option<String>, Failure> {
    match safe_file::read_text(path, LONGEST, links) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(told(path, &e)),
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).ok().map(|about| about.permissions().mode())
}

#[cfg(not(unix))]
fn mode(_: &Path) -> Option<u32> {
    None
}

fn told(path: &Path, error: &std::io::Error) -> Failure {
    let folder = path.ancestors().skip(1).find(|p| p.exists()).unwrap_or(path);
    let fix = match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("; you have no permission to write there: chmod u+w '{}'", folder.display())
        }
        ErrorKind::ReadOnlyFilesystem => {
            "; its file system is read-only: remount it, or install with --scope project elsewhere".to_owned()
        }
        ErrorKind::NotADirectory => "; part of this path is a file, not a folder: move it away".to_owned(),
        _ => String::new(),
    };
    Failure::new(format!("{}: {error}{fix}", path.display()))
}
