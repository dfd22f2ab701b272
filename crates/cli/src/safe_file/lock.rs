//! The lock of a file that commands read, change and write back.

use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::time::Duration;

use super::write::Target;

/// How often the lock is tried, and the pause in between. Whoever holds it only reads and writes a small file.
const TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps other deloop commands from changing a file. It ends when it is dropped, and with the process, however that ends.
#[must_use]
pub(crate) struct FileLock {
    _file: File,
}

/// Takes the lock of a file, which is a file of its own beside it and stays there. Waits at most 10 seconds.
///
/// # Errors
/// When another command holds the lock for longer, or it can't be created.
pub(crate) fn lock(path: &Path) -> Result<FileLock> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let file = Target::making_folders(&path.with_file_name(name))?.edit()?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(FileLock { _file: file }),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            // Without locks, the check before the file is replaced remains.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                return Ok(FileLock { _file: file });
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(Error::new(
        ErrorKind::TimedOut,
        "another deloop command has been changing it for 10 seconds, so nothing was changed; run the command again",
    ))
}
