//! Reads sessions that agents write, as [`Step`](deloop_types::Step)s: one folder per format, one list of formats.
//!
//! Pure: bytes in, Steps out. The caller finds and opens files; [`read_file`] unpacks, decodes and splits their bytes.
//!
//! ```
//! use deloop_formats::{Item, Source, find, read};
//!
//! let bytes = br#"{"type":"call","tool":"bash","args":{"command":"ls"}}"#;
//! let mut steps = Vec::new();
//! let report = read(find("native").unwrap(), bytes, &Source::default(), &mut |item: Item| steps.push(item.step));
//! assert_eq!((steps.len(), report.unreadable), (1, 0));
//! ```

mod agents;
mod apis;
mod file;
#[cfg(test)]
mod fixture;
mod format;
pub mod hooks;
mod json;
mod location;
mod native;
mod recent;
mod registry;
mod step_writer;
mod text;
mod timeout;

pub use agents::opencode::read_storage as read_opencode_storage;
pub use file::{FileNotes, FileRead, InputLine, LONGEST, Lines, ReadError, read_file, subagent_of};
pub use format::{Format, Item, OwnFiles, Reader, Report, Shape, Sink, Source, read};
pub use json::bounded::{bound_lines, read_json, read_step};
pub use location::{Base, Place};
pub use registry::{FORMATS, find, sniff};
