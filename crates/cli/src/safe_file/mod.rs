//! Reads and writes files in folders that somebody else may have filled: a repository you cloned, an agent's working
//! folder, a shared disk.
//!
//! Reads take regular files only, never wait for a pipe or a device, and stop at a size and a deadline. Writes follow
//! no link, create new files exclusively under a random name, and replace a file only if it still holds what was read.

mod folder;
mod read;
mod write;

pub(crate) use read::{Links, is_stream, open, open_named, read, read_text};
pub(crate) use write::{Expected, Make, Permission, Target, append_named, private_folder, replace_named};
