//! Reads and writes files in folders whose content someone else may control: a repository you cloned, an agent's
//! working folder, a shared disk.
//!
//! Reads accept only regular files, never wait for a pipe or a device, and stop at a size limit and a deadline. Writes
//! follow no links, create new files exclusively under a random name, and replace a file only if it is unchanged.

mod folder;
mod lock;
mod read;
mod write;

pub(crate) use lock::{FileLock, lock};
pub(crate) use read::{Links, is_stream, open, open_named, read, read_text};
pub(crate) use write::{Expected, Make, Permission, Target, append_named, private_folder, replace_named};
