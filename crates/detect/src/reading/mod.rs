//! Reads calls and results before they are judged. All vocabulary is data (`vocabulary.toml`).

mod canonical;
mod command;
mod ending;
mod failure_kind;
#[cfg(test)]
mod linear;
mod mask;
mod normalise;
mod redaction;
mod requested;
mod scan;
pub mod shell;
mod short;
mod similarity;
mod sketch;
mod sought;
mod target;
mod test_runs;
mod tools;
mod vocabulary;
mod words;

pub use canonical::write_canonical;
pub use command::command_line;
pub(crate) use command::is_file_operation;
pub use ending::Ending;
pub(crate) use ending::read_result;
pub use mask::{mask, mask_into};
pub use normalise::{CUT, normalise};
pub(crate) use redaction::redacted;
pub use redaction::{SECRET, is_secret_name, redact};
pub(crate) use requested::requested_times;
pub use short::{clean, is_invisible, quote, short_call, telling_argument};
pub(crate) use short::{room_for, telling};
pub(crate) use similarity::{Measure, TurnContent};
pub use sketch::Sketch;
pub(crate) use sought::sought;
pub use target::target;
pub(crate) use test_runs::runs_tests;
pub use test_runs::{is_test_command, test_verdict};
pub use tools::{ToolKind, ToolRule, Tools};
pub use vocabulary::{CommandList, Effect, Lists, Meaning, PhraseList, ToolList, VOCABULARY, Vocabulary};
pub use words::Words;
