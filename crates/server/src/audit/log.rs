use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use deloop_store::{SharedRecords, StoreError};
use deloop_types::Millis;

use super::audit_key::AuditKey;
use super::entry::{AuditEntry, LogNote};
use super::head::AuditHead;
use super::line::{self, LineContext};
use super::lock::LogLock;
use super::log_writer::LogWriter;
use super::private_files;
use super::published_heads::PublishedHeads;
use super::recovery::{self, Recovered};

/// Maximum size of a segment, in bytes, if nothing smaller follows from the settings.
const SEGMENT: u64 = 8 << 20;
/// Minimum size at which a segment is full.
const SMALLEST_SEGMENT: u64 = 64 << 10;
/// How much is written at a time.
const WRITE: usize = 8 << 20;
/// Who writes the log's records about itself.
pub(super) const LOG_ACTOR: &str = "deloop";

/// Why the audit log can't be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum AuditError {
    /// Another process writes to it.
    InUse {
        /// The log's folder.
        folder: PathBuf,
        /// The other process, if its number is known.
        process: Option<u32>,
    },
    /// The records were written with a key, and none was given. What would be added would count as forged.
    NeedsKey {
        /// The log's folder.
        folder: PathBuf,
    },
    /// A file can't be read or written.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl AuditError {
    pub(super) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

impl std::fmt::Display for AuditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InUse { folder, process } => {
                let by = process.map_or("another process".to_owned(), |id| format!("process {id}"));
                write!(
                    f,
                    "the audit log {} is in use by {by}; stop that server first, or name another folder with --state",
                    folder.display()
                )
            }
            Self::NeedsKey { folder } => write!(
                f,
                "the records of the audit log {} were written with a key; name its file with \
                 `[serve.audit] key_file` or --key-file, or move the folder away to start a log without one",
                folder.display()
            ),
            Self::Io { path, source } => write!(f, "the audit log {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for AuditError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::InUse { .. } | Self::NeedsKey { .. } => None,
        }
    }
}

/// How a log is kept.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AuditSettings {
    /// The hash of the profile and options in effect, for every record.
    pub configuration: Option<String>,
    /// Delete segments whose last record is older than this many days.
    pub keep_days: Option<u32>,
    /// Delete the oldest segments while the log is larger than this.
    pub keep_mib: Option<u32>,
    /// Authenticates every record.
    pub key: Option<AuditKey>,
}

impl AuditSettings {
    /// Returns the size at which a segment is full: several of them fit into what is kept.
    pub(super) fn segment_size(&self) -> u64 {
        let quarter = self.keep_mib.map(|mib| (u64::from(mib) << 20) / 4);
        quarter.unwrap_or(SEGMENT).clamp(SMALLEST_SEGMENT, SEGMENT)
    }
}

/// The audit log of one server. All methods block, and may be called from many threads.
pub struct AuditLog {
    pub(super) folder: PathBuf,
    pub(super) settings: AuditSettings,
    context: LineContext,
    writer: Mutex<LogWriter>,
    /// Held while sealed segments are rewritten or deleted.
    pub(super) maintenance: Mutex<()>,
    failures: AtomicU64,
    published: OnceLock<PublishedHeads>,
    _lock: LogLock,
}

impl AuditLog {
    /// Opens the log in this folder; creates it if it doesn't exist. An incomplete last line, which a power failure can
    /// leave, is cut off, and a record notes that, or that records are missing.
    ///
    /// # Errors
    /// When another process has it open, or its files can't be read or written.
    pub fn open(folder: &Path, settings: AuditSettings, now: Millis) -> Result<Self, AuditError> {
        let failed = |source| AuditError::io(folder, source);
        private_files::make_folder(folder).map_err(failed)?;
        let lock = LogLock::take(folder)?;
        let Recovered { server, last, next, is_new, has_code, note } = recovery::recover(folder)?;
        if has_code && settings.key.is_none() {
            return Err(AuditError::NeedsKey { folder: folder.to_owned() });
        }
        let log = Self {
            folder: folder.to_owned(),
            context: LineContext {
                server,
                configuration: settings.configuration.clone(),
                key: settings.key.clone(),
            },
            settings,
            writer: Mutex::new(LogWriter::new(AuditHead { seq: next - 1, hash: last })),
            maintenance: Mutex::new(()),
            failures: AtomicU64::new(0),
            published: OnceLock::new(),
            _lock: lock,
        };
        if is_new {
            log.append(&[AuditEntry::new(now, LOG_ACTOR, "log.create")])?;
        }
        if let Some(note) = note {
            log.append(&[AuditEntry::new(now, LOG_ACTOR, "log.recover").with_note(note)])?;
        }
        log.finish_purges()?;
        log.delete_old(now)?;
        Ok(log)
    }

