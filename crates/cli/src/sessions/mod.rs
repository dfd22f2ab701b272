//! Opens session files, wherever they are and however they are compressed, for every command that reads them.
//!
//! [`find`] turns paths, folders, globs and `-` into [`SessionInput`]s, [`read`] passes on one input's Steps as they
//! are read, [`each`] works on many inputs at once, and [`load`] returns the Steps of one session.

pub(crate) mod agent_folders;
mod find;
mod load;
mod opencode;
mod parallel;
mod pattern;
mod problem;
mod read;
pub(crate) mod since;
mod unread;
mod walk;

pub(crate) use deloop_formats::ReadError;
pub(crate) use find::{FoundInputs, InputSource, LinkArgs, SessionInput, SourceArgs, examples, find};
pub(crate) use load::load;
pub(crate) use parallel::{InputOutcome, each};
pub(crate) use problem::{Problem, home_relative, print_problems};
pub(crate) use read::read;
pub(crate) use unread::{UnreadFiles, nothing_read, without_steps};
