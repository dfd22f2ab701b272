use deloop_types::{Evidence, Finding, Repeats, ShortCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fingerprint::half;
use crate::reading::{Change, Edit, Effect, edits};
use crate::{Detector, Ending, Happening, Moment, Ring, quote, short_hash};

/// An edit undone and done again.
pub(crate) struct EditRevert;

/// How [`EditRevert`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From how many times the same edit is undone it is a finding.
    at: u64,
    /// Within how many calls.
    within: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { at: 2, within: 20 }
    }
}

/// How many changes are remembered.
const CHANGES: usize = 16;
/// How many calls may be on their way at once.
const OPEN: usize = 8;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// What calls that have not come back ask for: the call's ordinal, and the change.
    open: Ring<(u64, Asked)>,
    /// What was changed.
    made: Ring<Made>,
}

/// A change that is asked for; `old` and `new` are 0 where they are not said.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Asked {
    file: u32,
    old: u32,
    new: u32,
    kind: Kind,
    name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    Replace,
    Whole,
    Undo,
    Restore,
}

/// A change that was made.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Made {
    file: u32,
    old: u32,
    new: u32,
    /// How often this piece has gone to and fro.
    turned: u32,
    step: u64,
    /// The call it was made by.
    call: u64,
    /// Whether it was taken back.
    undone: bool,
}

impl Detector for EditRevert {
    type Params = Params;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        "edit-revert"
    }

    fn page(&self) -> &'static str {
        include_str!("edit-revert.md")
    }

    fn look(&self, params: &Params, moment: &Moment<'_>, memory: &mut Memory) -> Option<Finding> {
        match &moment.event {
            Happening::Call(call) if call.record.effect >= Effect::Changes => {
                for edit in edits(call.call, call.record.kind) {
                    memory.open.push((call.record.ordinal.into(), Asked::from(&edit)), OPEN);
                }
                None
            }
            Happening::Result(result) => {
                let record = &result.record;
                let asked = memory.asked(record.ordinal.into());
                if !matches!(record.ending, Ending::Brought | Ending::Empty) {
                    return None;
                }
                let turned = asked
                    .iter()
                    .filter_map(|a| Some((a, memory.make(a, (record.step.into(), record.ordinal.into()))?)))
                    .max_by_key(|t| t.1.turned);
                let (asked, made) = turned?;
                let first = memory.first(made);
                let count = u64::from(made.turned.div_ceil(2));
                // Told when it is undone, not when it is done again.
                let quick = made.call.saturating_sub(first.call) <= params.within;
                (count >= params.at && made.turned % 2 == 1 && quick).then(|| Finding {
                    detector: self.name().to_owned(),
                    count,
                    period: 2,
                    score: 1.0,
                    since: first.step,
                    tool: Some(moment.history.tool(record).to_owned()),
                    repeats: Repeats::Revert,
                    calls: vec![ShortCall {
                        tool: quote(moment.history.tool(record), 40),
                        about: asked.name.clone(),
                    }],
                    evidence: Evidence {
                        pattern: u64::from(made.file ^ made.old ^ made.new),
                        at: record.ordinal.into(),
                        ..Evidence::default()
                    },
                    ..Finding::default()
                })
            }
            _ => None,
        }
    }
}

impl From<&Edit> for Asked {
    fn from(edit: &Edit) -> Self {
        let (kind, old, new) = match edit.change {
            Change::Replace { old, new } => (Kind::Replace, half(old), half(new)),
            Change::Whole(new) => (Kind::Whole, 0, half(new)),
            Change::Undo => (Kind::Undo, 0, 0),
            Change::Restore => (Kind::Restore, 0, 0),
        };
        let file = if edit.path.is_empty() { 0 } else { half(short_hash(edit.path.as_bytes())) };
        let name = if edit.path.is_empty() { "the files".to_owned() } else { quote(&edit.path, 60) };
        Self { file, old, new, kind, name }
    }
}

impl Memory {
    /// Takes out what a call asked for.
    fn asked(&mut self, ordinal: u64) -> Vec<Asked> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let mut others = Ring::default();
        let mut asked = Vec::new();
        for (call, change) in self.open.iter() {
            if *call == ordinal {
                asked.push(change.clone());
            } else {
                others.push((*call, change.clone()), OPEN);
            }
        }
        self.open = others;
        asked
    }

    /// Enters a change; gives what it turned round, if it did.
    fn make(&mut self, asked: &Asked, at: (u64, u64)) -> Option<Made> {
        match asked.kind {
            Kind::Replace => self.change(asked.file, asked.old, asked.new, at),
            Kind::Whole => {
                let last = self.made.iter().rev().find(|m| m.file == asked.file).map_or(0, |m| m.new);
                if last == asked.new { None } else { self.change(asked.file, last, asked.new, at) }
            }
            Kind::Undo => {
                let last = *self.live(asked.file).last()?;
                self.change(last.file, last.new, last.old, at)
            }
            Kind::Restore => {
                let live = self.live(asked.file);
                live.iter()
                    .rev()
                    .filter_map(|m| self.change(m.file, m.new, m.old, at))
                    .max_by_key(|m| m.turned)
            }
        }
    }

    /// The changes of a file that stand, or of all files.
    fn live(&self, file: u32) -> Vec<Made> {
        // A change that takes back another is not itself one that could be taken back by putting a file back.
        let stands = |m: &&Made| !m.undone && m.turned.is_multiple_of(2) && (file == 0 || m.file == file);
        self.made.iter().filter(stands).copied().collect()
    }

    fn change(&mut self, file: u32, old: u32, new: u32, at: (u64, u64)) -> Option<Made> {
        let inverse =
            self.made.iter().rposition(|m| m.file == file && !m.undone && m.new == old && m.old == new);
        let turned = match inverse.and_then(|at| self.made.get_mut(at)) {
            Some(before) if old != new => {
                before.undone = true;
                before.turned + 1
            }
            _ => 0,
        };
        let made = Made { file, old, new, turned, step: at.0, call: at.1, undone: false };
        self.made.push(made, CHANGES);
        (turned > 0).then_some(made)
    }

    /// Where this to and fro began, as far as it is remembered.
    fn first(&self, made: Made) -> Made {
        let pair = (made.old.min(made.new), made.old.max(made.new));
        let same = |m: &&Made| m.file == made.file && (m.old.min(m.new), m.old.max(m.new)) == pair;
        self.made.iter().find(same).copied().unwrap_or(made)
    }
}
