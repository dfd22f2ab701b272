use std::borrow::Cow;

use deloop_types::{Call, Millis, Outcome, ShortCall, ToolResult};
use serde::{Deserialize, Serialize};

use crate::fingerprint::{SCHEME, half, short_hash};
use crate::progress::progress;
use crate::reading::{Sketch, Vocabulary, output_text, read_result, reported_state};
use crate::waiting::{Background, look};
use crate::{Ending, Look, Progress};

mod about;
mod active_time;
mod failure_note;
mod gauges;
mod known_failures;
mod ledger;
mod packed;
mod record;
mod requests;
mod ring;
mod spawn_tree;
mod spawned_tasks;
mod stretch;
mod swarm;
mod swarm_parts;
mod swarm_state;
mod tool_tally;
mod wait;
mod whole_session;

use about::About;
pub use active_time::{ActiveTime, LONGEST_PAUSE};
pub use failure_note::FailureNote;
pub(crate) use failure_note::{is_own_failure, last_failure, same_here, times_here};
use gauges::Gauges;
pub use known_failures::{FailureCount, FailureView, FailureWorker, KnownFailure, KnownFailures};
pub use ledger::{Ledger, limited_tokens};
pub use record::CallRecord;
pub(crate) use requests::request_words;
pub use ring::Ring;
pub use spawn_tree::{Nesting, SpawnTotals, SpawnTree, SpawnView};
pub use stretch::Stretch;
pub use swarm::Swarm;
pub use swarm_parts::SwarmParts;
pub use swarm_state::{SwarmCall, SwarmFingerprint, SwarmState, SwarmWorker};
pub use tool_tally::ToolTally;
pub use wait::{Wait, WaitCost};
pub use whole_session::WholeSession;

/// Number of calls in a history: enough for three laps of a cycle of fourteen.
pub const WINDOW: usize = 44;
/// Number of calls kept of a finished turn, so that one turn can't push out all others: its first ones, and its last one,
/// after which the pause before the next turn begins.
const OF_A_TURN: usize = 8;
/// Number of additional calls held while a turn has more than that.
const MORE: usize = 120;
/// Number of calls whose descriptions are kept.
const KEPT: usize = 11;
/// Number of characters by which a refusal is recognized.
const REFUSAL: usize = 80;
/// The history of one agent of one session: ring buffers and tallies, a few KiB, however long it runs.
///
/// Only the fold changes it. Detectors read it through a [`Moment`](crate::Moment).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The version of the fingerprints. Histories with different versions can't be compared.
    scheme: Cow<'static, str>,
    /// Number of turns so far.
    turns: u64,
    /// Number of calls so far.
    calls: u64,
    /// Number of changes so far.
    changes: u32,
    /// Number of requests so far; the hashed words of the last one, and how often they came in a row.
    requests: u16,
    request: (u32, u8),
    /// Time of the first call, in milliseconds.
    #[serde(default)]
    origin: Option<Millis>,
    /// Hash of the current turn's id; 0 without one.
    #[serde(default)]
    turn_id: u32,
    /// Whether an id came back with another call.
    #[serde(default)]
    ids_repeat: bool,
    /// The last calls.
    recent: Ring<CallRecord>,
    /// Descriptions of some of them.
    kept: Ring<Kept>,
    /// The beginning of the last refusal.
    #[serde(default)]
    refusal: Box<str>,
    /// The current stretch without progress.
    #[serde(default, skip_serializing_if = "Stretch::is_empty")]
    stretch: Stretch,
    /// What waiting has cost.
    #[serde(default, skip_serializing_if = "Wait::is_empty")]
    wait: Wait,
    /// The numbers in the outcomes of calls that failed or came again.
    #[serde(default, skip_serializing_if = "Gauges::is_empty")]
    gauges: Gauges,
    /// What calls left running.
    #[serde(default, skip_serializing_if = "Background::is_none")]
    background: Background,
    /// Number of calls before a person last wrote.
    #[serde(default)]
    spoke: u64,
    /// When the last message to the agent came, or its last result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    active: Option<Millis>,
    /// The tools used, in the order of first use.
    tools: Vec<ToolTally>,
}

/// The description of a recent call, kept while the call may be part of a pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Kept {
    ordinal: u32,
    words: Sketch,
    about: About,
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
            stretch: Stretch::default(),
            wait: Wait::default(),
            gauges: Gauges::default(),
            background: Background::None,
            spoke: 0,
            active: None,
            tools: Vec::new(),
        }
    }
}

