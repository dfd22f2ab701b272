//! A log of the steps since sessions were last written to the database. A step is in the log before it is answered, so a
//! process that is killed loses nothing that it answered.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use deloop_types::Millis;
use xxhash_rust::xxh3::xxh3_64;

/// What the names of logs start with, before the generation.
const PREFIX: &str = "server.steps-";
/// Length and checksum of an entry.
const HEADER: usize = 4 + 8;
/// Bytes of an entry before the project's name.
const FIXED: usize = 8 + 1 + 1;
/// The version of an entry, in the upper bits of the byte that has the terms in the lower ones.
pub(super) const VERSION: u8 = 0;
/// Number of bits of the terms.
const TERM_BITS: u8 = 6;
/// What is appended to the name of a log, or of a part of one, that can't be read.
const UNREAD: &str = ".unread";
/// Maximum number of such files for a log. The last one is replaced.
const MOST_UNREAD: u32 = 99;

/// The steps since the last write to the database, in files that are numbered: the generations.
pub(super) struct StepLog {
    file: File,
    folder: PathBuf,
    /// The oldest generation that the database doesn't have.
    first: i64,
    /// The one that steps are added to.
    generation: i64,
    /// The length of that one.
    length: u64,
    buffer: Vec<u8>,
    /// Whether there may be a part of an entry behind `length`.
    is_torn: bool,
}

/// A log that is continued.
pub(super) struct ResumedLog {
    pub(super) log: StepLog,
    /// The steps that the database doesn't have.
    pub(super) steps: Vec<u8>,
    /// What couldn't be read, and where it is now.
    pub(super) lost: Vec<String>,
}

/// A place in the log: the database has the steps before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogMark {
    generation: i64,
    /// In bytes, in the file of that generation.
    offset: u32,
}

impl LogMark {
    /// Returns it as the database has it.
    pub(super) fn to_stored(self) -> i64 {
        self.generation << 32 | i64::from(self.offset)
    }

    /// Reads what [`Self::to_stored`] returned.
    pub(super) fn from_stored(stored: i64) -> Self {
        Self { generation: stored >> 32, offset: u32::try_from(stored & i64::from(u32::MAX)).unwrap_or(0) }
    }
}

/// A step in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoggedStep<'a> {
    /// When it arrived.
    pub(super) now: Millis,
    /// How the request asked to be judged, and what its key allows.
    pub(super) terms: u8,
    /// The version of the entry.
    pub(super) version: u8,
    /// The project, and the owner if the sender has a key.
    pub(super) project: &'a str,
    /// The step as the client sent it.
    pub(super) json: &'a [u8],
}

impl StepLog {
    /// Opens the logs from a mark on, to continue the last; creates it if there is none. Returns the steps behind the mark,
    /// too. An entry that wasn't completely written is removed, and so are logs before the mark, whose steps the database
    /// has. Whatever else can't be read is kept under another name.
    ///
    /// # Errors
    /// When a file can't be read or written, or a later release wrote it.
    pub(super) fn resume(folder: &Path, mark: LogMark) -> io::Result<ResumedLog> {
        let (first, mut lost) = (mark.generation, Vec::new());
        let mut log = Self::open(folder, first, false)?;
        let mut all = log.read(mark.offset, &mut lost)?;
        while path(folder, log.generation + 1).exists() {
            log = Self { first, ..Self::open(folder, log.generation + 1, false)? };
            all.extend(log.read(0, &mut lost)?);
        }
        remove_others(folder, first..=log.generation, &mut lost);
        Ok(ResumedLog { log, steps: all, lost })
    }

