//! A log of the steps since sessions were last written to the database. A step is in the log before it is answered, so a
//! process that is killed loses nothing that it answered.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use deloop_types::Millis;
use xxhash_rust::xxh3::xxh3_64;

/// What the names of logs start with, before the generation.
const PREFIX: &str = "server.steps-";
/// Length and checksum of an entry.
const HEADER: usize = 4 + 8;
/// Bytes of an entry before the project's name.
const FIXED: usize = 8 + 1 + 1;

/// The steps of one generation: those between two writes to the database.
pub(super) struct StepLog {
    file: File,
    folder: PathBuf,
    generation: i64,
    length: u64,
    buffer: Vec<u8>,
    /// Whether there may be a part of an entry behind `length`.
    is_torn: bool,
}

/// A step in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoggedStep<'a> {
    /// When it arrived.
    pub(super) now: Millis,
    /// How the request asked to be judged.
    pub(super) terms: u8,
    pub(super) project: &'a str,
    /// The step as the client sent it.
    pub(super) json: &'a [u8],
}

impl StepLog {
    /// Opens the log of a generation to continue it; creates it if it doesn't exist. Returns the steps that it has, too. A
    /// last entry that wasn't completely written is removed, and so are the logs of other generations.
    pub(super) fn resume(folder: &Path, generation: i64) -> io::Result<(Self, Vec<u8>)> {
        let mut log = Self::open(folder, generation, false)?;
        let mut text = Vec::new();
        log.file.read_to_end(&mut text)?;
        text.truncate(entries(&text).map(LoggedStep::length).sum());
        log.length = text.len() as u64;
        log.cut()?;
        remove_others(folder, generation);
        Ok((log, text))
    }

    /// Starts the empty log of the next generation. Steps go there once the database has those of this one.
    pub(super) fn following(&self) -> io::Result<Self> {
        Self::open(&self.folder, self.generation + 1, true)
    }

    fn open(folder: &Path, generation: i64, truncate: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(truncate);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path(folder, generation))?;
        let folder = folder.to_owned();
        Ok(Self { file, folder, generation, length: 0, buffer: Vec::new(), is_torn: false })
    }

    pub(super) fn generation(&self) -> i64 {
        self.generation
    }

    pub(super) fn len(&self) -> u64 {
        self.length
    }

    /// Adds steps: all of them or, if this fails, none.
    pub(super) fn append<'a>(&mut self, steps: impl Iterator<Item = LoggedStep<'a>>) -> io::Result<()> {
        self.buffer.clear();
        steps.for_each(|step| write_entry(&mut self.buffer, step));
        if self.is_torn {
            self.cut()?;
        }
        if let Err(error) = self.file.write_all(&self.buffer) {
            // What follows a part of an entry would never be read.
            self.is_torn = self.cut().is_err();
            return Err(error);
        }
        self.length += self.buffer.len() as u64;
        // One large batch must not keep its memory for ever.
        self.buffer.shrink_to(1 << 20);
        Ok(())
    }

    /// Removes an entry that was only partly written, because a full disk may have room again later.
    fn cut(&mut self) -> io::Result<()> {
        use std::io::Seek;
        self.file.set_len(self.length)?;
        self.file.seek(io::SeekFrom::Start(self.length))?;
        self.is_torn = false;
        Ok(())
    }

    /// Continues in the log of the next generation and deletes this one.
    pub(super) fn continue_in(&mut self, next: Self) {
        let before = std::mem::replace(self, next);
        // A log that can't be deleted isn't read again: its generation is over.
        let _ = std::fs::remove_file(path(&before.folder, before.generation));
    }
}

impl LoggedStep<'_> {
    fn length(self) -> usize {
        HEADER + FIXED + self.project.len() + self.json.len()
    }
}

/// Deletes logs that a killed process left: the database has their steps, or it never had a step of theirs.
fn remove_others(folder: &Path, generation: i64) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let other = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<i64>().ok());
        if other.is_some_and(|other| other != generation) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn path(folder: &Path, generation: i64) -> PathBuf {
    folder.join(format!("{PREFIX}{generation}"))
}

