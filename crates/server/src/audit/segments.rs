use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use deloop_types::Millis;

use super::audit_key::AuditKey;
use super::line::LineParts;
use super::private_files;

/// Maximum length of a line. A longer one wasn't written by deloop.
pub(super) const LONGEST_LINE: u64 = 16 << 20;

/// How much is read at a time from the end of a segment: several usual records.
const TAIL: u64 = 16 << 10;

/// One file of a log. Its name is the number of its first record.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) path: PathBuf,
    /// The number of the first record; `None` if the file's name isn't one of a segment.
    pub(super) first: Option<u64>,
}

impl Segment {
    /// Returns the segment of `folder` that starts with this record.
    pub(super) fn starting_at(folder: &Path, first: u64) -> Self {
        Self { path: folder.join(format!("{first:020}.jsonl")), first: Some(first) }
    }

    /// Returns the file's name, for people.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        deloop_detect::clean(&name.unwrap_or_default(), 60)
    }

    /// Returns its last record, without reading what comes before.
    pub(super) fn last_record(&self) -> std::io::Result<Option<LastRecord>> {
        last_record_in(private_files::open(&self.path)?)
    }

    /// Returns whether its first record follows from this one, unchanged. Reads one line.
    pub(super) fn follows(&self, last: &LastRecord) -> std::io::Result<bool> {
        let mut line = Vec::new();
        self.lines()?.next(&mut line)?;
        let is_whole = LineParts::of(&last.line).is_some_and(|parts| parts.actual_hash() == last.hash);
        let first = LineParts::of(&line).and_then(|parts| parts.parse());
        Ok(is_whole && first.is_some_and(|first| first.prev == last.hash))
    }

    /// Opens it to read its lines.
    pub(super) fn lines(&self) -> std::io::Result<SegmentLines> {
        Ok(SegmentLines { reader: BufReader::with_capacity(64 << 10, private_files::open(&self.path)?) })
    }
}

/// The last record of a segment.
#[derive(Debug)]
pub(super) struct LastRecord {
    pub(super) seq: u64,
    pub(super) hash: String,
    pub(super) ts: Option<Millis>,
    line: Vec<u8>,
}

impl LastRecord {
    /// Returns whether it was written with this key, or before there was one.
    pub(super) fn is_of(&self, key: &AuditKey) -> bool {
        LineParts::of(&self.line)
            .is_some_and(|parts| !parts.has_code() || parts.is_authentic(std::slice::from_ref(key)))
    }
}

/// Reads the last record from the end, and no further than it must.
fn last_record_in(mut segment: impl Read + Seek) -> std::io::Result<Option<LastRecord>> {
    let end = segment.seek(SeekFrom::End(0))?;
    let (mut start, mut tail, mut step) = (end, Vec::new(), TAIL);
    while start > 0 && tail.len() as u64 <= LONGEST_LINE {
        let from = start.saturating_sub(step);
        step *= 2;
        let mut piece = vec![0; usize::try_from(start - from).unwrap_or_default()];
        segment.seek(SeekFrom::Start(from))?;
        segment.read_exact(&mut piece)?;
        piece.append(&mut tail);
        (start, tail) = (from, piece);
        // The first line is whole only at the beginning of the segment.
        let whole =
            if start == 0 { 0 } else { tail.iter().position(|b| *b == b'\n').map_or(tail.len(), |n| n + 1) };
        let found = tail[whole..].split_inclusive(|b| *b == b'\n').rev().find_map(record);
        if found.is_some() {
            return Ok(found);
        }
        if whole < tail.len() {
            // Lines that can't be read needn't be read again.
            tail.truncate(whole);
        }
    }
    Ok(None)
}

fn record(line: &[u8]) -> Option<LastRecord> {
    let parts = LineParts::of(line)?;
    let chained = parts.parse()?;
    Some(LastRecord {
        seq: chained.seq,
        hash: parts.hash.to_owned(),
        ts: Millis::parse(&chained.ts),
        line: line.to_owned(),
    })
}

/// Returns the segments of a log, in order.
pub(super) fn list(folder: &Path) -> std::io::Result<Vec<Segment>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_number = stem.len() == 20 && stem.bytes().all(|b| b.is_ascii_digit());
        let first = stem.parse().ok().filter(|_| is_number);
        found.push(Segment { path, first });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The lines of a segment, as bytes.
pub(super) struct SegmentLines {
    reader: BufReader<File>,
}

impl SegmentLines {
    /// Reads the next line, with its line feed, into `line`. Returns whether there was one. A line that is too long is
    /// cut, so it has no line feed.
    pub(super) fn next(&mut self, line: &mut Vec<u8>) -> std::io::Result<bool> {
        line.clear();
        let read = Read::by_ref(&mut self.reader).take(LONGEST_LINE).read_until(b'\n', line)?;
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::AuditEntry;
    use super::super::line::{self, LineContext, NO_RECORD};
    use super::*;

    /// Counts the bytes that are read.
    struct CountingReader {
        inner: Cursor<Vec<u8>>,
        read: u64,
    }

    impl Read for &mut CountingReader {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.inner.read(buffer)?;
            self.read += read as u64;
            Ok(read)
        }
    }

    impl Seek for &mut CountingReader {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.inner.seek(to)
        }
    }

    fn lines(count: u64) -> Vec<u8> {
        let context = LineContext { server: "a".to_owned(), configuration: None, key: None };
        let (mut out, mut prev) = (Vec::new(), NO_RECORD.to_owned());
        for seq in 1..=count {
            let entry = AuditEntry::new(Millis(i64::try_from(seq).unwrap()), "me", "x");
            prev = line::write(&entry, &context, seq, &prev, &mut out).unwrap();
        }
        out
    }

    fn last(bytes: Vec<u8>) -> (Option<u64>, u64) {
        let mut reader = CountingReader { inner: Cursor::new(bytes), read: 0 };
        let found = last_record_in(&mut reader).unwrap();
        (found.map(|record| record.seq), reader.read)
    }

    #[test]
    fn the_last_record_is_found_without_reading_the_segment() {
        let bytes = lines(20_000);
        assert!(bytes.len() > 6 << 20);
        assert_eq!(last(bytes), (Some(20_000), TAIL));
    }

    #[test]
    fn what_cant_be_read_at_the_end_is_passed_over() {
        let torn = |rest: &[u8]| [lines(50), rest.to_vec()].concat();
        assert_eq!(last(torn(b"{\"torn\":1")).0, Some(50));
        assert_eq!(last(torn(&b"garbage\n".repeat(40_000))).0, Some(50));
        assert_eq!(last(torn(&b"z".repeat(300_000))).0, Some(50));
        assert_eq!(last(Vec::new()), (None, 0));
        assert_eq!(last(b"\n\n\n".to_vec()).0, None);
    }

    #[test]
    fn a_segment_without_line_ends_is_read_up_to_a_limit() {
        let (found, read) = last(vec![b'z'; 3 * usize::try_from(LONGEST_LINE).unwrap()]);
        assert!(found.is_none() && read <= 2 * LONGEST_LINE + TAIL, "{read}");
    }
}
