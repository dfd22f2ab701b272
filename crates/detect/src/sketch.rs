use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::short_hash;

/// How many words a sketch holds at most.
const MOST: usize = 48;
/// Of one text, so many bytes are read.
const READ: usize = 2048;

/// The words of a call's arguments without standalone numbers, for telling a variation from another call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sketch(Box<[u32]>);

impl Sketch {
    /// Of these arguments.
    ///
    /// ```
    /// use deloop_detect::Sketch;
    /// use serde_json::json;
    /// let a = Sketch::of(&json!({"command": "find / -name java 1"}));
    /// let b = Sketch::of(&json!({"command": "find / -name java 2"}));
    /// assert_eq!(a.likeness(&b), 1.0);
    /// ```
    #[must_use]
    pub fn of(args: &Value) -> Self {
        let mut words = Vec::with_capacity(MOST);
        collect(args, &mut words);
        words.sort_unstable();
        words.dedup();
        Self(words.into())
    }

    /// How many words the two share, of all they have: 0 to 1. Two without words are alike.
    #[must_use]
    pub fn likeness(&self, other: &Self) -> f64 {
        let (mut i, mut j, mut both) = (0, 0, 0_usize);
        while let (Some(a), Some(b)) = (self.0.get(i), other.0.get(j)) {
            both += usize::from(a == b);
            i += usize::from(a <= b);
            j += usize::from(b <= a);
        }
        let all = self.0.len() + other.0.len() - both;
        #[expect(clippy::cast_precision_loss, reason = "sets are small")]
        if all == 0 { 1.0 } else { both as f64 / all as f64 }
    }
}

fn collect(value: &Value, words: &mut Vec<u32>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                add(key, words);
                collect(value, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::String(text) => add(text, words),
        Value::Bool(_) | Value::Number(_) | Value::Null => {}
    }
}

fn add(text: &str, words: &mut Vec<u32>) {
    let bytes = &text.as_bytes()[..text.len().min(READ)];
    let cuts = |b: &u8| b.is_ascii_whitespace() || b"{}[]\",:()=;'\\`<>|&".contains(b);
    let mut lower = [0_u8; 64];
    for word in bytes.split(cuts).filter(|w| !w.is_empty()) {
        if words.len() >= MOST {
            return;
        }
        if word.iter().all(u8::is_ascii_digit) {
            continue;
        }
        let length = word.len().min(lower.len());
        lower[..length].copy_from_slice(&word[..length]);
        lower[..length].make_ascii_lowercase();
        #[expect(clippy::cast_possible_truncation, reason = "half of the hash is enough for a word")]
        words.push(short_hash(&lower[..length]) as u32);
    }
}
