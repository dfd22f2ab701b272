use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use deloop_formats::{FORMATS, Format, OwnFiles, ReadError, find, read_file, sniff};
use deloop_types::Step;

use crate::BindError;

/// How many steps are handed over at once.
const BATCH: usize = 64;
/// How many batches may wait, so that a long file doesn't fill the memory.
const WAITING: usize = 4;
/// The first bytes of a database.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Why a session file can't be read.
#[derive(Debug)]
pub enum StepFileError {
    /// It can't be opened or read.
    Io(io::Error),
    /// It has no format that deloop knows, or there is no such format.
    Format(BindError),
}

impl std::fmt::Display for StepFileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StepFileError {}

/// Iterates over the Steps of a session file of any format, compressed or not. A thread reads ahead, at most a few
/// hundred steps.
///
/// ```
/// use deloop_bind::StepFile;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("session.jsonl");
/// std::fs::write(&path, "{\"type\":\"call\",\"tool\":\"ls\"}\nnot JSON\n")?;
/// let mut file = StepFile::open(&path, None)?;
/// assert_eq!(file.by_ref().map(|step| step.unwrap()).count(), 1);
/// assert!(file.notes()[0].starts_with("skipped 1 unreadable line"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StepFile {
    parts: Receiver<FilePart>,
    batch: std::vec::IntoIter<Step>,
    notes: Vec<String>,
    cancelled: Arc<AtomicBool>,
}

/// What the thread hands over.
enum FilePart {
    Steps(Vec<Step>),
    /// The file is over; what a user should know about it.
    End(Vec<String>),
    Failed(StepFileError),
}

impl StepFile {
    /// Opens a file. Without a `format`, its first bytes tell it.
    ///
    /// # Errors
    /// When the file can't be opened or isn't a regular file, or when there is no format of this name.
    pub fn open(path: &Path, format: Option<&str>) -> Result<Self, StepFileError> {
        let format = format.map(named).transpose().map_err(StepFileError::Format)?;
        // Opening a pipe would wait for someone to write to it.
        if !std::fs::metadata(path).map_err(StepFileError::Io)?.is_file() {
            let why = "not a regular file; name a session file";
            return Err(StepFileError::Io(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let file = File::open(path).map_err(StepFileError::Io)?;
        let (sender, parts) = sync_channel(WAITING);
        let cancelled = Arc::new(AtomicBool::new(false));
        let source = FileSource { file, path: path.to_owned(), format, cancelled: Arc::clone(&cancelled) };
        std::thread::Builder::new()
            .name("deloop-steps".to_owned())
            .spawn(move || source.read(&sender))
            .map_err(StepFileError::Io)?;
        Ok(Self { parts, batch: Vec::new().into_iter(), notes: Vec::new(), cancelled })
    }

    /// Returns what couldn't be read, once the file is over.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Iterator for StepFile {
    type Item = Result<Step, StepFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(step) = self.batch.next() {
                return Some(Ok(step));
            }
            match self.parts.recv().ok()? {
                FilePart::Steps(steps) => self.batch = steps.into_iter(),
                FilePart::End(notes) => self.notes = notes,
                FilePart::Failed(error) => return Some(Err(error)),
            }
        }
    }
}

impl Drop for StepFile {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

fn named(name: &str) -> Result<&'static dyn Format, BindError> {
    find(name).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name()).collect();
        BindError(format!("unknown format `{name}`; known formats: {}", names.join(", ")))
    })
}

struct FileSource {
    file: File,
    path: PathBuf,
    format: Option<&'static dyn Format>,
    cancelled: Arc<AtomicBool>,
}

impl FileSource {
    fn read(self, parts: &SyncSender<FilePart>) {
        let last = match self.steps(parts) {
            Ok(notes) => FilePart::End(notes),
            Err(error) => FilePart::Failed(error),
        };
        // Nobody waits for the rest if the iterator is gone.
        let _ = parts.send(last);
    }

    fn steps(self, parts: &SyncSender<FilePart>) -> Result<Vec<String>, StepFileError> {
        let size = self.file.metadata().map_err(StepFileError::Io)?.len();
        let mut batch = Vec::with_capacity(BATCH);
        let hand_over = |batch: &mut Vec<Step>| {
            let _ = parts.send(FilePart::Steps(std::mem::replace(batch, Vec::with_capacity(BATCH))));
        };
        let is_database = std::cell::Cell::new(false);
        let choose = |head: &[u8]| {
            is_database.set(head.starts_with(DATABASE));
            self.format.or_else(|| sniff(head))
        };
        let bytes = UntilCancelled { inner: self.file.take(size), cancelled: self.cancelled };
        let read = read_file(
            Box::new(bytes),
            size,
            Some(&self.path),
            &choose,
            &OwnFiles::default(),
            &mut |item, _| {
                batch.push(item.step);
                if batch.len() == BATCH {
                    hand_over(&mut batch);
                }
            },
        );
        hand_over(&mut batch);
        match read {
            Ok(read) => Ok(read.notes.into_iter().collect()),
            Err(ReadError::Io(error)) => Err(StepFileError::Io(error)),
            Err(ReadError::UnknownFormat(looks_like)) => {
                Err(StepFileError::Format(BindError(if is_database.get() {
                    format!(
                        "{}: a database; the command `deloop steps` reads those of opencode",
                        self.path.display()
                    )
                } else {
                    format!(
                        "{}: unknown session format: {looks_like}; `deloop formats` lists the known ones",
                        self.path.display()
                    )
                })))
            }
        }
    }
}

/// Ends the input when the iterator is gone.
struct UntilCancelled<R> {
    inner: R,
    cancelled: Arc<AtomicBool>,
}

impl<R: Read> Read for UntilCancelled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancelled.load(Ordering::Relaxed) { Ok(0) } else { self.inner.read(buffer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_session_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "hello").unwrap();
        let error = |path: &Path, format| {
            let first = StepFile::open(path, format).and_then(|mut file| file.next().unwrap());
            first.unwrap_err().to_string()
        };
        assert!(error(&path, None).contains("unknown session format"));
        assert!(error(&path, Some("codecs")).contains("known formats: claude-code"));
        assert!(error(folder.path(), None).contains("not a regular file"));
        assert!(StepFile::open(&folder.path().join("none"), None).is_err());
    }

    #[test]
    fn a_long_file_may_be_left_halfway() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "{\"type\":\"turn\",\"text\":\"a\"}\n".repeat(10_000)).unwrap();
        assert_eq!(StepFile::open(&path, None).unwrap().count(), 10_000);
        let mut file = StepFile::open(&path, Some("native")).unwrap();
        assert!(file.next().unwrap().is_ok());
    }
}