    /// Reads the steps of this generation from an offset on.
    fn read(&mut self, offset: u32, lost: &mut Vec<String>) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.file.read_to_end(&mut text)?;
        let mut steps = text.split_off(text.len().min(usize::try_from(offset).unwrap_or(usize::MAX)));
        let file = path(&self.folder, self.generation);
        if let Some(version) = entries(&steps).map(|step| step.version).find(|version| *version > VERSION) {
            return Err(io::Error::other(format!(
                "a later release wrote {} (format {version}, this release reads {VERSION}): update deloop",
                file.display()
            )));
        }
        let whole = entries(&steps).map(LoggedStep::length).sum();
        let rest = steps.split_off(whole);
        if !is_torn(&rest) {
            let kept = unread(&file);
            std::fs::write(&kept, &rest)?;
            lost.push(format!(
                "{} bytes of {} are damaged, so the steps in them are missing; they are in {}",
                rest.len(),
                file.display(),
                kept.display()
            ));
        }
        // A power failure may have cost bytes before the offset. Steps before it wouldn't be read again.
        self.length = u64::from(offset) + steps.len() as u64;
        self.cut()?;
        Ok(steps)
    }

    /// Returns a mark behind all steps so far. Steps go on in a file of their own, so that those before the mark can be
    /// deleted; but as long as they aren't, no further file is started.
    pub(super) fn mark(&mut self) -> io::Result<LogMark> {
        let offset =
            u32::try_from(self.length).ok().filter(|offset| *offset == 0 || self.first < self.generation);
        if let Some(offset) = offset {
            return Ok(LogMark { generation: self.generation, offset });
        }
        let next = Self::open(&self.folder, self.generation + 1, true)?;
        *self = Self { first: self.first, ..next };
        Ok(LogMark { generation: self.generation, offset: 0 })
    }

    /// Deletes the generations before a mark, once the database has their steps.
    pub(super) fn delete_before(&mut self, mark: LogMark) {
        for old in self.first..mark.generation {
            // A log that can't be deleted isn't read again: the database names a later one.
            let _ = std::fs::remove_file(path(&self.folder, old));
        }
        self.first = mark.generation;
    }

    fn open(folder: &Path, generation: i64, truncate: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(truncate);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path(folder, generation))?;
        let folder = folder.to_owned();
        Ok(Self {
            file,
            folder,
            generation,
            first: generation,
            length: 0,
            buffer: Vec::new(),
            is_torn: false,
        })
    }

    /// Adds steps: all of them or, if this fails, none. Returns how many bytes they take.
    pub(super) fn append<'a>(&mut self, steps: impl Iterator<Item = LoggedStep<'a>>) -> io::Result<u64> {
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
        let added = self.buffer.len() as u64;
        self.length += added;
        // One large batch must not keep its memory for ever.
        self.buffer.shrink_to(1 << 20);
        Ok(added)
    }

    /// Removes an entry that was only partly written, because a full disk may have room again later.
    fn cut(&mut self) -> io::Result<()> {
        use std::io::Seek;
        self.file.set_len(self.length)?;
        self.file.seek(io::SeekFrom::Start(self.length))?;
        self.is_torn = false;
        Ok(())
    }
}

impl LoggedStep<'_> {
    fn length(self) -> usize {
        HEADER + FIXED + self.project.len() + self.json.len()
    }
}

/// Returns whether this is the beginning of an entry, or nothing.
fn is_torn(rest: &[u8]) -> bool {
    let length = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
    length.is_none_or(|length| rest.len() < HEADER + length)
}

/// Returns a free name for a log that can't be read.
fn unread(log: &Path) -> PathBuf {
    let name = |n: u32| {
        let mut name = log.as_os_str().to_owned();
        name.push(format!("{UNREAD}-{n}"));
        PathBuf::from(name)
    };
    (1..MOST_UNREAD).map(name).find(|name| !name.exists()).unwrap_or_else(|| name(MOST_UNREAD))
}

