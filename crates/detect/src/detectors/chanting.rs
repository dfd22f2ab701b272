use deloop_types::{Evidence, Finding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Moment, Ring, short_hash};

/// One message that repeats itself, seen while it streams or when it is whole.
pub(crate) struct Chanting;

/// How [`Chanting`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From how many times in a row the same words are a finding.
    times: u32,
    /// How many words must be repetition, all together.
    words: u32,
    /// The same, in code and tables: they repeat by nature.
    code: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self { times: 5, words: 60, code: 600 }
    }
}

/// The longest piece that is seen to repeat, in words.
const LONGEST: u32 = 256;
/// Where three words in a row were last seen: so many places, as a byte can name.
const SLOTS: usize = 256;
/// A word without an end is cut into pieces.
const LONG_WORD: u32 = 24;

/// The message that streams now, if one does.
pub(crate) type Memory = Option<Box<Message>>;

/// A message so far: what a piece more is compared with.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Message {
    /// The last words, hashed.
    recent: Ring<u32>,
    /// Words so far.
    count: u32,
    /// For three words in a row, hashed, which word was the last of them.
    seen: Vec<u32>,
    /// The distance at which the words repeat now, and how many in a row do.
    period: u32,
    run: u32,
    /// The word that is being read.
    hash: u32,
    length: u32,
    /// How the line begins; whether it is of code or of a table.
    line: LineStart,
    fenced: bool,
    /// Whether it was told already.
    told: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum LineStart {
    #[default]
    Blank,
    Ticks(u8),
    Table,
    Text,
}

impl Detector for Chanting {
    type Params = Params;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "chanting"
    }

    fn page(&self) -> &'static str {
        include_str!("chanting.md")
    }

    fn look(&self, params: &Params, moment: &Moment<'_>, memory: &mut Memory) -> Option<Finding> {
        let times = match &moment.event {
            Happening::Chunk(text) => {
                let message = memory.get_or_insert_default();
                if message.told {
                    return None;
                }
                let times = message.read(params, text)?;
                message.told = true;
                times
            }
            // What came in pieces is known when it comes whole.
            Happening::Turn(turn) if memory.take().is_none() => {
                Message::default().read(params, &turn.text)?
            }
            _ => return None,
        };
        Some(Finding {
            detector: self.name().to_owned(),
            count: times.into(),
            period: 1,
            score: 1.0,
            since: moment.step,
            tool: None,
            summary: format!("one message says the same words {times} times in a row"),
            evidence: Evidence {
                pattern: short_hash(b"chanting"),
                at: moment.history.turns(),
                ..Evidence::default()
            },
        })
    }
}

impl Message {
    /// Reads on; says how often the words repeat as soon as that is too often.
    fn read(&mut self, params: &Params, text: &str) -> Option<u32> {
        for byte in text.bytes() {
            self.begin_line(byte);
            // Letters of other scripts are words by themselves: many are written without spaces.
            let part = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'\'');
            if part || !byte.is_ascii() {
                self.hash = (self.hash ^ u32::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0193);
                self.length += 1;
            }
            let ends = !part && (byte.is_ascii() || self.length >= 3) || self.length >= LONG_WORD;
            if self.length > 0
                && ends
                && let Some(times) = self.word(params)
            {
                return Some(times);
            }
        }
        None
    }

    fn begin_line(&mut self, byte: u8) {
        self.line = match (self.line, byte) {
            (_, b'\n') => LineStart::Blank,
            (LineStart::Blank, b' ' | b'\t') => LineStart::Blank,
            (LineStart::Blank, b'|') => LineStart::Table,
            (LineStart::Blank, b'`') => LineStart::Ticks(1),
            (LineStart::Ticks(1), b'`') => LineStart::Ticks(2),
            (LineStart::Ticks(2), b'`') => {
                self.fenced = !self.fenced;
                LineStart::Text
            }
            (LineStart::Blank | LineStart::Ticks(_), _) => LineStart::Text,
            (other, _) => other,
        };
    }

    /// A word is complete.
    fn word(&mut self, params: &Params) -> Option<u32> {
        let word = std::mem::take(&mut self.hash);
        self.length = 0;
        self.recent.push(word, LONGEST as usize + 3);
        self.count += 1;
        let back = |n: u32| self.recent.back(n as usize).copied();
        if self.period > 0 && back(self.period) == Some(word) {
            self.run += 1;
        } else {
            (self.period, self.run) = (0, 0);
        }
        if self.seen.is_empty() {
            self.seen = vec![0; SLOTS];
        }
        let three = [word, back(1).unwrap_or(0), back(2).unwrap_or(0)];
        let slot = three.iter().fold(0_u32, |h, w| (h.rotate_left(9) ^ w).wrapping_mul(0x9e37_79b1)) >> 24;
        let last = std::mem::replace(&mut self.seen[slot as usize], self.count);
        if self.period == 0 && last > 0 && self.count - last <= LONGEST {
            let distance = self.count - last;
            let same = |n: &u32| back(*n).is_some() && back(*n) == back(*n + distance);
            let run = (0..=LONGEST).take_while(same).count();
            if run >= 3 {
                (self.period, self.run) = (distance, u32::try_from(run).unwrap_or(LONGEST));
            }
        }
        if self.period == 0 {
            return None;
        }
        let most = if self.fenced || self.line == LineStart::Table { params.code } else { params.words };
        let times = self.run / self.period + 1;
        (times >= params.times && self.run >= most).then_some(times)
    }
}
