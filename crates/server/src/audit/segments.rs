use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::private_files;

/// Maximum length of a line. A longer one wasn't written by deloop.
pub(super) const LONGEST_LINE: u64 = 16 << 20;

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

    /// Opens it to read its lines.
    pub(super) fn lines(&self) -> std::io::Result<SegmentLines> {
        Ok(SegmentLines { reader: BufReader::with_capacity(64 << 10, private_files::open(&self.path)?) })
    }
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