impl History {
    /// Returns whether this release made its fingerprints.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.scheme == SCHEME
    }

    /// Returns the number of turns so far, including the current one.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the number of calls so far, including the current one.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the number of changes so far. A change is a successful call that writes and wasn't made before.
    /// Repeating an edit, or undoing and redoing it, isn't a change.
    #[must_use]
    pub fn changes(&self) -> u32 {
        self.changes
    }

    /// Returns the last calls, newest last.
    #[must_use]
    pub fn recent(&self) -> &Ring<CallRecord> {
        &self.recent
    }

    /// Returns the tools of this session, with the number of calls of each.
    #[must_use]
    pub fn tools(&self) -> &[ToolTally] {
        &self.tools
    }

    /// Returns the name of a record's tool.
    #[must_use]
    pub fn tool(&self, record: &CallRecord) -> &str {
        self.tools.get(usize::from(record.tool)).map_or("", |t| t.name.as_str())
    }

    /// Returns whether a call with this id was seen before: a resumed run repeats the calls before its interruption.
    ///
    /// Some agents restart call ids in each turn. If an id comes back with another call, or an id of a turn that is
    /// `over` comes back in the next turn, ids identify nothing and the call is a new one.
    #[must_use]
    pub fn is_known(&self, call: &Call, signature: u64, over: Option<u32>) -> bool {
        self.with_id_of(call)
            .is_some_and(|earlier| earlier.exact == exact(signature) && Some(earlier.turn) != over)
    }

    /// Returns the index of the latest turn with calls, if all of them have results.
    #[must_use]
    pub fn turn_over(&self) -> Option<u32> {
        let turn = self.recent.back(0)?.turn;
        let mut of_turn = self.recent.iter().rev().take_while(|r| r.turn == turn);
        of_turn.all(CallRecord::answered).then_some(turn)
    }

    /// Returns the latest call with the same id.
    fn with_id_of(&self, call: &Call) -> Option<&CallRecord> {
        let id = call.id.as_ref().filter(|_| !self.ids_repeat)?;
        let id = half(short_hash(id.as_bytes()));
        self.recent.iter().rev().find(|r| r.id == id)
    }

    /// Begins a turn. Returns `false` if it is the current turn, to which more calls belong.
    pub(crate) fn push_turn(&mut self, id: Option<&str>) -> bool {
        let id = id.map_or(0, |id| half(short_hash(id.as_bytes())).max(1));
        if id != 0 && id == self.turn_id {
            return false;
        }
        self.turn_id = id;
        let last = u32::try_from(self.turns.saturating_sub(1)).unwrap_or(u32::MAX);
        let of_turn = self.recent.iter().rev().take_while(|r| r.turn == last).count();
        if of_turn > OF_A_TURN {
            let mut seen = 0;
            self.recent.retain(|r| {
                seen += usize::from(r.turn == last);
                r.turn != last || seen < OF_A_TURN || seen == of_turn
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
        let same_id = self.with_id_of(call).is_some_and(|earlier| earlier.exact != record.exact);
        self.ids_repeat |= same_id;
        record.tool = tool_tally::count(&mut self.tools, &call.tool);
        record.ordinal = u32::try_from(self.calls).unwrap_or(u32::MAX);
        record.changes = self.changes;
        record.requests = self.requests.to_le_bytes()[0];
        record.turn = u32::try_from(self.turns.saturating_sub(1)).unwrap_or(u32::MAX);
        self.origin = self.origin.or(ts);
        (record.at, record.took) = (self.tenths(ts).unwrap_or(u32::MAX), u16::MAX);
        self.calls += 1;
        // Calls beyond a turn's share get extra room until the turn is over.
        let of_turn = self.recent.iter().rev().take_while(|r| r.turn == record.turn).count();
        self.recent.push(record, WINDOW + of_turn.saturating_sub(OF_A_TURN).min(MORE));
        let about = About::of(call);
        self.kept.push(Kept { ordinal: record.ordinal, words, about }, KEPT);
        record
    }

    /// Notes that a call leaves something running.
    pub(crate) fn push_background(&mut self, call: &CallRecord) {
        self.background = Background::Watched(call.ordinal);
    }

    /// Returns tenths of a second since the first call.
    fn tenths(&self, ts: Option<Millis>) -> Option<u32> {
        u32::try_from(ts?.since(self.origin?) / 100).ok()
    }

    /// Returns the words of a call's arguments, while they are stored.
    #[must_use]
    pub fn words(&self, record: &CallRecord) -> Option<&Sketch> {
        self.kept.iter().rev().find(|k| k.ordinal == record.ordinal).map(|k| &k.words)
    }

    /// Returns the short form of a call, or only its tool when nothing more is stored.
    #[must_use]
    pub fn short(&self, record: &CallRecord) -> ShortCall {
        let kept = self.kept.iter().rev().find(|k| k.ordinal == record.ordinal);
        let about = kept.map_or_else(String::new, |k| k.about.short());
        ShortCall { tool: crate::quote(self.tool(record), 40), about }
    }

    /// Returns the calls with results since the last new request, newest first.
    pub fn of_this_request(&self) -> impl Iterator<Item = &CallRecord> {
        let requests = self.requests.to_le_bytes()[0];
        self.recent.iter().rev().take_while(move |r| r.requests == requests).filter(|r| r.ending.tells())
    }

    /// Records that deloop refused a call, and the text of the refusal. A result with this text isn't evidence.
    /// `id` is the call's id, or `#N` for the Nth call of the last turn.
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

    /// Returns whether a result is deloop's own refusal of a call: it has the text of the refusal, or no text and the
    /// outcome `denied`. If the call was made anyway, a transcript contains another result.
    fn is_refusal(&self, record: &CallRecord, result: &ToolResult) -> bool {
        record.refused
            && match result.output.as_str() {
                Some(text) if !text.is_empty() => {
                    !self.refusal.is_empty() && text.contains(self.refusal.as_ref())
                }
                _ => result.outcome == Some(Outcome::Denied),
            }
    }

    /// Returns the call that a result belongs to: the latest with its id, or without an id the oldest
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
        let text = output_text(result);
        let reading = read_result(&record, result, &text, vocabulary);
        let outcome = result.ended();
        record.outcome = outcome;
        record.ending = if self.is_refusal(&record, result) { Ending::CalledOff } else { reading.ending };
        record.output = reading.output;
        record.length = u16::try_from(reading.length).unwrap_or(u16::MAX);
        record.failure = reading.failure;
        let took = self.tenths(ts).and_then(|now| now.checked_sub(record.at));
        record.took = took.map_or(u16::MAX, |t| u16::try_from(t).unwrap_or(u16::MAX - 1));
        let before = || self.recent.iter().take(at).rev();
        let reported = |words| reported_state(&text, words, vocabulary);
        record.look = look(&record, &before(), self.background, reported);
        if outcome == Some(Outcome::Running) {
            self.background = Background::Watched(record.ordinal);
        }
        let last = before().find(|r| r.signature == record.signature && r.answered());
        let failed = record.ending.in_vain();
        let again = last.is_some();
        let moved = (failed || again) && self.gauges.enter(record.signature, &reading.masked);
        record.shape = if again { shape(&reading.masked) } else { 0 };
        let mut news = moved || last.is_some_and(|last| last.output != record.output);
        if record.look == Look::Waiting {
            record.ending = Ending::Running;
            // Each look at the same thing may have an id of its own.
            let unseen = || !before().any(|r| r.output == record.output);
            news |= last.is_none() && self.wait.looks > 0 && record.length > 0 && unseen();
        }
        record.progress = progress(&record, moved, before());
        self.active = ts.or(self.active);
        if record.progress == Progress::Changed {
            self.changes = self.changes.saturating_add(1);
            self.background = self.background.after_change(record.ordinal);
        }
        if outcome.is_some_and(Outcome::failed)
            && let Some(tally) = self.tools.get_mut(usize::from(record.tool))
        {
            tally.failures += 1;
        }
        *self.recent.get_mut(at)? = record;
        self.push_look(&record, news);
        self.stretch.add_call(&record, &self.recent.iter().take(at).rev());
        let shown =
            !matches!(record.progress, Progress::New | Progress::None) || record.ending == Ending::Empty;
        self.kept.retain(|k| shown || k.ordinal != record.ordinal);
        if let Some(kept) = self.kept.iter_mut().rev().find(|k| k.ordinal == record.ordinal) {
            kept.about.settle();
        }
        Some(record)
    }
}

/// Shortens the hash of a tool and all of its arguments: enough to compare two calls with the same id.
#[expect(clippy::cast_possible_truncation, reason = "enough to compare two calls")]
pub(crate) fn exact(signature: u64) -> u16 {
    signature as u16
}

/// Returns the hash of an output without its numbers, never 0.
fn shape(masked: &[u8]) -> u8 {
    let words: Vec<u8> = masked.iter().copied().filter(|b| !b.is_ascii_digit() && *b != b'~').collect();
    short_hash(&words).to_le_bytes()[0].max(1)
}