/// Deletes logs that a killed process left, if the database has their steps, and renames those of another database.
fn remove_others(folder: &Path, generations: RangeInclusive<i64>, lost: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let other = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<i64>().ok());
        let Some(other) = other.filter(|other| !generations.contains(other)) else { continue };
        if other < *generations.start() || entry.metadata().is_ok_and(|about| about.len() == 0) {
            let _ = std::fs::remove_file(entry.path());
            continue;
        }
        let kept = unread(&entry.path());
        if std::fs::rename(entry.path(), &kept).is_ok() {
            lost.push(format!(
                "{} has steps that aren't in this database; it is {} now",
                entry.path().display(),
                kept.display()
            ));
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
    out.push(step.version << TERM_BITS | step.terms);
    // The names of a project and an owner have at most 64 bytes each.
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
        let (version, terms) = (fixed[8] >> TERM_BITS, fixed[8] & ((1 << TERM_BITS) - 1));
        Some(LoggedStep { now, terms, version, project: std::str::from_utf8(project).ok()?, json })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(json: &[u8]) -> LoggedStep<'_> {
        LoggedStep { now: Millis(7), terms: 1, version: VERSION, project: "shop", json }
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
    fn a_log_has_the_steps_that_the_database_does_not_have() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut log = resumed(folder, at(3, 0), &[]);
        append(&mut log, &["1", "2"]);
        append(&mut log, &["3"]);
        let mut log = resumed(folder, at(3, 0), &["1", "2", "3"]);
        append(&mut log, &["4"]);
        assert_eq!(log.mark().unwrap(), at(4, 0));
        assert_eq!(log.mark().unwrap(), at(4, 0), "there is no step in between");
        append(&mut log, &["5"]);
        // The database doesn't have the first ones yet: they are still here.
        let mut log = resumed(folder, at(3, 0), &["1", "2", "3", "4", "5"]);
        append(&mut log, &["6"]);
        log.delete_before(at(4, 0));
        assert!(!path(folder, 3).exists());
        resumed(folder, at(4, 0), &["5", "6"]);
        resumed(folder, at(2, 0), &[]);
        assert!(!path(folder, 4).exists(), "a log of another database is deleted");
    }

    /// A database that can't be written for days must not fill the folder with files.
    #[test]
    fn writes_that_fail_start_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut log = resumed(folder, at(0, 0), &[]);
        append(&mut log, &["1"]);
        let failed = log.mark().unwrap();
        append(&mut log, &["2"]);
        let mark = log.mark().unwrap();
        append(&mut log, &["3"]);
        assert!(failed == at(1, 0) && mark.generation == 1 && mark.offset > 0, "{mark:?}");
        resumed(folder, at(0, 0), &["1", "2", "3"]);
        let mut log = resumed(folder, failed, &["2", "3"]);
        log.delete_before(mark);
        append(&mut log, &["4"]);
        let mut log = resumed(folder, LogMark::from_stored(mark.to_stored()), &["3", "4"]);
        assert_eq!(log.mark().unwrap(), at(2, 0), "a write succeeded, so these can be deleted again");
    }

    /// The database may be on the disk when a power failure comes, and the log not.
    #[test]
    fn steps_after_a_lost_log_are_behind_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = resumed(folder.path(), at(1, 500), &[]);
        append(&mut log, &["1"]);
        resumed(folder.path(), at(1, 500), &["1"]);
    }

    fn at(generation: i64, offset: u32) -> LogMark {
        LogMark { generation, offset }
    }

    fn append(log: &mut StepLog, steps: &[&str]) {
        log.append(steps.iter().map(|json| step(json.as_bytes()))).unwrap();
    }

    fn resumed(folder: &Path, mark: LogMark, expected: &[&str]) -> StepLog {
        let ResumedLog { log, steps, .. } = StepLog::resume(folder, mark).unwrap();
        let read = entries(&steps).map(|step| std::str::from_utf8(step.json).unwrap());
        assert_eq!(read.collect::<Vec<_>>(), expected);
        log
    }

    /// Steps that follow a torn entry would be lost at the next start.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_part_of_an_entry_is_removed_before_the_next_one_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = resumed(folder.path(), at(1, 0), &[]);
        append(&mut log, &["1"]);
        // This device is always full, and can't be cut either.
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let file = std::mem::replace(&mut log.file, full);
        log.append([step(b"2")].into_iter()).unwrap_err();
        log.file = file;
        log.file.write_all(b"part").unwrap();
        append(&mut log, &["3"]);
        resumed(folder.path(), at(1, 0), &["1", "3"]);
    }
}
