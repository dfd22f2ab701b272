//! Reads the bytes of a session file as items, whatever their compression, encoding and format.

mod encoding;
mod lines;
mod notes;
mod unpack;
mod unrecognized;

use std::cell::Cell;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use self::encoding::{Encoding, decoded, repaired};
pub use self::lines::{InputLine, LONGEST, Lines};
pub use self::notes::FileNotes;
use self::unpack::{fill, unpack};
use crate::{Format, Item, OwnFiles, Reader, Report, Shape, Sink, Source};

/// Number of bytes used to detect the format.
const HEAD: usize = 64 * 1024;
/// A longer document is skipped: unlike lines, it must fit in memory as a whole.
const LONGEST_DOCUMENT: u64 = 256 << 20;
/// Lines and documents longer than this are processed one at a time across all threads, to bound memory.
const LARGE: usize = 4 << 20;

static LARGE_ONES: Mutex<()> = Mutex::new(());

/// The result of reading a file.
pub struct FileRead {
    /// The format of the file.
    pub format: &'static dyn Format,
    /// The report of the format's reader.
    pub report: Report,
    /// Notes for the user.
    pub notes: FileNotes,
    /// Number of uncompressed bytes read.
    pub bytes: u64,
}

/// Why nothing of an input was read.
pub enum ReadError {
    /// It has no format that deloop knows. The text describes what it looks like: "a JSON object with the key `a`".
    UnknownFormat(String),
    /// It couldn't be opened, or its beginning couldn't be read.
    Io(io::Error),
}

impl std::convert::From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads the bytes of a file and hands out each item with the number of its line, from 1; 0 where there are no lines.
///
/// The bytes may be compressed (gzip or Zstandard) and `size` is how many there are, 0 if unknown. `choose` returns the
/// format of a file that begins with the given bytes; [`sniff`](crate::sniff) does that. What the file repeats of the
/// subagents in `own_files` is left out.
///
/// # Errors
/// When the file has no known format, or its beginning can't be read. What can't be read later is a note.
pub fn read_file(
    packed: Box<dyn Read + '_>,
    size: u64,
    path: Option<&Path>,
    choose: &dyn Fn(&[u8]) -> Option<&'static dyn Format>,
    own_files: &OwnFiles,
    emit: &mut dyn FnMut(Item, u64),
) -> Result<FileRead, ReadError> {
    let unpacked = unpack(packed, size)?;
    let mut bytes = unpacked.bytes;
    let mut start = [0; 3];
    let length = fill(&mut bytes, &mut start)?;
    let encoding = Encoding::of(&start[..length]);
    let whole = io::Cursor::new(start[..length].to_vec()).chain(bytes);
    let mut text = decoded(Box::new(whole), encoding)?;
    let mut head = Vec::with_capacity(HEAD);
    // A truncated file is read as far as it goes.
    let broken = match text.by_ref().take(HEAD as u64).read_to_end(&mut head) {
        Err(error) if head.is_empty() => return Err(error.into()),
        Err(error) => Some(error),
        Ok(_) => None,
    };
    let format = Some(&head)
        .filter(|head| !head.trim_ascii().is_empty())
        .and_then(|head| choose(head))
        .ok_or_else(|| ReadError::UnknownFormat(unrecognized::describe(&head)))?;
    let path = path.map(unpacked_name);
    let mut reader = format.reader(&Source { path: path.as_deref() });
    reader.leave_to_own_files(own_files);
    let mut pump = Pump { reader, notes: FileNotes::default(), bytes: 0, lossy: 0, emit };
    let whole = Box::new(io::Cursor::new(head).chain(Broken(broken)).chain(text));
    let report = match format.shape() {
        Shape::Lines => pump.lines(whole),
        Shape::Document => pump.document(whole),
    };
    let Pump { mut notes, bytes, lossy, .. } = pump;
    if lossy > 0 {
        notes.push(format!("replaced invalid characters with � in {}", lines(lossy)));
    }
    if let Some(limit) = unpacked.cut.get() {
        notes.push(format!(
            "stopped reading at {} MB: too large for a session that compresses to {} KB",
            limit >> 20,
            size.div_ceil(1024)
        ));
    }
    if report.unreadable > 0 {
        let why = report.first_error.as_deref().unwrap_or("no reason given");
        notes.push(format!(
            "skipped {} unreadable {}; the first: {why}",
            report.unreadable,
            noun(report.unreadable)
        ));
    }
    Ok(FileRead { format, report, notes, bytes })
}