    /// Appends records, in order. When this returns, they survive the end of this process, however it ends; a power
    /// failure can lose the last ones.
    ///
    /// # Errors
    /// When a file can't be written. The entries are then lost and counted, except those of the first megabytes of a
    /// very large batch.
    pub fn append(&self, entries: &[AuditEntry]) -> Result<(), AuditError> {
        let Some(last) = entries.last() else { return Ok(()) };
        let rolled = self.write(entries)?;
        if rolled && let Ok(_busy) = self.maintenance.try_lock() {
            // The records are written. What couldn't be deleted is tried again with the next segment.
            let _ = self.delete_old_segments(last.ts);
        }
        Ok(())
    }

    /// Returns how many entries couldn't be written since the log was opened.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Checks whether records can be written, if the last attempt failed. Writes how many were lost.
    ///
    /// # Errors
    /// When they still can't; the reason of the last attempt.
    pub fn check(&self, now: Millis) -> Result<(), String> {
        let last_error = self.writer().last_error.clone();
        if last_error.is_none() {
            return Ok(());
        }
        // Nothing but the note about what was lost.
        self.write_with(&[], now).map(drop).map_err(|error| error.to_string())
    }

    /// Returns the number and hash of the last record.
    #[must_use]
    pub fn head(&self) -> AuditHead {
        self.writer().head.clone()
    }

    /// Publishes the head in these records from now on, with [`AuditLog::publish_if_due`], before records are removed, and
    /// at the end. Whoever can write to the log's folder, but not to them, can't remove what was published unnoticed.
    pub fn publish_to(&self, records: Arc<dyn SharedRecords>) {
        // A log has one server, so there is nobody to call it twice.
        let _ = self.published.set(PublishedHeads::new(records, self.server()));
    }

    /// Publishes the head if that is due.
    ///
    /// # Errors
    /// When the backend fails.
    pub fn publish_if_due(&self, now: Millis) -> Result<(), StoreError> {
        match self.published.get().filter(|published| published.is_due(now)) {
            Some(published) => published.publish(&self.head(), now),
            None => Ok(()),
        }
    }

    /// Publishes the head at once: what it names is about to be removed, or the log ends.
    pub(crate) fn publish(&self, now: Millis) {
        if let Some(published) = self.published.get() {
            // Without it, verification against the shared records reports the removal until the next head is there.
            let _ = published.publish(&self.head(), now);
        }
    }

    /// Returns the random id of this server, which stays the same as long as the log does.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.context.server
    }

    pub(super) fn writer(&self) -> MutexGuard<'_, LogWriter> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends records without deleting old ones. Returns whether a segment was started.
    pub(super) fn write(&self, entries: &[AuditEntry]) -> Result<bool, AuditError> {
        let Some(last) = entries.last() else { return Ok(false) };
        self.write_with(entries, last.ts)
    }

    fn write_with(&self, entries: &[AuditEntry], now: Millis) -> Result<bool, AuditError> {
        let mut writer = self.writer();
        let lost = writer.lost;
        let note = LogNote { lost: Some(lost), ..LogNote::default() };
        let about_lost = (lost > 0).then(|| AuditEntry::new(now, LOG_ACTOR, "log.lost").with_note(note));
        let before = writer.head.seq;
        let done = self.write_locked(&mut writer, about_lost.iter().chain(entries));
        let written = writer.head.seq - before;
        if written > 0 {
            writer.lost = 0;
        }
        writer.last_error = None;
        if let Err(error) = &done {
            let lost = entries.len() as u64 - written.saturating_sub(u64::from(lost > 0));
            writer.lost += lost;
            writer.last_error = Some(error.to_string());
            self.failures.fetch_add(lost, Ordering::Relaxed);
        }
        done
    }

    fn write_locked<'a>(
        &self,
        writer: &mut LogWriter,
        entries: impl Iterator<Item = &'a AuditEntry>,
    ) -> Result<bool, AuditError> {
        let (mut rolled, mut head) = (false, writer.head.clone());
        let (mut lines, mut since) = (Vec::new(), None);
        for entry in entries {
            let hash = line::write(entry, &self.context, head.seq + 1, &head.hash, &mut lines)
                .map_err(|source| AuditError::io(&self.folder, source))?;
            head = AuditHead { seq: head.seq + 1, hash };
            since = Some(entry.ts);
            if lines.len() >= WRITE {
                rolled |= writer.write(&self.folder, &self.settings, &lines, &head, entry.ts)?;
                lines.clear();
            }
        }
        if let Some(now) = since.filter(|_| !lines.is_empty()) {
            rolled |= writer.write(&self.folder, &self.settings, &lines, &head, now)?;
        }
        Ok(rolled)
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        self.writer().seal();
        if let Some(published) = self.published.get() {
            published.publish_last(&self.head());
        }
    }
}
