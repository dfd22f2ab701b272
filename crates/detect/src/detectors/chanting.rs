use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Moment, Ring, short_hash};

/// Finds a message that repeats itself, while it streams or once it is complete.
pub(crate) struct Chanting;

/// Parameters of [`Chanting`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChantingParams {
    /// Number of repeated sentences in one message that make a finding.
    sentences: u32,
    /// Minimum share of repeated sentences among all sentences, 0 to 1.
    share: f64,
    /// Number of repeated sentences in one message that are proof, if they are nearly all of it; 0 means that none are.
    hard: u32,
}

impl Default for ChantingParams {
    fn default() -> Self {
        Self { sentences: 20, share: 0.5, hard: 0 }
    }
}

/// Shorter sentences, in words, are ignored: they may repeat in any text.
const SHORTEST: u32 = 4;
/// A sentence without an end is cut into pieces of this many words. Repeated text has few different pieces.
const LONGEST: u32 = 16;
/// Number of different sentences remembered per message.
const KNOWN: usize = 256;

/// The message that is streaming, if any.
pub(crate) type ChantingMemory = Option<Box<StreamedMessage>>;

/// The state of a message read so far.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StreamedMessage {
    /// Hash of the current word; 0 between words.
    word: u32,
    /// Hash and word count of the current sentence.
    sentence: (u32, u32),
    /// Whether the last character was a full stop.
    stopped: bool,
    /// How the line begins, and whether it is code.
    line: LineStart,
    fenced: bool,
    /// Sentences so far, how many of them were repeated, and the hashes of the different ones.
    sentences: u32,
    again: u32,
    known: Ring<u32>,
    /// Whether it has been reported.
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
    type Params = ChantingParams;
    type Memory = ChantingMemory;

    fn name(&self) -> &'static str {
        "chanting"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(ChantingParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("chanting.md")
    }

    fn remembers(&self, memory: &Self::Memory) -> bool {
        memory.is_some()
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        let found = match &moment.event {
            Happening::Chunk(text) => {
                let message = memory.get_or_insert_default();
                let times = message.read(params, text);
                let is_proof = message.is_proof(params);
                if message.told && !is_proof {
                    return None;
                }
                message.told |= times.is_some();
                (times.or_else(|| is_proof.then_some(message.again))?, is_proof)
            }
            // What came in pieces is known when it comes whole.
            Happening::Turn(turn) if memory.take().is_none() => {
                let mut message = StreamedMessage::default();
                let times = message.read(params, &turn.text)?;
                (times, message.is_proof(params))
            }
            _ => return None,
        };
        let (times, hard) = found;
        Some({
            let mut found = Finding::new(self.name(), times.into()).by_rule("sentences");
            found.period = 1;
            found.score = 1.0;
            found.since = moment.step;
            found.repeats = Repeats::Message;
            found.pattern = short_hash(b"chanting").into();
            found.evidence = Evidence {
                at: moment.history.turns(),
                hard,
                // A message that never ends leaves the agent no turn in which it could change.
                rounds: hard && matches!(moment.event, Happening::Chunk(_)),
                ..Evidence::default()
            };
            found
        })
    }
}

impl StreamedMessage {
    /// Returns whether the message consists of next to nothing but repeated sentences, and of very many.
    fn is_proof(&self, params: &ChantingParams) -> bool {
        let nearly_all = u64::from(self.again) * 10 >= u64::from(self.sentences) * 9;
        params.hard > 0 && self.again >= params.hard && nearly_all
    }

    /// Reads more text. Returns the number of repeated sentences: as soon as there are too many, or all of them if they are
    /// proof. Ignores code and tables, which repeat by nature.
    fn read(&mut self, params: &ChantingParams, text: &str) -> Option<u32> {
        let mut many = None;
        for letter in text.chars() {
            let table = self.line == LineStart::Table;
            self.begin_line(letter);
            if letter.is_alphanumeric() {
                let lower = letter.to_ascii_lowercase();
                self.word = ((self.word ^ u32::from(lower)).wrapping_mul(0x0100_0193)).max(1);
            }
            // Characters of scripts without spaces are words by themselves.
            if !letter.is_alphanumeric() || letter >= '\u{2e80}' {
                self.end_word();
            }
            let ends = letter == '\n' || self.stopped && letter.is_whitespace() || self.sentence.1 >= LONGEST;
            self.stopped = matches!(letter, '.' | '!' | '?' | '。');
            if ends && self.is_again(self.fenced || table) {
                let most = f64::from(self.again) >= params.share * f64::from(self.sentences);
                if self.again >= params.sentences && most {
                    many = many.or(Some(self.again));
                    if params.hard == 0 {
                        return many;
                    }
                }
            }
        }
        many.map(|many| if self.is_proof(params) { self.again } else { many })
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word != 0 {
            let (hash, words) = self.sentence;
            self.sentence = ((hash.rotate_left(7) ^ word).wrapping_mul(0x0100_0193), words + 1);
        }
    }

    /// Ends a sentence. Returns whether it was in the message before.
    fn is_again(&mut self, code: bool) -> bool {
        let (hash, words) = std::mem::take(&mut self.sentence);
        if words < SHORTEST || code {
            return false;
        }
        self.sentences += 1;
        let again = self.known.iter().any(|k| *k == hash);
        if again {
            self.again += 1;
        } else {
            self.known.push(hash, KNOWN);
        }
        again
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
}
