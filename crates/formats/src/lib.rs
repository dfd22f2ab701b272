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

mod anthropic_messages;
mod author;
mod bounded;
mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod cursor;
mod dialect;
mod document;
mod envelope;
mod field;
#[cfg(test)]
mod fixture;
mod format;
mod gemini_cli;
mod goose;
mod growing;
pub mod hooks;
mod lenient;
mod loose;
mod mend;
mod mini_swe_agent;
mod native;
mod nesting;
mod openai_messages;
mod openai_messages_jsonl;
mod openai_responses;
mod opencode;
mod openhands;
mod openinference;
mod otlp;
mod parts;
mod peek;
mod pi;
mod place;
mod qwen_code;
mod registry;
mod scribe;
mod swe_agent;
mod tokens;

pub use bounded::{bound_lines, read_json, read_step};
pub use format::{Format, Item, Reader, Report, Shape, Sink, Source, read};
pub use opencode::read_storage as read_opencode_storage;
pub use place::{Base, Place};
pub use registry::{FORMATS, find, sniff};
