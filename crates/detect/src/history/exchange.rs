use deloop_types::{Origin, Turn, UserText};
use serde::{Deserialize, Serialize};

use crate::reading::name_words;
use crate::{Ring, Sketch, ToolKind, Tools, short_hash};

/// How many turns are remembered: six rounds between two agents.
const TURNS: usize = 12;

/// What the agents of a session said lately, all of them together. Costs nothing while there is only one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Exchange {
    /// The only agent so far, hashed.
    alone: Option<u64>,
    said: Ring<Said>,
}

/// One turn of one agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// Which agent, hashed.
    pub agent: u64,
    /// The step.
    pub step: u64,
    /// Whether it did something beside talking.
    pub acted: bool,
    /// What it said, to whom it handed over included.
    pub words: Sketch,
}

impl Exchange {
    /// The last turns, newest last.
    #[must_use]
    pub fn said(&self) -> &Ring<Said> {
        &self.said
    }

    pub(crate) fn push(&mut self, agent: Option<&str>, turn: &Turn, tools: &Tools, step: u64) {
        let agent = short_hash(agent.unwrap_or_default().as_bytes());
        if *self.alone.get_or_insert(agent) == agent && self.said.is_empty() {
            return;
        }
        let acted = turn.calls.iter().any(|call| !talks(&call.tool, tools));
        let words = Sketch::of_turn(turn);
        self.said.push(Said { agent, step, acted, words }, TURNS);
    }

    /// A person wrote: what was said before is of the past.
    pub(crate) fn heard(&mut self, user: &UserText) {
        if user.origin == Origin::Human {
            self.said = Ring::default();
        }
    }
}

/// Whether a call only speaks to somebody, or hands over to another agent.
fn talks(tool: &str, tools: &Tools) -> bool {
    let hands_over = |word: &str| {
        ["handoff", "handover", "transfer", "delegate"].iter().any(|w| word.eq_ignore_ascii_case(w))
    };
    tools.kind(tool) == ToolKind::Talk || name_words(tool).any(hands_over)
}
