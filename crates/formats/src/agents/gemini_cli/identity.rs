//! Names of messages, calls and results, short enough to keep all of them.

use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(super) const MESSAGE: u64 = 0;
pub(super) const CALL: u64 = 1;
pub(super) const RESULT: u64 = 2;

/// The name of the message, call or result of this id.
pub(super) fn hash(what: u64, id: Option<&str>) -> Option<u64> {
    id.map(|id| xxh3_64_with_seed(id.as_bytes(), what))
}
