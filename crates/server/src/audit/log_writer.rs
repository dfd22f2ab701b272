use std::fs::File;
use std::io::Write;
use std::path::Path;

use deloop_types::Millis;

use super::head::{self, AuditHead, HEAD_FILE};
use super::log::{AuditError, AuditSettings};
use super::private_files;
use super::segments::Segment;

/// A segment holds the records of a day at most, so that retention by days finds something to delete.
const SEGMENT_AGE: u64 = 24 * 3_600_000;

/// Where the next record goes.
pub(super) struct LogWriter {
    pub(super) head: AuditHead,
    head_file: Option<File>,
    open: Option<OpenSegment>,
    /// Entries that couldn't be written since the last one that could.
    pub(super) lost: u64,
    pub(super) last_error: Option<String>,
}

struct OpenSegment {
    file: File,
    length: u64,
    /// Whether there may be a part of a line behind `length`.
    is_torn: bool,
    since: Millis,
}

impl LogWriter {
    /// Continues after this record.
    pub(super) fn new(head: AuditHead) -> Self {
        Self { head, head_file: None, open: None, lost: 0, last_error: None }
    }

    /// Writes whole lines, the last of which is `head`. Returns whether they started a segment.
    pub(super) fn write(
        &mut self,
        folder: &Path,
        settings: &AuditSettings,
        lines: &[u8],
        head: &AuditHead,
        now: Millis,
    ) -> Result<bool, AuditError> {
        let is_over = |open: &mut OpenSegment| {
            open.length >= settings.segment_size()
                || now.since(open.since) >= SEGMENT_AGE
                || private_files::is_removed(&open.file)
        };
        if self.open.as_mut().is_some_and(is_over) {
            self.seal();
        }
        let starts = self.open.is_none();
        let open = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(OpenSegment::start(folder, self.head.seq + 1, now)?),
        };
        open.write(lines).map_err(|source| AuditError::io(folder, source))?;
        self.head = head.clone();
        // The log has the record; a head that is behind by one is what a crash would leave, too.
        let _ = self.write_head(folder);
        Ok(starts)
    }

    fn write_head(&mut self, folder: &Path) -> std::io::Result<()> {
        let file = match self.head_file.take().filter(|file| !private_files::is_removed(file)) {
            Some(file) => self.head_file.insert(file),
            None => self.head_file.insert(private_files::open_or_create(&folder.join(HEAD_FILE))?),
        };
        head::write(file, &self.head)
    }

    /// Ends the current segment: the next record starts another.
    pub(super) fn seal(&mut self) {
        // What can't be written to the disk now is in the system's memory, as before.
        if let Some(open) = self.open.take() {
            let _ = open.file.sync_data();
        }
        if let Some(file) = &self.head_file {
            let _ = file.sync_data();
        }
    }

    #[cfg(test)]
    pub(super) fn write_to(&mut self, file: File) {
        self.open = Some(OpenSegment { file, length: 0, is_torn: false, since: Millis(i64::MAX) });
    }
}

impl OpenSegment {
    fn start(folder: &Path, first: u64, now: Millis) -> Result<Self, AuditError> {
        private_files::make_folder(folder).map_err(|source| AuditError::io(folder, source))?;
        let path = Segment::starting_at(folder, first).path;
        let failed = |source| AuditError::io(&path, source);
        let file = private_files::append(&path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let open = Self { file, length, is_torn: false, since: now };
        let _ = private_files::sync_folder(folder);
        Ok(open)
    }

    /// Appends in one piece, or not at all.
    fn write(&mut self, lines: &[u8]) -> std::io::Result<()> {
        if self.is_torn {
            self.file.set_len(self.length)?;
            self.is_torn = false;
        }
        let written = self.file.write_all(lines);
        match written {
            Ok(()) => self.length += lines.len() as u64,
            // A full disk can take part of the lines.
            Err(_) => self.is_torn = self.file.set_len(self.length).is_err(),
        }
        written
    }
}
