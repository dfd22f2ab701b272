//! The file that events are appended to.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use deloop_types::Event;

use crate::exit::Failure;
use crate::safe_file;

/// Appends events, one per line.
pub(crate) struct EventsFile(BufWriter<File>);

impl EventsFile {
    /// Opens a file for appending; creates it if it doesn't exist.
    pub(crate) fn append(path: &Path) -> Result<Self, Failure> {
        let file = safe_file::append_named(path);
        file.map(|f| Self(BufWriter::new(f))).map_err(|e| Failure::new(format!("{}: {e}", path.display())))
    }

    pub(crate) fn write(&mut self, events: &[Event]) -> Result<(), Failure> {
        for event in events {
            serde_json::to_writer(&mut self.0, event)?;
            self.0.write_all(b"\n")?;
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }
}
