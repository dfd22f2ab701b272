use deloop_types::{Evidence, Finding, Repeats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Moment, Ring, short_hash};

/// One message that repeats itself, seen while it streams or when it is whole.
pub(crate) struct Chanting;

/// How [`Chanting`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From how many times in a row the same words are a finding; 0 switches this rule off.
    times: u32,
    /// How many words must be repetition, all together.
    words: u32,
    /// The same, in code and tables: they repeat by nature.
    code: u32,
    /// From how many sentences on that were in the message before, wherever; 0 switches this rule off.
    sentences: u32,
    /// Of all sentences, this share must have been there before, 0 to 1.
    share: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { times: 5, words: 60, code: 600, sentences: 20, share: 0.5 }
    }
}

/// The longest piece that is seen to repeat, in words.
const LONGEST: u32 = 256;
/// Where three words in a row were last seen: so many places, as a byte can name.
const SLOTS: usize = 256;
/// A word without an end is cut into pieces.
const LONG_WORD: u32 = 24;

/// Shorter sentences, in words, may well come again.
const SENTENCE: u32 = 4;
/// So many different sentences of a message are remembered.
const KNOWN: usize = 256;

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
    /// The sentence that is being read: its words, hashed, and how many; whether a full stop was the last thing read.
    sentence: (u32, u32),
    stopped: bool,
    /// Sentences so far, how many of them were there before, and the last ones, hashed.
    sentences: u32,
    again: u32,
    known: Ring<u32>,
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
            repeats: Repeats::Message,
            evidence: Evidence {
                pattern: short_hash(b"chanting"),
                at: moment.history.turns(),
                ..Evidence::default()
            },
            ..Finding::default()
        })
    }
}

impl Message {
    /// Reads on; says how often the words repeat as soon as that is too often.
    fn read(&mut self, params: &Params, text: &str) -> Option<u32> {
        for letter in text.chars() {
            self.begin_line(letter);
            let part = letter.is_alphanumeric() || matches!(letter, '_' | '\'');
            if part {
                let lower = letter.to_ascii_lowercase();
                self.hash = (self.hash ^ u32::from(lower)).wrapping_mul(0x0100_0193);
                self.length += 1;
            }
            // Characters of scripts without spaces are words by themselves.
            let ends = !part || letter >= '\u{2e80}' || self.length >= LONG_WORD;
            let mut times = if self.length > 0 && ends { self.word(params) } else { None };
            if letter == '\n' || self.stopped && letter.is_whitespace() {
                times = times.or_else(|| self.end_sentence(params));
            }
            self.stopped = matches!(letter, '.' | '!' | '?');
            if times.is_some() {
                return times;
            }
        }
        None
    }

    /// A sentence is complete: was it there before?
    fn end_sentence(&mut self, params: &Params) -> Option<u32> {
        let (hash, words) = std::mem::take(&mut self.sentence);
        if words < SENTENCE || self.fenced || self.line == LineStart::Table || params.sentences == 0 {
            return None;
        }
        self.sentences += 1;
        if self.known.iter().any(|k| *k == hash) {
            self.again += 1;
        } else {
            self.known.push(hash, KNOWN);
        }
        let most = f64::from(self.again) >= params.share * f64::from(self.sentences);
        (self.again >= params.sentences && most).then_some(self.again)
    }

    fn begin_line(&mut self, letter: char) {
        self.line = match (self.line, letter) {
            (_, '\n') => LineStart::Blank,
            (LineStart::Blank, ' ' | '\t') => LineStart::Blank,
            (LineStart::Blank, '|') => LineStart::Table,
            (LineStart::Blank, '`') => LineStart::Ticks(1),
            (LineStart::Ticks(1), '`') => LineStart::Ticks(2),
            (LineStart::Ticks(2), '`') => {
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
        self.sentence =
            ((self.sentence.0.rotate_left(7) ^ word).wrapping_mul(0x0100_0193), self.sentence.1 + 1);
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
        (params.times > 0 && times >= params.times && self.run >= most).then_some(times)
    }
}
