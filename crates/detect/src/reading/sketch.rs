use deloop_types::Turn;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of words in a sketch.
const MOST: usize = 40;
/// Maximum number of bytes read from one text.
const READ: usize = 2048;

/// The words of a call's arguments without standalone numbers, to recognize variations of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sketch(Box<[u16]>);

impl Sketch {
    /// Creates the sketch of these arguments.
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

    /// Creates the sketch of a search term: runs of letters, whatever the pattern around them.
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

    /// Creates the sketch of a turn's text and calls.
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

    /// Returns the number of words; for long arguments at most 40.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the share of words that both have in common, 0 to 1. Two empty sketches are alike.
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

/// What ends a word in [`LETTERS`]: a byte that no text has.
const CUT: u8 = 0xff;
/// Each byte in lower case, or [`CUT`]. A table, because every byte of every call goes through here.
const LETTERS: [u8; 256] = {
    let mut letters = [CUT; 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        letters[byte as usize] = byte.to_ascii_lowercase();
        byte += 1;
    }
    let cuts = b" \t\r\n\x0c{}[]\",:()=;'\\`<>|&";
    let mut i = 0;
    while i < cuts.len() {
        letters[cuts[i] as usize] = CUT;
        i += 1;
    }
    letters
};

fn add(text: &str, words: &mut Vec<u16>) {
    // FNV-1a: words are short, and sketches are only compared with each other.
    const START: u32 = 0x811c_9dc5;
    let bytes = &text.as_bytes()[..text.len().min(READ)];
    let mut at = 0;
    while at < bytes.len() {
        let (mut hash, mut others, from) = (START, 0_u32, at);
        while at < bytes.len() {
            let letter = LETTERS[usize::from(bytes[at])];
            if letter == CUT {
                break;
            }
            others += u32::from(letter.wrapping_sub(b'0') > 9);
            hash = (hash ^ u32::from(letter)).wrapping_mul(0x0100_0193);
            at += 1;
        }
        let is_number = others == 0;
        let is_empty = at == from;
        at += 1;
        if is_empty || is_number {
            continue;
        }
        if words.len() >= MOST {
            return;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "half of the hash: a sketch is small, and compared as a whole"
        )]
        words.push((hash ^ (hash >> 16)) as u16);
    }
}
