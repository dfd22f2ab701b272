use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::reading::{write_canonical, write_canonical_entries};

/// Identifies the hash function and the version of its input. A stored history records the one it was made with.
/// XXH3-128, because its output is frozen upstream: it is the same on every platform and in every release.
pub const SCHEME: &str = "xxh3-128/1";

/// Identifies a call or a text in a history. Equal inputs have equal fingerprints, across runs, platforms and releases.
///
/// ```
/// use deloop_detect::Fingerprint;
/// use serde_json::json;
/// let one = Fingerprint::of_call("edit", &json!({"a": 1, "b": 2}));
/// let two = Fingerprint::of_call("edit", &json!({"b": 2, "a": 1}));
/// assert_eq!(one, two);
/// assert_eq!(one.to_string().len(), 32);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint {
    high: u64,
    low: u64,
}

impl Fingerprint {
    /// Hashes a tool and its arguments, regardless of the order of their keys.
    #[must_use]
    pub fn of_call(tool: &str, args: &Value) -> Self {
        let mut text = String::with_capacity(256);
        text.push_str(tool);
        text.push('\0');
        write_canonical(args, &mut text);
        Self::of_bytes(text.as_bytes())
    }

    /// Hashes a tool and some of its arguments.
    pub(crate) fn of_entries(tool: &str, entries: &mut [(&String, &Value)]) -> Self {
        let mut text = String::with_capacity(256);
        text.push_str(tool);
        text.push('\0');
        write_canonical_entries(entries, &mut text);
        Self::of_bytes(text.as_bytes())
    }

    /// Hashes bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let hash = xxh3_128(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of the hash")]
        Self { high: (hash >> 64) as u64, low: hash as u64 }
    }

    /// Returns a shorter hash, for uses where a collision costs little.
    #[must_use]
    pub fn short(self) -> u64 {
        self.low
    }
}

/// Hashes a name or text where 64 bits are enough: call ids, tools, words.
#[must_use]
pub fn short_hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        ser.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(de)?;
        let half = |range| text.get(range).and_then(|h| u64::from_str_radix(h, 16).ok());
        match (text.len(), half(0..16), half(16..32)) {
            (32, Some(high), Some(low)) => Ok(Self { high, low }),
            _ => Err(de::Error::custom("a fingerprint is 32 hexadecimal digits")),
        }
    }
}

/// Halves a hash: enough to distinguish the calls of one window. 0 stays 0.
#[expect(clippy::cast_possible_truncation, reason = "half of it is wanted")]
pub(crate) fn half(hash: u64) -> u32 {
    if hash == 0 { 0 } else { (hash as u32).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored histories depend on these: a change here needs a new [`SCHEME`].
    #[test]
    fn fingerprints_are_frozen() {
        let of =
            |tool, args: &str| Fingerprint::of_call(tool, &serde_json::from_str(args).unwrap()).to_string();
        assert_eq!(of("bash", r#"{"command":"ls"}"#), "92e7278e7471f70413c5754c4c8d2efa");
        assert_eq!(of("", "null"), "e5c06e0e55154806e8124413d8894a08");
    }
}
