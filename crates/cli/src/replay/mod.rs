//! Replays sessions: which turns there are, what deloop would have done at which of them, which of them repeat, and what
//! they used. Everything that `scan`, `show`, `compare` and `eval` print comes from a [`Replay`].

mod call_groups;
mod files;
mod left_out;
mod loops;
mod occurrences;
mod replayer;
mod selection;
mod spend;
mod transcript;
mod turns;
mod usage;

use deloop_types::{Action, Millis};

pub(crate) use files::{ReplayedFile, ReplayedFiles, replay_all};
pub(crate) use loops::Loop;
pub(crate) use replayer::{ReplayScope, Replayer};
pub(crate) use selection::Selection;
pub(crate) use spend::{Spend, prices_of, spend_of};
pub(crate) use transcript::{
    CallCell, SessionTranscript, ShownCall, StepKind, StepView, TranscriptEntry, TranscriptSize, transcript,
};
pub(crate) use usage::{NO_MODEL, RequestUsage, count_once};

/// One session, replayed under one or more sets of rules. SessionTurns are numbered over the whole session, from 1.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) session: String,
    pub(crate) first: Option<Millis>,
    pub(crate) last: Option<Millis>,
    pub(crate) steps: u64,
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    /// The names of its agents; `None` is the session's own.
    pub(crate) agents: Vec<Option<String>>,
    /// What each request used, in order.
    pub(crate) usage: Vec<RequestUsage>,
    /// The first model that was named.
    pub(crate) model: Option<String>,
    /// What each of the engines made of it.
    pub(crate) verdicts: Vec<Verdict>,
}

/// What one set of rules makes of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Verdict {
    /// Everything that deloop would have done, in order.
    pub(crate) actions: Vec<Intervention>,
    /// The loops, by their first step.
    pub(crate) loops: Vec<Loop>,
}

/// A decision that is more than `continue`. A stop that stands is one decision, however many steps follow it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Intervention {
    pub(crate) step: u32,
    /// The turn of the agent at which the decision was made; 0 before its first.
    pub(crate) turn: u32,
    /// Which of the session's agents.
    pub(crate) agent: u16,
    pub(crate) action: Action,
    pub(crate) level: u32,
    /// The detector that the decision rests on.
    pub(crate) detector: String,
    /// What that detector found, in words.
    pub(crate) summary: String,
    /// Tells one pattern from another of the same detector.
    pub(crate) pattern: u64,
    /// Whether it is about a loop, and not only about a budget.
    pub(crate) about_loop: bool,
}

impl Replay {
    /// Returns whether it is more than the work of subagents, which may have files of their own.
    pub(crate) fn has_main_agent(&self) -> bool {
        self.agents.iter().any(Option::is_none)
    }
}

/// Converts a number that is kept small; the largest stands for all that are larger.
pub(crate) fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
