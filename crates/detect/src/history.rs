use std::borrow::Cow;

use deloop_types::{Millis, Outcome, Usage};
use serde::{Deserialize, Serialize};

use crate::fingerprint::SCHEME;
use crate::{Fingerprint, Ring, ToolKind};

/// How many calls a history holds: enough for three laps of a cycle of thirteen.
pub const WINDOW: usize = 40;
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
    /// The last calls.
    recent: Ring<CallRecord>,
    /// The tools used, most recently first seen last.
    tools: Vec<ToolTally>,
}

/// What is remembered of one call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its ordinal in the history, from 0.
    pub ordinal: u64,
    /// The step it came with.
    pub step: u64,
    /// The ordinal of its turn, from 0.
    pub turn: u32,
    /// Its id, hashed; 0 without one.
    pub id: u32,
    /// The tool and its arguments.
    pub signature: Fingerprint,
    /// Which of the history's tools; see [`History::tool`].
    pub tool: u8,
    /// What kind of tool that is.
    pub kind: ToolKind,
    /// Whether it runs tests.
    pub tests: bool,
    /// Whether it is a shell command that works on a file, where a tool of its own would do better.
    pub file_operation: bool,
    /// Whether it waits for something that runs elsewhere.
    pub waits: bool,
    /// Whether it looks for something.
    pub searches: bool,
    /// Whether it only moves about, such as `cd`.
    pub moves: bool,
    /// Whether it may change something, if it goes well.
    pub writes: bool,
    /// What else is known of it.
    pub nature: Nature,
    /// How long what came back is, without its volatile parts.
    pub size: Size,
    /// The program a shell command runs, or the tool, hashed.
    pub program: u32,
    /// How many changes were made before it; see [`History::changes`].
    pub changes: u32,
    /// How it ended; `None` while it has no result, or when the result does not say.
    pub outcome: Option<Outcome>,
    /// Whether a result came.
    pub answered: bool,
    /// What came back, with its volatile parts masked, hashed.
    pub output: u64,
    /// The kind of failure or emptiness it came back with, hashed; 0 when it brought something.
    pub fruitless: u32,
}

/// What is known of a call, beside what kind of tool it uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nature {
    /// Nothing in particular.
    #[default]
    Plain,
    /// It measures: its numbers are what it is for.
    Measures,
    /// It goes from one state to another and back: that is a change each time.
    Switches,
}

/// How much came back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Size {
    /// A word or two, as many calls come back with.
    #[default]
    Short,
    /// A sentence, from 56 bytes on.
    Sentence,
    /// More than that, from 200 bytes on.
    Long,
}

impl Size {
    pub(crate) fn of(bytes: usize) -> Self {
        match bytes {
            200.. => Self::Long,
            56.. => Self::Sentence,
            _ => Self::Short,
        }
    }
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

/// Tokens, dollars, steps and time of a whole session, its subagents included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Steps so far, the current one included.
    pub steps: u64,
    /// Tokens read and written so far.
    pub tokens: u64,
    /// Dollars so far, as far as the steps say.
    pub usd: f64,
    /// The earliest time seen.
    pub first: Option<Millis>,
    /// The latest time seen.
    pub last: Option<Millis>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            scheme: Cow::Borrowed(SCHEME),
            turns: 0,
            calls: 0,
            changes: 0,
            recent: Ring::default(),
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

    pub(crate) fn push_turn(&mut self) {
        self.turns += 1;
    }

    pub(crate) fn push_call(&mut self, tool: &str, mut record: CallRecord) -> CallRecord {
        record.tool = self.tally(tool);
        record.ordinal = self.calls;
        record.changes = self.changes;
        record.turn = u32::try_from(self.turns.saturating_sub(1)).unwrap_or(u32::MAX);
        self.calls += 1;
        self.recent.push(record, WINDOW);
        record
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
        came: impl FnOnce(&CallRecord) -> Came,
    ) -> Option<CallRecord> {
        let at = match id {
            Some(id) => self.recent.iter().rposition(|r| r.id == id),
            None => {
                let turn = self.recent.iter().rev().find(|r| !r.answered)?.turn;
                self.recent.iter().position(|r| !r.answered && r.turn == turn)
            }
        }?;
        let before = self.recent.iter().take(at);
        let record = self.recent.get(at).copied()?;
        if record.answered && record.outcome != Some(Outcome::Running) {
            return None;
        }
        let came = came(&record);
        let failed = came.outcome.is_some_and(Outcome::failed);
        let refused = matches!(came.outcome, Some(Outcome::Denied | Outcome::Cancelled));
        let again = before.into_iter().any(|r| r.signature == record.signature);
        let done = record.writes && !failed && !refused && came.fruitless == 0;
        if done && (record.nature == Nature::Switches || !again) {
            self.changes = self.changes.saturating_add(1);
        }
        let record = self.recent.get_mut(at)?;
        record.answered = true;
        record.outcome = came.outcome;
        record.output = came.output;
        record.size = came.size;
        record.fruitless = came.fruitless;
        let record = *record;
        if failed && let Some(tally) = self.tools.get_mut(usize::from(record.tool)) {
            tally.failures += 1;
        }
        Some(record)
    }
}

/// What a call came back with.
pub(crate) struct Came {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) output: u64,
    pub(crate) size: Size,
    pub(crate) fruitless: u32,
}

impl Ledger {
    /// Enters a step's time. A clock that goes backwards moves the beginning, never shortens what was.
    pub fn tick(&mut self, ts: Option<Millis>) {
        self.steps += 1;
        if let Some(ts) = ts {
            self.first = Some(self.first.map_or(ts, |first| first.min(ts)));
            self.last = Some(self.last.map_or(ts, |last| last.max(ts)));
        }
    }

    /// Enters what a request to the model used. Sums stop at the largest number, so that a checkpoint can hold them.
    pub fn charge(&mut self, usage: &Usage) {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        self.tokens = self.tokens.saturating_add(tokens);
        self.usd = (self.usd + usage.cost_usd.unwrap_or(0.0)).clamp(f64::MIN, f64::MAX);
    }

    /// Minutes between the earliest and the latest step.
    #[must_use]
    pub fn minutes(&self) -> f64 {
        match (self.first, self.last) {
            #[expect(clippy::cast_precision_loss, reason = "minutes need no more")]
            (Some(first), Some(last)) => last.since(first) as f64 / 60_000.0,
            _ => 0.0,
        }
    }
}