fn write_entry(out: &mut Vec<u8>, step: LoggedStep<'_>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    out.extend_from_slice(&step.now.0.to_le_bytes());
    out.push(step.terms);
    // A project's name has at most 64 bytes.
    out.push(u8::try_from(step.project.len()).unwrap_or(0));
    out.extend_from_slice(step.project.as_bytes());
    out.extend_from_slice(step.json);
    let length = u32::try_from(out.len() - start - HEADER).unwrap_or(u32::MAX);
    let checksum = xxh3_64(&out[start + HEADER..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + HEADER].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns the steps of a log, up to the first entry that is damaged.
pub(super) fn entries(mut text: &[u8]) -> impl Iterator<Item = LoggedStep<'_>> {
    std::iter::from_fn(move || {
        let (header, rest) = text.split_at_checked(HEADER)?;
        let length = u32::from_le_bytes(header[..4].try_into().ok()?);
        let checksum = u64::from_le_bytes(header[4..].try_into().ok()?);
        let (entry, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        if xxh3_64(entry) != checksum {
            return None;
        }
        text = rest;
        let (fixed, rest) = entry.split_at_checked(FIXED)?;
        let (project, json) = rest.split_at_checked(usize::from(fixed[9]))?;
        let now = Millis(i64::from_le_bytes(fixed[..8].try_into().ok()?));
        Some(LoggedStep { now, terms: fixed[8], project: std::str::from_utf8(project).ok()?, json })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(json: &[u8]) -> LoggedStep<'_> {
        LoggedStep { now: Millis(7), terms: 1, project: "shop", json }
    }

    #[test]
    fn every_complete_entry_is_read_wherever_the_log_was_cut_off() {
        let (first, second) = (step(b"{\"a\":1}"), step(b"{\"b\":\n2}"));
        let mut one = Vec::new();
        write_entry(&mut one, first);
        let mut both = one.clone();
        write_entry(&mut both, second);
        for end in 0..=both.len() {
            let read: Vec<LoggedStep<'_>> = entries(&both[..end]).collect();
            let expected: &[LoggedStep<'_>] = match end {
                end if end == both.len() => &[first, second],
                end if end >= one.len() => &[first],
                _ => &[],
            };
            assert_eq!(read, expected, "cut off at {end}");
        }
        for at in 0..both.len() {
            let mut damaged = both.clone();
            damaged[at] ^= 1;
            assert!(entries(&damaged).count() <= usize::from(at >= one.len()), "byte {at}");
        }
    }

    #[test]
    fn a_log_has_the_steps_of_one_generation() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = resumed(folder.path(), 3, &[]);
        log.append([step(b"1"), step(b"2")].into_iter()).unwrap();
        log.append([step(b"3")].into_iter()).unwrap();
        let mut log = resumed(folder.path(), 3, &[b"1", b"2", b"3"]);
        log.append([step(b"4")].into_iter()).unwrap();
        let next = log.following().unwrap();
        // The database doesn't have the steps yet: they are still here.
        let mut log = resumed(folder.path(), 3, &[b"1", b"2", b"3", b"4"]);
        drop(next);
        log.continue_in(log.following().unwrap());
        assert_eq!((log.generation(), log.len()), (4, 0));
        resumed(folder.path(), 3, &[]);
        assert!(!path(folder.path(), 4).exists(), "a log of another generation is deleted");
    }

    fn resumed(folder: &Path, generation: i64, expected: &[&[u8]]) -> StepLog {
        let (log, text) = StepLog::resume(folder, generation).unwrap();
        assert_eq!(entries(&text).map(|step| step.json).collect::<Vec<_>>(), expected);
        log
    }

    /// Steps that follow a torn entry would be lost at the next start.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_part_of_an_entry_is_removed_before_the_next_one_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = resumed(folder.path(), 1, &[]);
        log.append([step(b"1")].into_iter()).unwrap();
        // This device is always full, and can't be cut either.
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let file = std::mem::replace(&mut log.file, full);
        log.append([step(b"2")].into_iter()).unwrap_err();
        log.file = file;
        log.file.write_all(b"part").unwrap();
        log.append([step(b"3")].into_iter()).unwrap();
        resumed(folder.path(), 1, &[b"1", b"3"]);
    }
}
