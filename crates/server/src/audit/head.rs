use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::line::LARGEST_SEQ;
use super::private_files;

/// The name of the head file.
pub(super) const HEAD_FILE: &str = "head";
/// A longer head file wasn't written by deloop.
const LONGEST: u64 = 200;

/// The last record of a log: its number and hash. Whoever notes it elsewhere can show later that nothing up to it was
/// changed or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditHead {
    /// The record's number.
    pub seq: u64,
    /// The record's hash, in hexadecimal.
    pub hash: String,
}

impl AuditHead {
    /// Parses `SEQ:HASH`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, hash) = text.split_once(':')?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let is_plain = !seq.starts_with(['+', '0']);
        let seq = seq.parse().ok().filter(|seq| is_plain && is_hash && *seq < LARGEST_SEQ)?;
        Some(Self { seq, hash: hash.to_owned() })
    }
}

impl std::fmt::Display for AuditHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

/// What the head file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredHead {
    /// There is no head file.
    Absent,
    /// The file holds something else.
    Damaged,
    /// This head.
    At(AuditHead),
}

impl StoredHead {
    /// Reads the head file of a log.
    pub(super) fn read(folder: &Path) -> std::io::Result<Self> {
        let mut file = match private_files::open(&folder.join(HEAD_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Absent),
            Err(error) => return Err(error),
        };
        let mut text = Vec::new();
        Read::by_ref(&mut file).take(LONGEST).read_to_end(&mut text)?;
        let head = std::str::from_utf8(&text).ok().and_then(|text| text.strip_suffix('\n'));
        Ok(head.and_then(AuditHead::parse).map_or(Self::Damaged, Self::At))
    }
}

/// Overwrites an open head file. Numbers only grow, so the new text covers the old one, and a text this short is
/// written in one piece.
pub(super) fn write(file: &mut File, head: &AuditHead) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format!("{head}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_back() {
        let head = AuditHead { seq: 12, hash: "0123456789abcdef".repeat(4) };
        assert_eq!(AuditHead::parse(&head.to_string()), Some(head.clone()));
        for wrong in ["", "12", "12:", "x:y", &format!("012:{}", head.hash), &format!("12:{}0", head.hash)] {
            assert_eq!(AuditHead::parse(wrong), None, "{wrong}");
        }
    }
}
