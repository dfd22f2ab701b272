use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::clock::Clock;

/// What tells one version of a file from another without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileMark {
    modified: Option<SystemTime>,
    length: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileMark {
    /// Looks at a file. Returns `None` if it doesn't exist.
    pub(super) fn of(path: &Path) -> Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(about) => Ok(Some(Self {
                modified: about.modified().ok(),
                length: about.len(),
                #[cfg(unix)]
                inode: std::os::unix::fs::MetadataExt::ino(&about),
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Reads a whole regular file of at most `most` bytes.
pub(super) fn read_file(path: &Path, most: u64) -> Result<Vec<u8>> {
    // Opening a pipe would wait for its other end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// Says when it is time to look at a file again.
pub(super) struct Interval {
    begun: Instant,
    /// In milliseconds since it was created.
    next: AtomicU64,
    every: Duration,
    clock: Clock,
}

impl Interval {
    pub(super) fn new(every: Duration, clock: Clock) -> Self {
        let first = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        Self { begun: clock.moment(), next: AtomicU64::new(first), every, clock }
    }

    /// Returns whether the time is up, to one caller only, and starts again.
    pub(super) fn is_due(&self) -> bool {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let passed = self.clock.moment().saturating_duration_since(self.begun);
        let (now, next) = (millis(passed), self.next.load(Ordering::Relaxed));
        let later = now.saturating_add(millis(self.every));
        now >= next && self.next.compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