/// Returns the subagent that a file holds the messages of, if its name says so and other files repeat them.
pub fn subagent_of(path: &Path) -> Option<String> {
    let path = unpacked_name(path);
    crate::FORMATS.iter().find_map(|format| format.subagent(&path)).map(str::to_owned)
}

/// Returns the path without `.gz` or `.zst`: formats read names and projects from paths.
fn unpacked_name(path: &Path) -> PathBuf {
    let packed = path.extension().is_some_and(|e| e == "gz" || e == "zst");
    if packed { path.with_extension("") } else { path.to_owned() }
}

fn noun(count: u64) -> &'static str {
    if count == 1 { "line" } else { "lines" }
}

fn lines(count: u64) -> String {
    format!("{count} {}", noun(count))
}

struct Pump<'a> {
    reader: Box<dyn Reader>,
    notes: FileNotes,
    bytes: u64,
    /// Number of repaired lines.
    lossy: u64,
    emit: &'a mut dyn FnMut(Item, u64),
}

impl Pump<'_> {
    fn lines(&mut self, text: Box<dyn Read + '_>) -> Report {
        let number = Cell::new(0);
        let emit = &mut *self.emit;
        let mut emit = |item| emit(item, number.get());
        let mut sink = Sink::new(&mut emit);
        let mut lines = Lines::new(text);
        let (mut too_long, mut first_too_long) = (0_u64, 0);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    self.notes.push(format!("ends early, after line {}: {error}", number.get()));
                    break;
                }
            };
            number.set(number.get() + 1);
            let InputLine::Text(line) = line else {
                too_long += 1;
                if too_long == 1 {
                    first_too_long = number.get();
                }
                continue;
            };
            self.bytes += line.len() as u64 + 1;
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let before = sink.report.unreadable;
            let _one_at_a_time =
                (line.len() > LARGE).then(|| LARGE_ONES.lock().unwrap_or_else(PoisonError::into_inner));
            self.reader.read(line, &mut sink);
            if sink.report.unreadable > before {
                let first = before == 0;
                if let Some(text) = repaired(line) {
                    self.lossy += 1;
                    clear_error(&mut sink, before, first);
                    self.reader.read(text.as_bytes(), &mut sink);
                }
                if sink.report.unreadable > before && !lines.ended() {
                    clear_error(&mut sink, before, first);
                    self.notes.push("skipped its incomplete last line".to_owned());
                }
            }
        }
        self.reader.finish(&mut sink);
        let report = sink.report;
        if too_long > 0 {
            let which =
                if too_long == 1 { format!("line {first_too_long}") } else { format!("{too_long} lines") };
            self.notes.push(format!("skipped {which}: longer than {} MB", LONGEST >> 20));
        }
        report
    }

    fn document(&mut self, text: Box<dyn Read + '_>) -> Report {
        let mut document = Vec::new();
        let mut guard = None;
        let mut text = text.take(LONGEST_DOCUMENT + 1);
        let mut part = [0; HEAD];
        loop {
            match fill(&mut text, &mut part) {
                Ok(0) => break,
                Ok(length) => document.extend_from_slice(&part[..length]),
                Err(error) => {
                    self.notes.push(format!("ends early, after {} bytes: {error}", document.len()));
                    break;
                }
            }
            if document.len() > LARGE && guard.is_none() {
                guard = Some(LARGE_ONES.lock().unwrap_or_else(PoisonError::into_inner));
            }
        }
        let emit = &mut *self.emit;
        let mut emit = |item| emit(item, 0);
        let mut sink = Sink::new(&mut emit);
        self.bytes = document.len() as u64;
        if self.bytes > LONGEST_DOCUMENT {
            self.notes.push(format!("skipped: larger than {} MB", LONGEST_DOCUMENT >> 20));
            return sink.report;
        }
        self.reader.read(&document, &mut sink);
        if sink.report.unreadable > 0
            && let Some(text) = repaired(&document)
        {
            clear_error(&mut sink, 0, true);
            self.lossy += 1;
            self.reader.read(text.as_bytes(), &mut sink);
        }
        self.reader.finish(&mut sink);
        sink.report
    }
}

/// Undoes the count of an unreadable line.
fn clear_error(sink: &mut Sink<'_>, unreadable: u64, first: bool) {
    sink.report.unreadable = unreadable;
    if first {
        sink.report.first_error = None;
    }
}

/// Fails once, if it has an error.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}
