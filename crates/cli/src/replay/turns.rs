//! The turns of a session, numbered in one place.

use deloop_types::Millis;

/// How many turns of a session are kept; later ones are counted, but belong to no loop.
const TURNS: usize = 1_000_000;

/// Where and when a turn was, and how long it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TurnMark {
    pub(super) step: u32,
    pub(super) line: u32,
    pub(super) agent: u16,
    pub(super) calls: u16,
    pub(super) ts: Option<Millis>,
    /// From the step before it to its last result, in milliseconds: the time of the model and of its tools, but not of
    /// a person who is waited for.
    pub(super) millis: u32,
}

/// The turns of all agents of a session, in order. A turn's number is its place among them, from 1.
#[derive(Debug, Default)]
pub(super) struct SessionTurns {
    marks: Vec<TurnMark>,
    pub(super) count: u64,
}

impl SessionTurns {
    /// Adds a turn and returns its number; 0 if there are too many to be kept.
    pub(super) fn push(&mut self, mark: TurnMark) -> u32 {
        self.count += 1;
        if self.marks.len() >= TURNS {
            return 0;
        }
        self.marks.push(mark);
        super::small(self.marks.len() as u64)
    }

    pub(super) fn get(&self, number: u32) -> Option<&TurnMark> {
        self.marks.get((number as usize).checked_sub(1)?)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut TurnMark> {
        self.marks.get_mut((number as usize).checked_sub(1)?)
    }

    /// Returns the number of the turn that a step of an agent belongs to: its last one that is not after the step; 0 if
    /// there is none.
    pub(super) fn at_step(&self, agent: u16, step: u32) -> u32 {
        let before = &self.marks[..self.marks.partition_point(|t| t.step <= step)];
        let index = before.iter().rposition(|t| t.agent == agent);
        index.map_or(0, |index| super::small(index as u64) + 1)
    }

    /// Returns the step of the agent's next turn after a step; `None` if that was its last.
    pub(super) fn next_step(&self, agent: u16, step: u32) -> Option<u32> {
        let after = &self.marks[self.marks.partition_point(|t| t.step <= step)..];
        after.iter().find(|t| t.agent == agent).map(|t| t.step)
    }

    /// Returns the numbers of an agent's turns between two numbers, both included.
    pub(super) fn between(&self, agent: u16, first: u32, last: u32) -> impl Iterator<Item = u32> + '_ {
        (first.max(1)..=last).filter(move |number| self.get(*number).is_some_and(|t| t.agent == agent))
    }
}
