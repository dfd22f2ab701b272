//! Tracks what an agent does after a nudge or a recovery: whether it leaves the loop.

use deloop_types::{Body, Decision, Step};
use serde::{Deserialize, Serialize};

use crate::recent_calls::print;

/// Number of turns without the pattern after which the agent has left the loop.
pub const TURNS: u32 = 3;

/// A detector and the number that identifies one of its patterns.
pub(crate) type Pattern = (String, u64);

/// Returns the patterns that a decision is about.
pub(crate) fn patterns(decision: &Decision) -> Vec<Pattern> {
    decision.findings.iter().map(|f| (f.detector.clone(), f.pattern.0)).collect()
}

/// What the agent did after a nudge or a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NudgeOutcome {
    /// The pattern didn't occur for [`TURNS`] turns.
    Left,
    /// The pattern occurred again.
    Continued,
    /// The agent ended its turn, or the session, before that.
    Ended,
    /// A person wrote before that, or another message was sent.
    Unknown,
}

impl NudgeOutcome {
    /// Returns the name used in storage and output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Continued => "continued",
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }
}

/// A delivered nudge whose outcome isn't known yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrackedNudge {
    pub(crate) id: String,
    patterns: Vec<Pattern>,
    turns: u32,
    /// The calls that a new session must not repeat, after an attempt that did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<String>,
    /// The number of turns in which it made one of them.
    #[serde(default)]
    again: u32,
}

impl TrackedNudge {
    /// Starts tracking the decision with this id and these patterns.
    pub(crate) fn new(id: &str, patterns: Vec<Pattern>) -> Option<Self> {
        (!patterns.is_empty()).then(|| Self { patterns, ..Self::with_id(id) })
    }

    /// Starts tracking the hand-off with this id: whether the new session repeats the calls of the attempt before it.
    pub(crate) fn of_calls(id: &str, calls: &[String]) -> Option<Self> {
        (!calls.is_empty()).then(|| Self { calls: calls.to_vec(), ..Self::with_id(id) })
    }

    fn with_id(id: &str) -> Self {
        Self { id: id.to_owned(), patterns: Vec::new(), turns: 0, calls: Vec::new(), again: 0 }
    }

    /// Adds a step and its decision. Returns the outcome once it is known.
    pub(crate) fn enter(&mut self, step: &Step, decided: &Decision) -> Option<NudgeOutcome> {
        if let Body::Turn(turn) = &step.body {
            self.turns += 1;
            self.again += u32::from(turn.calls.iter().any(|call| self.calls.contains(&print(call))));
        }
        // Once is a look at where things stand.
        if self.again > 1 {
            return Some(NudgeOutcome::Continued);
        }
        if self.turns > 0 && patterns(decided).iter().any(|p| self.patterns.contains(p)) {
            return Some(NudgeOutcome::Continued);
        }
        (self.turns > TURNS).then_some(NudgeOutcome::Left)
    }

    /// Stops tracking. `then` is the outcome if it is too early to tell.
    pub(crate) fn close(&self, then: NudgeOutcome) -> NudgeOutcome {
        if self.turns >= TURNS { NudgeOutcome::Left } else { then }
    }
}
