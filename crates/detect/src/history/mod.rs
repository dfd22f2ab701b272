use std::borrow::Cow;

use deloop_types::{Call, Millis, Origin, Outcome, ShortCall, ToolResult, UserText};
use serde::{Deserialize, Serialize};

use crate::fingerprint::{SCHEME, half, short_hash};
use crate::progress::progress;
use crate::reading::{Sketch, Vocabulary, read_result};
use crate::{Ending, Progress};

mod about;
mod ledger;
mod record;
mod ring;
mod swarm;

use about::About;
pub use ledger::Ledger;
pub use record::CallRecord;
pub use ring::Ring;
pub use swarm::Swarm;

/// How many calls a history holds: enough for three laps of a cycle of fourteen.
pub const WINDOW: usize = 44;
/// Of a turn that is over, so many calls are kept, the first ones: one turn must not push out all others.
const OF_A_TURN: usize = 8;
/// So many calls more are held while a turn has more than that.
const MORE: usize = 120;
/// Of so many calls it is remembered what they were about.
const KEPT: usize = 11;
/// By so many characters of it a refusal is known again.
const REFUSAL: usize = 80;
/// How many tools are remembered by name.
const TOOLS: usize = 24;
/// How many characters of a tool's name are kept.
const NAME: usize = 64;

/// What is remembered of one agent of one session: rings and tallies, a few KiB, however long it runs.
///
/// Only the fold changes it; a detector reads it through a [`Moment`](crate::Moment).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// How fingerprints were made; histories made otherwise cannot be compared.
    scheme: Cow<'static, str>,
    /// Turns so far.
    turns: u64,
    /// Calls so far.
    calls: u64,
    /// Changes so far.
    changes: u32,
    /// Requests so far; the words of the last one, hashed, and how often they came in a row.
    requests: u16,
    request: (u32, u8),
    /// When the first call was made, in milliseconds.
    #[serde(default)]
    origin: Option<Millis>,
    /// The id of the current turn, hashed; 0 without one.
    #[serde(default)]
    turn_id: u32,
    /// An id came back with another call.
    #[serde(default)]
    ids_repeat: bool,
    /// The last calls.
    recent: Ring<CallRecord>,
    /// What some of them were about.
    kept: Ring<Kept>,
    /// The beginning of the last refusal.
    #[serde(default)]
    refusal: Box<str>,
    /// The tools used, most recently first seen last.
    tools: Vec<ToolTally>,
}

/// What a recent call was about: kept for as long as it may be part of a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    ordinal: u32,
    words: Sketch,
    about: About,
}

/// One tool of a session and how it fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTally {
    /// Its name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// How often that failed.
    pub failures: u64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            scheme: Cow::Borrowed(SCHEME),
            turns: 0,
            calls: 0,
            changes: 0,
            requests: 0,
            request: (0, 0),
            origin: None,
            turn_id: 0,
            ids_repeat: false,
            recent: Ring::default(),
            kept: Ring::default(),
            refusal: Box::default(),
            tools: Vec::new(),
        }
    }
}

