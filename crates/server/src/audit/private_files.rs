//! The files of a log: regular files that belong to the user alone. A link is refused, wherever it leads.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::Path;

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> Result<File> {
    check(path)?;
    File::open(path)
}

/// Reads a file of at most this size.
pub(super) fn read(path: &Path, longest: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(longest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest { Err(Error::other("it is too large")) } else { Ok(bytes) }
}

/// Opens a file for reading and writing, and creates it if it doesn't exist.
pub(super) fn open_or_create(path: &Path) -> Result<File> {
    match options().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            check(path)?;
            options().open(path)
        }
        made => made,
    }
}

/// Opens a file for appending, and creates it if it doesn't exist.
pub(super) fn append(path: &Path) -> Result<File> {
    match options().append(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            check(path)?;
            options().append(true).open(path)
        }
        made => made,
    }
}

/// Replaces a file atomically.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let next = path.with_extension("tmp");
    match std::fs::remove_file(&next) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = options().create_new(true).open(&next)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    std::fs::rename(&next, path)?;
    sync_folder(path.parent().unwrap_or(path))
}

/// Makes names that were created, renamed or removed in this folder survive a power failure.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Creates the folder of a log.
pub(super) fn make_folder(folder: &Path) -> Result<()> {
    match std::fs::symlink_metadata(folder) {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(Error::other("it isn't a folder, or is a link")),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut builder = DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)
        }
        Err(error) => Err(error),
    }
}

/// Returns whether a file that is open was removed from its folder.
pub(super) fn is_removed(file: &File) -> bool {
    #[cfg(unix)]
    let removed = file.metadata().is_ok_and(|about| std::os::unix::fs::MetadataExt::nlink(&about) == 0);
    #[cfg(not(unix))]
    let removed = file.metadata().is_err();
    removed
}

fn check(path: &Path) -> Result<()> {
    if std::fs::symlink_metadata(path)?.is_file() {
        Ok(())
    } else {
        Err(Error::other("it isn't a regular file"))
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
