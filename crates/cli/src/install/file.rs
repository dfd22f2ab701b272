//! A file of settings on disk: read whole, replaced whole, with a copy of what it was.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::exit::Failure;

/// What the copy's name ends with.
const BACKUP: &str = ".deloop-backup";

/// A file of settings, which need not exist.
pub(super) struct SettingsFile {
    pub(super) path: PathBuf,
    /// What is in it; `None` when there is no such file.
    pub(super) text: Option<String>,
}

impl SettingsFile {
    pub(super) fn read(path: PathBuf) -> Result<Self, Failure> {
        let text = read(&path)?;
        Ok(Self { path, text })
    }

    /// Where the copy is.
    pub(super) fn backup(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(BACKUP);
        self.path.with_file_name(name)
    }

    /// What is in the copy, if there is one.
    pub(super) fn kept(&self) -> Result<Option<String>, Failure> {
        read(&self.backup())
    }

    /// Keeps a copy of what is in the file now.
    pub(super) fn keep(&self) -> Result<(), Failure> {
        match &self.text {
            Some(text) => replace(&self.backup(), text, permissions(&self.path)),
            None => Ok(()),
        }
    }

    /// Removes the copy, if there is one.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        gone(&self.backup())
    }

    /// Puts this text in the file's place, and makes the folders above it.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|e| told(folder, &e))?;
        }
        replace(&self.path, text, permissions(&self.path))
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        gone(&self.path)
    }
}

fn read(path: &Path) -> Result<Option<String>, Failure> {
    match fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| {
            Failure::new(format!("{} is not UTF-8; save it as UTF-8, then try again", path.display()))
        }),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(told(path, &e)),
    }
}

fn permissions(path: &Path) -> Option<Permissions> {
    fs::metadata(path).ok().map(|m| m.permissions())
}

/// A new file takes the old one's place at once: a reader sees one or the other. A link stays a link.
fn replace(path: &Path, text: &str, mode: Option<Permissions>) -> Result<(), Failure> {
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(_) if path.is_symlink() => {
            let link = path.display();
            return Err(Failure::new(format!(
                "{link} is a link to a file that is not there; make it, or remove the link"
            )));
        }
        Err(_) => path.to_owned(),
    };
    let fresh = path.with_file_name(format!(".deloop-{}.tmp", std::process::id()));
    let write = || {
        let mut file = File::create(&fresh)?;
        if let Some(mode) = mode {
            keep_owner(&path, &fresh);
            fs::set_permissions(&fresh, mode)?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    };
    write().map_err(|e: std::io::Error| {
        let _ = fs::remove_file(&fresh);
        told(&path, &e)
    })
}

/// Root that changes a user's file leaves it the user's.
#[cfg(unix)]
fn keep_owner(from: &Path, to: &Path) {
    use std::os::unix::fs::{MetadataExt, chown};
    if let Ok(old) = fs::metadata(from) {
        let _ = chown(to, Some(old.uid()), Some(old.gid()));
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &Path, _: &Path) {}

fn gone(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(told(path, &e)),
        _ => Ok(()),
    }
}

fn told(path: &Path, error: &std::io::Error) -> Failure {
    let folder = path.ancestors().skip(1).find(|p| p.exists()).unwrap_or(path);
    let fix = match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("; you need to be allowed to write there: chmod u+w '{}'", folder.display())
        }
        ErrorKind::ReadOnlyFilesystem => {
            "; its file system is read-only: remount it, or install with --scope project elsewhere".to_owned()
        }
        ErrorKind::NotADirectory => "; a part of this path is a file, not a folder: move it away".to_owned(),
        _ => String::new(),
    };
    Failure::new(format!("{}: {error}{fix}", path.display()))
}
