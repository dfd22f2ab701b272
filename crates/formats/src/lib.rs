//! Reads what agents write, as [`Step`](deloop_types::Step)s: one folder per format, one list of formats.
//!
//! Pure: bytes in, Steps out. Finding files and opening them is the caller's business.
//!
//! ```
//! use deloop_formats::{Item, Source, find, read};
//!
//! let bytes = br#"{"type":"call","tool":"bash","args":{"command":"ls"}}"#;
//! let mut steps = Vec::new();
//! let report = read(find("native").unwrap(), bytes, &Source::default(), &mut |item: Item| steps.push(item.step));
//! assert_eq!((steps.len(), report.unreadable), (1, 0));
//! ```

mod author;
mod cline;
mod copilot_cli;
mod cursor;
#[cfg(test)]
mod fixture;
mod format;
mod gemini_cli;
mod goose;
mod loose;
mod native;
mod opencode;
mod openhands;
mod peek;
mod place;
mod registry;

pub use format::{Format, Item, Reader, Report, Shape, Sink, Source, read};
pub use opencode::{STORAGE as OPENCODE_STORAGE, read_storage as read_opencode_storage};
pub use place::{Base, Place};
pub use registry::{FORMATS, find, sniff};
