//! What the agent did after it was told: did it leave the loop?

use deloop_types::{Body, Decision, Step};
use serde::{Deserialize, Serialize};

/// How many turns without the pattern count as having left it.
pub(crate) const TURNS: u32 = 3;

/// A detector, and what tells a pattern from others that it finds.
pub(super) type Pattern = (String, u64);

/// What a decision is about.
pub(super) fn patterns(decision: &Decision) -> Vec<Pattern> {
    decision.findings.iter().map(|f| (f.detector.clone(), f.evidence.pattern)).collect()
}

/// What came of a nudge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aftermath {
    /// The pattern was not seen for [`TURNS`] turns.
    Left,
    /// It was seen again.
    WentOn,
    /// The agent ended its turn, or the session, before that.
    Ended,
    /// A person wrote before that, or another message came in between.
    Unknown,
}

impl Aftermath {
    /// As it is kept and shown.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::WentOn => "went on",
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }
}

/// A nudge that was delivered, until it is known what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watch {
    pub(super) id: String,
    patterns: Vec<Pattern>,
    turns: u32,
}

impl Watch {
    /// From now on, after the decision of this name about these patterns was delivered.
    pub(super) fn new(id: &str, patterns: Vec<Pattern>) -> Option<Self> {
        (!patterns.is_empty()).then(|| Self { id: id.to_owned(), patterns, turns: 0 })
    }

    /// Enters a step and what was found in it; what is known then.
    pub(super) fn enter(&mut self, step: &Step, decided: &Decision) -> Option<Aftermath> {
        if let Body::Turn(_) = step.body {
            self.turns += 1;
        }
        if self.turns > 0 && patterns(decided).iter().any(|p| self.patterns.contains(p)) {
            return Some(Aftermath::WentOn);
        }
        (self.turns > TURNS).then_some(Aftermath::Left)
    }

    /// Nothing more will be seen: `then` is what that means if it is too early to tell.
    pub(super) fn close(&self, then: Aftermath) -> Aftermath {
        if self.turns >= TURNS { Aftermath::Left } else { then }
    }
}
