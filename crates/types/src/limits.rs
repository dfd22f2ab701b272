//! How much deloop keeps of an event, line, value or name. `docs/limits.md` explains each number.
//!
//! A longer value is replaced by its beginning, its end, its length and a hash of the whole. Two long values are
//! equal when these are equal.

/// Maximum size of a hook event and of a line of a stream, in bytes. A longer line gets an error.
pub const EVENT: usize = 64 << 20;

/// Events up to this size, in bytes, are parsed unchanged. Longer ones are first cut to the limits below.
pub const PLAIN: usize = 16 << 10;

/// Maximum length of a text (a command, a message, an output), in bytes.
pub const TEXT: usize = 64 << 10;

/// Maximum length of an object key, in bytes.
pub const KEY: usize = 1 << 10;

/// Maximum length of a number, in bytes. A longer one is read as null.
pub const NUMBER: usize = 1 << 10;

/// Maximum size of arguments or a result kept as a tree, in bytes of JSON. Two levels down, a quarter of that.
pub const TREE: usize = 256 << 10;

/// Maximum size of arguments or a result kept as a tree, in values. Two levels down, a quarter of that.
pub const TREE_NODES: usize = 4096;

/// How much of a larger tree is kept as text, in bytes.
pub const TREE_TEXT: usize = 16 << 10;

/// Maximum nesting depth of JSON. Deeper values are kept as text.
pub const DEPTH: usize = 127;

/// Maximum number of calls kept per turn.
pub const CALLS: usize = 256;

/// Maximum total size of the calls of one turn, in bytes of JSON.
pub const CALLS_BYTES: usize = 1 << 20;

/// Maximum total size of one event, in bytes of JSON. Fields that don't fit are left out.
pub const RECORD: usize = 2 << 20;

/// Maximum total size of one event, in values.
pub const RECORD_NODES: usize = 8192;

/// Fields up to this size, in bytes, still fit into a full event.
pub const SMALL_FIELD: usize = 1 << 10;

/// Maximum length of the name of a session, agent, swarm, task or model, in bytes.
pub const NAME: usize = 256;

/// How much of a shell command is parsed, in bytes.
pub const COMMAND: usize = 64 << 10;

/// How much of a call is quoted in a message, in characters.
pub const QUOTE: usize = 60;

/// Shortens a name to at most [`NAME`] bytes. A shortened name ends in a hash of the whole, so that different names
/// stay different.
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
