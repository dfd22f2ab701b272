use std::io::ErrorKind;
use std::path::Path;

use super::entry::LogNote;
use super::head::{AuditHead, StoredHead};
use super::line::{LineParts, NO_RECORD, random_hex};
use super::log::AuditError;
use super::private_files;
use super::segments::{self, Segment};

/// The file with the server's random id.
const SERVER_FILE: &str = "server";
/// A head that is further ahead than this wasn't written by deloop.
const FURTHEST: u64 = 1 << 40;

/// Where a log goes on.
pub(super) struct Recovered {
    pub(super) server: String,
    /// The hash of the last record.
    pub(super) last: String,
    /// The number of the next record.
    pub(super) next: u64,
    /// Whether nothing was recorded yet.
    pub(super) is_new: bool,
    /// Whether the last record was written with a key.
    pub(super) has_code: bool,
    /// What was wrong, for the log.
    pub(super) note: Option<LogNote>,
}

/// The end of the records, as found in the files.
struct FoundEnd {
    head: AuditHead,
    cut: u64,
    unreadable: u64,
    server: Option<String>,
    has_code: bool,
}

/// Finds the end of a log and removes an incomplete last line.
pub(super) fn recover(folder: &Path) -> Result<Recovered, AuditError> {
    let failed = |source| AuditError::io(folder, source);
    let found = segments::list(folder).map_err(failed)?;
    let mut end = FoundEnd {
        head: AuditHead { seq: 0, hash: NO_RECORD.to_owned() },
        cut: 0,
        unreadable: 0,
        server: None,
        has_code: false,
    };
    // Newest first, until one has a record.
    for segment in found.iter().rev() {
        let before = segment.first.map_or(0, |first| first.saturating_sub(1));
        let at_end = end_of(segment).map_err(|source| AuditError::io(&segment.path, source))?;
        let is_found = at_end.head.seq > 0;
        end.cut += at_end.cut;
        end.unreadable += at_end.unreadable;
        if is_found {
            (end.head, end.server, end.has_code) = (at_end.head, at_end.server, at_end.has_code);
            break;
        }
        // An empty file is one that was started before a crash.
        end.head.seq = end.head.seq.max(if at_end.unreadable > 0 { before } else { 0 });
    }
    let stored = StoredHead::read(folder).map_err(failed)?;
    let server = server_id(folder, end.server.as_deref())?;
    Ok(assess(&end, &stored, server))
}

fn assess(end: &FoundEnd, stored: &StoredHead, server: String) -> Recovered {
    let mut note = LogNote::default();
    let mut last = end.head.seq + end.unreadable;
    if end.cut > 0 {
        note.cut_bytes = Some(end.cut);
    }
    if end.unreadable > 0 {
        note.damage = Some("the last lines can't be read".to_owned());
    }
    match stored {
        StoredHead::At(head) if head.seq > last && head.seq - last < FURTHEST => {
            note.missing = Some((last + 1, head.seq));
            last = head.seq;
        }
        StoredHead::At(head)
            if head.seq > last || (head.seq == end.head.seq && head.hash != end.head.hash) =>
        {
            note.damage = Some(format!("the head file says {head}"));
        }
        StoredHead::Damaged => note.damage = Some("the head file can't be read".to_owned()),
        StoredHead::Absent if last > 0 => note.damage = Some("the head file was missing".to_owned()),
        _ => {}
    }
    let note = Some(note).filter(|note| *note != LogNote::default());
    Recovered {
        server,
        last: end.head.hash.clone(),
        next: last + 1,
        is_new: last == 0,
        has_code: end.has_code,
        note,
    }
}

/// Reads a segment to its last record, and cuts off an incomplete last line.
fn end_of(segment: &Segment) -> std::io::Result<FoundEnd> {
    let none = AuditHead { seq: 0, hash: NO_RECORD.to_owned() };
    let mut end = FoundEnd { head: none, cut: 0, unreadable: 0, server: None, has_code: false };
    let (mut lines, mut line) = (segment.lines()?, Vec::new());
    let mut whole = 0;
    while lines.next(&mut line)? {
        if line.last() != Some(&b'\n') {
            end.cut += line.len() as u64;
            continue;
        }
        if end.cut > 0 {
            // A line that is too long lies before this one: nothing is cut.
            (end.unreadable, end.cut) = (end.unreadable + 1, 0);
        }
        whole += line.len() as u64;
        match LineParts::of(&line).and_then(|parts| Some((parts, parts.parse()?))) {
            Some((parts, chained)) => {
                end.head = AuditHead { seq: chained.seq, hash: parts.hash.to_owned() };
                end.server = Some(chained.server);
                end.has_code = parts.has_code();
                end.unreadable = 0;
            }
            None => end.unreadable += 1,
        }
    }
    if end.cut > 0 {
        let file = private_files::append(&segment.path)?;
        let length = file.metadata()?.len();
        file.set_len(whole.max(length.saturating_sub(end.cut)))?;
    }
    Ok(end)
}

/// Returns the server's id, if its file has one.
#[must_use]
pub fn audit_server(folder: &Path) -> Option<String> {
    let bytes = private_files::read(&folder.join(SERVER_FILE), 64).ok()?;
    let id = String::from_utf8(bytes).ok()?.trim().to_owned();
    is_server_id(&id).then_some(id)
}

fn is_server_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Returns the server's id: from its file, else from the last record, else a new one.
fn server_id(folder: &Path, recorded: Option<&str>) -> Result<String, AuditError> {
    let path = folder.join(SERVER_FILE);
    let failed = |source| AuditError::io(&path, source);
    let stored = match private_files::open(&path) {
        Ok(mut file) => {
            let mut text = String::new();
            let read = std::io::Read::read_to_string(&mut std::io::Read::by_ref(&mut file), &mut text);
            read.ok().map(|_| text.trim().to_owned()).filter(|id| is_server_id(id))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    let recorded = recorded.map(str::to_owned).filter(|id| is_server_id(id));
    // The records decide: all of them must name the same server.
    let id = match recorded.or_else(|| stored.clone()) {
        Some(id) => id,
        None => random_hex().map_err(failed)?,
    };
    if stored.as_ref() != Some(&id) {
        private_files::replace(&path, format!("{id}\n").as_bytes()).map_err(failed)?;
    }
    Ok(id)
}