impl History {
    /// Whether its fingerprints were made as this release makes them.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.scheme == SCHEME
    }

    /// Turns so far, the current one included.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Calls so far, the current one included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// How often something was changed so far: by a call that writes, that went well and that was not made before.
    /// An edit that is made again, or undone and made again, is no change.
    #[must_use]
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// The last calls, newest last.
    #[must_use]
    pub fn recent(&self) -> &Ring<CallRecord> {
        &self.recent
    }

    /// The tools of this session, with how often each was used.
    #[must_use]
    pub fn tools(&self) -> &[ToolTally] {
        &self.tools
    }

    /// The name of a record's tool.
    #[must_use]
    pub fn tool(&self, record: &CallRecord) -> &str {
        self.tools.get(usize::from(record.tool)).map_or("", |t| t.name.as_str())
    }

    /// How many requests the agent has had: messages in new words, from a person or a program.
    #[must_use]
    pub fn requests(&self) -> u16 {
        self.requests
    }

    /// Whether a message asks for something new. The same words again from a program do not, and a person who writes
    /// them for the third time in a row is a program. Numbers in them may differ: "continue (3 of 10)".
    #[must_use]
    pub fn is_request(&self, user: &UserText) -> bool {
        let (words, empty) = request_words(&user.text);
        let patience = match user.origin {
            Origin::Human => 2,
            Origin::Harness => 1,
        };
        !empty && (words != self.request.0 || self.request.1 < patience)
    }

    pub(crate) fn push_request(&mut self, user: &UserText) {
        if self.is_request(user) {
            self.requests = self.requests.wrapping_add(1);
        }
        let (words, empty) = request_words(&user.text);
        if !empty {
            let times = if words == self.request.0 { self.request.1.saturating_add(1) } else { 1 };
            self.request = (words, times);
        }
    }

    /// Returns whether a call was seen before under its id: a resumed run repeats the calls before it was interrupted.
    ///
    /// Some agents number the calls of each turn anew. Where an id comes back with another call, or an id of a turn
    /// that is `over` comes back with the next one, ids name nothing and the call is a new one.
    #[must_use]
    pub fn is_known(&self, call: &Call, signature: u64, over: Option<u32>) -> bool {
        self.with_id_of(call)
            .is_some_and(|earlier| earlier.signature == signature && Some(earlier.turn) != over)
    }

    /// Returns the ordinal of the latest turn with calls, if all of them were answered.
    #[must_use]
    pub fn turn_over(&self) -> Option<u32> {
        let turn = self.recent.back(0)?.turn;
        let mut of_turn = self.recent.iter().rev().take_while(|r| r.turn == turn);
        of_turn.all(CallRecord::answered).then_some(turn)
    }

    /// The latest call with the id of this one.
    fn with_id_of(&self, call: &Call) -> Option<&CallRecord> {
        let id = call.id.as_ref().filter(|_| !self.ids_repeat)?;
        let id = half(short_hash(id.as_bytes()));
        self.recent.iter().rev().find(|r| r.id == id)
    }

    /// Begins a turn, unless it is the current one, which more calls belong to: `false` then.
    pub(crate) fn push_turn(&mut self, id: Option<&str>) -> bool {
        let id = id.map_or(0, |id| half(short_hash(id.as_bytes())).max(1));
        if id != 0 && id == self.turn_id {
            return false;
        }
        self.turn_id = id;
        let last = u32::try_from(self.turns.saturating_sub(1)).unwrap_or(u32::MAX);
        if self.recent.iter().rev().take_while(|r| r.turn == last).nth(OF_A_TURN).is_some() {
            let mut kept = 0;
            self.recent.retain(|r| {
                kept += usize::from(r.turn == last);
                r.turn != last || kept <= OF_A_TURN
            });
        }
        self.turns += 1;
        true
    }

    pub(crate) fn push_call(
        &mut self,
        call: &Call,
        words: Sketch,
        ts: Option<Millis>,
        mut record: CallRecord,
    ) -> CallRecord {
        let same_id = self.with_id_of(call).is_some_and(|earlier| earlier.signature != record.signature);
        self.ids_repeat |= same_id;
        record.tool = self.tally(&call.tool);
        record.ordinal = u32::try_from(self.calls).unwrap_or(u32::MAX);
        record.changes = self.changes;
        record.requests = self.requests;
        record.turn = u32::try_from(self.turns.saturating_sub(1)).unwrap_or(u32::MAX);
        self.origin = self.origin.or(ts);
        (record.at, record.took) = (self.tenths(ts).unwrap_or(u32::MAX), u16::MAX);
        self.calls += 1;
        // What a turn has more than its share of makes room for itself until the turn is over.
        let of_turn = self.recent.iter().rev().take_while(|r| r.turn == record.turn).count();
        self.recent.push(record, WINDOW + of_turn.saturating_sub(OF_A_TURN).min(MORE));
        let about = About::of(call);
        self.kept.push(Kept { ordinal: record.ordinal, words, about }, KEPT);
        record
    }

    /// Tenths of a second since the first call.
    fn tenths(&self, ts: Option<Millis>) -> Option<u32> {
        u32::try_from(ts?.since(self.origin?) / 100).ok()
    }

    /// The words of a call's arguments, while they are remembered.
    #[must_use]
    pub fn words(&self, record: &CallRecord) -> Option<&Sketch> {
        self.kept.iter().rev().find(|k| k.ordinal == record.ordinal).map(|k| &k.words)
    }

    /// A call in its short form; just the tool when nothing more is remembered.
    #[must_use]
    pub fn short(&self, record: &CallRecord) -> ShortCall {
        let kept = self.kept.iter().rev().find(|k| k.ordinal == record.ordinal);
        let about = kept.map_or_else(String::new, |k| k.about.short());
        ShortCall { tool: crate::quote(self.tool(record), 40), about }
    }

    /// The calls that came back, newest first, since the agent was last asked for something new.
    pub fn of_this_request(&self) -> impl Iterator<Item = &CallRecord> {
        let requests = self.requests;
        self.recent.iter().rev().take_while(move |r| r.requests == requests).filter(|r| r.ending.tells())
    }

    /// Notes that deloop refused a call, and with which words: a result in these words says nothing about the call.
    /// `id` is the call's id, or `#N` for the N-th call of the last turn.
    pub fn refuse(&mut self, id: &str, message: &str) {
        let hash = half(short_hash(id.as_bytes()));
        let last = self.recent.back(0).map_or(0, |r| r.turn);
        let nth = id.strip_prefix('#').and_then(|n| n.parse::<usize>().ok());
        let named = self.recent.iter().rposition(|r| r.id == hash && !r.answered());
        let first = self.recent.iter().position(|r| r.turn == last);
        let unnamed = || nth.zip(first).map(|(n, first)| n.saturating_add(first));
        if let Some(record) = named.or_else(unnamed).and_then(|at| self.recent.get_mut(at)) {
            record.refused = true;
            self.refusal = message.chars().take(REFUSAL).collect();
        }
    }

    /// Whether a result is deloop's own refusal of a call: in the words that were given, or without any. A transcript
    /// in which the call was made all the same has another result.
    fn is_refusal(&self, record: &CallRecord, result: &ToolResult) -> bool {
        record.refused
            && match result.output.as_str() {
                Some(text) if !text.is_empty() => {
                    !self.refusal.is_empty() && text.contains(self.refusal.as_ref())
                }
                _ => result.outcome == Some(Outcome::Denied),
            }
    }

    fn tally(&mut self, tool: &str) -> u8 {
        let tool = tool.char_indices().nth(NAME).map_or(tool, |(end, _)| &tool[..end]);
        let known = self.tools.iter().position(|t| t.name == tool);
        let index = known.unwrap_or_else(|| {
            let fresh = ToolTally { name: tool.to_owned(), calls: 0, failures: 0 };
            if self.tools.len() < TOOLS {
                self.tools.push(fresh);
                self.tools.len() - 1
            } else {
                self.replace_rarest(fresh)
            }
        });
        self.tools[index].calls += 1;
        u8::try_from(index).unwrap_or(u8::MAX)
    }

    fn replace_rarest(&mut self, fresh: ToolTally) -> usize {
        let rarest = (0..self.tools.len()).min_by_key(|i| self.tools[*i].calls).unwrap_or(0);
        self.tools[rarest] = fresh;
        rarest
    }

    /// The call that a result belongs to: the latest with its id; without an id the oldest
    /// unanswered one of the latest turn that has any.
    pub(crate) fn answer(
        &mut self,
        id: Option<u32>,
        ts: Option<Millis>,
        result: &ToolResult,
        vocabulary: &Vocabulary,
    ) -> Option<CallRecord> {
        let at = match id {
            Some(id) => self.recent.iter().rposition(|r| r.id == id),
            None => {
                let turn = self.recent.iter().rev().find(|r| !r.answered())?.turn;
                self.recent.iter().position(|r| !r.answered() && r.turn == turn)
            }
        }?;
        let mut record = self.recent.get(at).copied()?;
        if record.answered() && record.outcome != Some(Outcome::Running) {
            return None;
        }
        let reading = read_result(&record, result, vocabulary);
        let outcome = result.ended();
        record.outcome = outcome;
        record.ending = if self.is_refusal(&record, result) { Ending::CalledOff } else { reading.ending };
        record.output = reading.output;
        record.length = u16::try_from(reading.length).unwrap_or(u16::MAX);
        record.failure = reading.failure;
        let took = self.tenths(ts).and_then(|now| now.checked_sub(record.at));
        record.took = took.map_or(u16::MAX, |t| u16::try_from(t).unwrap_or(u16::MAX - 1));
        record.progress = progress(&record, self.recent.iter().take(at).rev());
        if record.progress == Progress::Changed {
            self.changes = self.changes.saturating_add(1);
        }
        if outcome.is_some_and(Outcome::failed)
            && let Some(tally) = self.tools.get_mut(usize::from(record.tool))
        {
            tally.failures += 1;
        }
        *self.recent.get_mut(at)? = record;
        let shown =
            !matches!(record.progress, Progress::New | Progress::None) || record.ending == Ending::Empty;
        self.kept.retain(|k| shown || k.ordinal != record.ordinal);
        if let Some(kept) = self.kept.iter_mut().rev().find(|k| k.ordinal == record.ordinal) {
            kept.about.settle();
        }
        Some(record)
    }
}

/// The words of a message without numbers, hashed, and whether there are none.
fn request_words(text: &str) -> (u32, bool) {
    let words: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_digit() && !b.is_ascii_whitespace()).collect();
    (half(short_hash(&words)), words.is_empty())
}
