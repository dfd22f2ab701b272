use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use super::log::AuditError;
use super::private_files;

const LOCK_FILE: &str = "lock";
/// How often the lock is tried again, and how long to wait in between.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(50);

/// Keeps other processes from writing to a log. Ends with the process, however that ends.
pub(super) struct LogLock {
    _file: File,
}

impl LogLock {
    /// Takes the lock.
    pub(super) fn take(folder: &Path) -> Result<Self, AuditError> {
        let path = folder.join(LOCK_FILE);
        let failed = |source| AuditError::io(&path, source);
        let mut file = private_files::open_or_create(&path).map_err(failed)?;
        let mut tries = 0;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // A verification that looks whether the log is in use takes the lock for a moment.
                Err(TryLockError::WouldBlock) if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(AuditError::InUse { folder: folder.to_owned(), process: holder(&mut file) });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        // The number is for people only.
        let noted = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(format!("{}\n", std::process::id()).as_bytes()));
        noted.map_err(failed)?;
        Ok(Self { _file: file })
    }

    /// Returns whether another process holds the lock.
    pub(super) fn is_taken(folder: &Path) -> bool {
        let Ok(file) = private_files::open(&folder.join(LOCK_FILE)) else { return false };
        matches!(file.try_lock(), Err(TryLockError::WouldBlock))
    }
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    Read::by_ref(file).take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
