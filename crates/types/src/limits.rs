//! How much of one event, line, value or name is kept. `docs/limits.md` explains each number; they have no other home.
//!
//! Whatever is longer is replaced by its beginning, its end, its length and a hash of all of it: two long values are
//! equal when these are.

/// The longest event of a hook and the longest line of a stream, in bytes. A longer line gets an error.
pub const EVENT: usize = 64 << 20;

/// An event up to this size, in bytes, is parsed as it is; a longer one is cut to the limits below first.
pub const PLAIN: usize = 16 << 10;

/// The longest text, in bytes: a command, a message, an output.
pub const TEXT: usize = 64 << 10;

/// The longest key of an object, in bytes.
pub const KEY: usize = 1 << 10;

/// The longest number, in bytes. A longer one is read as null.
pub const NUMBER: usize = 1 << 10;

/// What arguments or a result may hold as a tree, in bytes of JSON. Two levels below, a quarter.
pub const TREE: usize = 256 << 10;

/// What arguments or a result may hold as a tree, in values. Two levels below, a quarter.
pub const TREE_NODES: usize = 4096;

/// What is kept of a tree that is larger, as text, in bytes.
pub const TREE_TEXT: usize = 16 << 10;

/// How deep JSON may nest. What is deeper is kept as text.
pub const DEPTH: usize = 127;

/// How many calls of one turn are kept.
pub const CALLS: usize = 256;

/// What the calls of one turn may hold together, in bytes of JSON.
pub const CALLS_BYTES: usize = 1 << 20;

/// What one event may hold in all, in bytes of JSON. Fields that don't fit are left out.
pub const RECORD: usize = 2 << 20;

/// What one event may hold in all, in values.
pub const RECORD_NODES: usize = 8192;

/// A field up to this size, in bytes, still fits into an event that is full.
pub const SMALL_FIELD: usize = 1 << 10;

/// The longest name of a session, agent, swarm, task or model, in bytes.
pub const NAME: usize = 256;

/// How much of a shell command is read, in bytes.
pub const COMMAND: usize = 64 << 10;

/// How much of a call a message quotes, in characters.
pub const QUOTE: usize = 60;

/// A name of at most [`NAME`] bytes: a longer one ends in a hash of all of it, so that different names stay different.
#[must_use]
pub fn name(name: String) -> String {
    if name.len() <= NAME {
        return name;
    }
    // FNV-1a: names are stored, and the hash must be the same in every release.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut end = NAME - 20;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…{hash:016x}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_stay_different() {
        let long = "é".repeat(5000);
        let other = format!("{long}x");
        assert!(name(long.clone()).len() <= NAME);
        assert_ne!(name(long.clone()), name(other));
        assert_eq!(name(long.clone()), name(long));
        assert_eq!(name("short".to_owned()), "short");
    }
}
