use deloop_types::Turn;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many words a sketch holds at most.
const MOST: usize = 40;
/// Of one text, so many bytes are read.
const READ: usize = 2048;

/// The words of a call's arguments without standalone numbers, for telling a variation from another call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sketch(Box<[u16]>);

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

    /// Of what a search looks for: runs of letters, whatever the pattern around them.
    #[must_use]
    pub fn of_pattern(pattern: &str) -> Self {
        let mut words = Vec::new();
        for word in pattern.split(|c: char| !c.is_alphabetic()).filter(|w| w.len() > 2) {
            add(word, &mut words);
        }
        words.sort_unstable();
        words.dedup();
        Self(words.into())
    }

    /// Of what a turn says and asks for.
    #[must_use]
    pub fn of_turn(turn: &Turn) -> Self {
        let mut words = Vec::with_capacity(MOST);
        add(&turn.text, &mut words);
        for call in &turn.calls {
            add(&call.tool, &mut words);
            collect(&call.args, &mut words);
        }
        words.sort_unstable();
        words.dedup();
        Self(words.into())
    }

    /// How many words there are; long arguments are counted up to 40.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

fn collect(value: &Value, words: &mut Vec<u16>) {
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

/// Which bytes end a word: one look each, since every byte of every call goes through here.
const CUTS: [bool; 256] = {
    let mut cuts = [false; 256];
    let bytes = b" \t\r\n\x0c{}[]\",:()=;'\\`<>|&";
    let mut i = 0;
    while i < bytes.len() {
        cuts[bytes[i] as usize] = true;
        i += 1;
    }
    cuts
};

fn add(text: &str, words: &mut Vec<u16>) {
    // FNV-1a: words are short, and a sketch is compared, never looked up by others.
    const START: u32 = 0x811c_9dc5;
    let (mut hash, mut length, mut number) = (START, 0_u32, true);
    let bytes = text.as_bytes().iter().take(READ).copied();
    for byte in bytes.chain(std::iter::once(b' ')) {
        if !CUTS[usize::from(byte)] {
            number &= byte.is_ascii_digit();
            length += 1;
            hash = (hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193);
            continue;
        }
        if length > 0 && !number {
            if words.len() >= MOST {
                return;
            }
            #[expect(
                clippy::cast_possible_truncation,
                reason = "half of the hash: a sketch is small, and compared as a whole"
            )]
            words.push((hash ^ (hash >> 16)) as u16);
        }
        (hash, length, number) = (START, 0, true);
    }
}
