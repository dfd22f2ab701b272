use deloop_types::Usage;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{History, Ring, request_words};
use crate::fingerprint::{half, short_hash};
use crate::{CallRecord, Ending, Look, Progress};

/// Number of calls of which at most one may bring something new, or the stretch ends.
const RARE: u32 = 10;
/// Number of replies without a call that are remembered.
const REPLIES: usize = 12;
/// Shorter outputs, in bytes, are too short to be recognized when another call returns them.
const SAYS_SOMETHING: u16 = 20;

/// The current stretch without progress: calls and replies that brought nothing new, with nothing changed in between.
///
/// A change, a new request and a cut context end it. So does something new, unless it is the only new outcome among
/// ten calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stretch {
    /// Number of calls that brought nothing new.
    pub calls: u32,
    /// Number of turns that made them.
    pub turns: u32,
    /// Number of replies without a call that repeat an earlier one word for word.
    pub replies: u32,
    /// Number of notes made with a call that repeat an earlier one.
    pub notes: u32,
    /// The step of the first of them.
    pub notes_since: u32,
    /// Number of automatic messages in it, all in words that were used before.
    pub prompts: u32,
    /// The step of its first call.
    pub since: u32,
    /// The step of the first repeated reply.
    pub replies_since: u32,
    /// Whether the failure of some of the calls was inferred from words, or something outside may change what they return.
    pub inferred: bool,
    /// What its requests to the model cost, in dollars, without those that waited for a running process.
    pub usd: f64,
    /// Whether the last call waits for a process that is declared running, or its result isn't recorded.
    waiting: bool,
    /// The last turn with such a call, and the number of such calls since the last new outcome.
    turn: Option<u32>,
    quiet: u32,
    /// Hashes of the last replies without a call.
    said: Ring<u32>,
}

impl Stretch {
    /// Returns whether there is nothing to remember.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Ends the stretch. Replies are remembered until the next request.
    fn end(&mut self) {
        *self = Self { said: std::mem::take(&mut self.said), ..Self::default() };
    }

    /// Starts over, because of a new request or a cut context.
    pub(super) fn start_over(&mut self) {
        *self = Self::default();
    }

    /// Adds an automatic message in words that were used before.
    pub(super) fn prompted(&mut self) {
        self.prompts += u32::from(self.begun());
    }

    /// Notes a program's news: what the agent replies to it is a new reply.
    pub(super) fn informed(&mut self) {
        (self.replies, self.said) = (0, Ring::default());
    }

    /// Adds a call whose result has just been judged, after the calls `before` it (newest first).
    pub(super) fn add_call<'a>(
        &mut self,
        record: &CallRecord,
        before: &(impl Iterator<Item = &'a CallRecord> + Clone),
    ) {
        self.waiting = !record.ending.tells();
        match record.progress {
            Progress::Changed => self.end(),
            Progress::Same | Progress::FailedAgain => {
                self.inferred |=
                    record.look == Look::Unknown || record.ending.in_vain() && record.outcome.is_none();
                self.extend(record.turn, record.step);
            }
            Progress::New if read_before(record, before.clone()) => self.extend(record.turn, record.step),
            Progress::New | Progress::Failed | Progress::Moved => self.something_new(),
            // A wait, a note or a receipt. What isn't known is no evidence.
            Progress::None => {}
        }
    }

    /// Adds a reply without a call, by the hash of its words.
    pub(super) fn add_reply(&mut self, words: u32, step: u32) {
        if self.says_again(words) {
            if self.replies == 0 {
                self.replies_since = step;
            }
            self.replies += 1;
        }
    }

    /// Adds a note, by the hash of its words.
    fn add_note(&mut self, words: u32, step: u32) {
        if self.says_again(words) {
            if self.notes == 0 {
                self.notes_since = step;
            }
            self.notes += 1;
        }
    }

    /// Returns whether something was said before, and remembers it.
    fn says_again(&mut self, words: u32) -> bool {
        let again = self.said.iter().any(|said| *said == words);
        if !again {
            self.said.push(words, REPLIES);
        }
        again
    }

    /// Returns the step of the first call, reply or note.
    pub(crate) fn began(&self) -> u32 {
        let parts =
            [(self.calls, self.since), (self.replies, self.replies_since), (self.notes, self.notes_since)];
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, since)| since).min().unwrap_or(0)
    }

    /// Adds what a request to the model cost, in dollars.
    fn charge(&mut self, usd: f64) {
        if self.begun() && !self.waiting {
            self.usd = (self.usd + usd).clamp(0.0, f64::MAX);
        }
    }

    fn begun(&self) -> bool {
        self.calls > 0 || self.replies > 0 || self.notes > 0
    }

    fn begin(&mut self, step: u32) {
        if self.calls == 0 {
            self.since = step;
        }
    }

    fn extend(&mut self, turn: u32, step: u32) {
        self.begin(step);
        self.calls += 1;
        self.quiet += 1;
        self.turns += u32::from(self.turn != Some(turn));
        self.turn = Some(turn);
    }

    fn something_new(&mut self) {
        if self.quiet + 1 < RARE {
            self.end();
        } else {
            self.quiet = 0;
        }
    }
}

impl History {
    /// Returns the current stretch without progress.
    #[must_use]
    pub fn stretch(&self) -> &Stretch {
        &self.stretch
    }

    /// Notes that the agent's context was cut. It may read again what it had read.
    pub(crate) fn compacted(&mut self) {
        self.stretch.start_over();
    }

    /// Adds what a request to the model cost, in dollars.
    pub(crate) fn push_cost(&mut self, usage: &Usage) {
        self.stretch.charge(usage.dollars().unwrap_or(0.0));
        self.charge_wait(usage);
    }

    /// Adds a note that the agent makes with a call, such as a thought or a list. It is a reply that nobody gets. Numbers that
    /// stand by themselves count something and don't make it a new one.
    pub(crate) fn push_note(&mut self, args: &Value, step: u64) {
        let words = half(short_hash(without_numbers(args).to_string().as_bytes()));
        self.stretch.add_note(words, u32::try_from(step).unwrap_or(u32::MAX));
    }

    /// Adds the words of a turn without a call, at this step.
    pub(crate) fn push_reply(&mut self, text: &str, step: u64) {
        let (words, empty) = request_words(text);
        if !empty {
            self.stretch.add_reply(words, u32::try_from(step).unwrap_or(u32::MAX));
        }
    }
}

fn without_numbers(args: &Value) -> Value {
    match args {
        Value::Number(_) => Value::Null,
        Value::Array(items) => items.iter().map(without_numbers).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), without_numbers(value))).collect()
        }
        other => other.clone(),
    }
}

/// Returns whether a read or a search returned what an earlier call of the same tool had returned, or again nothing.
fn read_before<'a>(record: &CallRecord, mut before: impl Iterator<Item = &'a CallRecord>) -> bool {
    let reads = record.effect.reads() && !record.tests;
    let known = record.length >= SAYS_SOMETHING || record.ending == Ending::Empty;
    reads && known && before.any(|r| r.tool == record.tool && r.came_back_as(record) && r.ending.tells())
}
