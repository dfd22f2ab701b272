use deloop_types::{Action, Decision};
use serde::{Deserialize, Serialize};

use crate::decide::DecisionContext;

/// Number of turns without a pattern that end its episode.
const GAP: u64 = 8;
/// The same for a pattern that is found once a round.
const ROUNDS_GAP: u64 = 400;
/// Maximum number of patterns and episodes stored.
const MOST: usize = 16;

/// The state of one agent's ladders, and which of its messages were delivered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LadderState {
    pub(crate) occurrences: Vec<Occurrence>,
    /// The turn in which each ladder of occurrences last counted one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counted: Vec<(u16, u64)>,
    given: Vec<(u16, u64)>,
    pub(crate) episodes: Vec<Episode>,
    /// The current stop, until a person writes or the session ends.
    pub(crate) stopped: Option<Box<Decision>>,
    /// Whether the agent's context was cut before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    compacted: bool,
    /// The summary of the finding that led to that stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_for: Option<String>,
    /// Whether a limit led to that stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stopped_by_limit: bool,
}

/// A pattern that was found, and how often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Occurrence {
    pub(crate) watch: u16,
    pattern: u64,
    count: u64,
    last: u64,
    /// The steps whose decisions were about it, and whether their messages failed to reach the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    messages: Vec<(u64, bool)>,
}

impl Occurrence {
    /// Returns how often it was found, without the times whose message failed to reach the agent.
    pub(crate) fn count(&self) -> u64 {
        let lost = self.messages.iter().filter(|(_, lost)| *lost).count();
        self.count.saturating_sub(lost as u64)
    }

    fn found(&mut self, step: u64) -> u64 {
        if self.messages.len() >= MOST {
            let (_, lost) = self.messages.remove(0);
            self.count = self.count.saturating_sub(u64::from(lost));
        }
        self.messages.push((step, false));
        self.count += 1;
        self.count()
    }
}

/// Where a full cycle was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CycleAt {
    /// The index of its last call.
    pub(crate) call: u64,
    /// The number of calls of a full cycle.
    pub(crate) period: u64,
    pub(crate) turn: u64,
    pub(crate) step: u64,
}

/// An episode of one pattern, from the first action until the agent leaves the pattern.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Episode {
    pub(crate) watch: u16,
    pub(crate) pattern: u64,
    /// Number of rungs climbed.
    pub(crate) rung: u32,
    /// The turn and the step of the last message.
    pub(crate) turn: u64,
    pub(crate) step: u64,
    /// Whether that message failed to reach the agent.
    pub(crate) lost: bool,
    /// The turn in which the pattern was last seen.
    pub(crate) seen: u64,
    /// Whether a pattern that is found once a round belongs to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) rounds: bool,
    /// The step of the first action. It identifies the episode among those of the agent.
    #[serde(default)]
    pub(crate) began: u64,
    /// The finding's count at the last message, the number of messages, and what the session had cost at the first one.
    #[serde(default)]
    pub(crate) count: u64,
    #[serde(default)]
    pub(crate) messages: u32,
    #[serde(default)]
    pub(crate) usd: f64,
    /// The turn of the last reminder.
    #[serde(default)]
    pub(crate) reminded: u64,
    /// Whether it is about a limit, not about a loop. Then it lasts until the limit is raised.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_limit: bool,
}

impl Episode {
    /// Notes that its `rung` is reached with this `count`, and what that does.
    pub(crate) fn climb(&mut self, rung: u32, action: Action, count: u64, context: &DecisionContext<'_>) {
        if self.rung == 0 {
            self.began = context.step;
        }
        if action == Action::Nudge {
            if self.messages == 0 {
                self.usd = context.usd;
            }
            self.messages += u32::from(!self.lost);
            self.count = count;
        }
        (self.rung, self.turn, self.step, self.lost) = (rung, context.turns, context.step, false);
    }

    /// Notes that the last message is given again. The next rung doesn't wait longer for that.
    pub(crate) fn remind(&mut self, count: u64, context: &DecisionContext<'_>) {
        self.messages += 1;
        (self.count, self.reminded, self.step) = (count, context.turns, context.step);
    }
}

impl LadderState {
    /// Counts an occurrence of a pattern. Returns the new count, or `None` between full cycles, and in a turn in which one
    /// was counted already: the agent hasn't seen the message about it yet.
    pub(crate) fn occurrence(&mut self, watch: u16, pattern: u64, at: CycleAt, forget: u64) -> Option<u64> {
        if forget > 0 {
            self.occurrences.retain(|o| o.watch != watch || at.call.saturating_sub(o.last) < forget);
        }
        let counted = self.counted.contains(&(watch, at.turn));
        let mut known = self.occurrences.iter().position(|o| o.watch == watch && o.pattern == pattern);
        if let Some(known) = known {
            let known = &mut self.occurrences[known];
            if at.call.saturating_sub(known.last) < at.period {
                return None;
            }
            known.last = at.call;
        }
        if counted {
            return None;
        }
        self.counted.retain(|(other, _)| *other != watch);
        self.counted.push((watch, at.turn));
        let index = *known.get_or_insert_with(|| {
            if self.occurrences.len() >= MOST {
                self.occurrences.remove(0);
            }
            self.occurrences.push(Occurrence { watch, pattern, last: at.call, ..Occurrence::default() });
            self.occurrences.len() - 1
        });
        Some(self.occurrences[index].found(at.step))
    }

    /// Uses one of the `limit` messages that a ladder may send in a session. Returns `false` when none are left.
    pub(crate) fn take(&mut self, watch: u16, limit: u64) -> bool {
        if limit == 0 {
            return true;
        }
        let index = self.given.iter().position(|(w, _)| *w == watch).unwrap_or_else(|| {
            self.given.push((watch, 0));
            self.given.len() - 1
        });
        let given = &mut self.given[index].1;
        let left = *given < limit;
        *given += u64::from(left);
        left
    }

    /// Returns the episode of a pattern that began at step `since`: its own, or one that the agent got a message about
    /// during this pattern, or one that is active in the same turn. Several detectors may find the same loop, and a
    /// cycle consists of several calls.
    pub(crate) fn episode(&mut self, watch: u16, pattern: u64, since: u64, turn: u64) -> &mut Episode {
        let gap = |e: &Episode| if e.rounds { ROUNDS_GAP } else { GAP };
        self.episodes.retain(|e| e.of_limit || turn.saturating_sub(e.seen) <= gap(e));
        let of_loop = |e: &Episode| !e.of_limit;
        let find = |test: &dyn Fn(&Episode) -> bool| self.episodes.iter().position(|e| of_loop(e) && test(e));
        let own = find(&|e| e.watch == watch && e.pattern == pattern);
        let index = own.or_else(|| find(&|e| e.rung > 0 && (since <= e.step || e.seen == turn)));
        self.seen(index, watch, pattern, turn)
    }

    /// Returns the pattern's own episode. It doesn't end by itself.
    pub(crate) fn own_episode(&mut self, watch: u16, pattern: u64, turn: u64) -> &mut Episode {
        let own = self.episodes.iter().position(|e| e.watch == watch && e.pattern == pattern);
        self.seen(own, watch, pattern, turn)
    }

    /// Returns the episode at this index, or a new one, as seen in this turn.
    fn seen(&mut self, index: Option<usize>, watch: u16, pattern: u64, turn: u64) -> &mut Episode {
        let index = index.unwrap_or_else(|| {
            if self.episodes.len() >= MOST {
                let oldest = self.episodes.iter().position(|e| !e.of_limit).unwrap_or(0);
                self.episodes.remove(oldest);
            }
            // Most agents have one episode at most, so room is made for one at a time.
            self.episodes.reserve_exact(1);
            self.episodes.push(Episode { watch, pattern, ..Episode::default() });
            self.episodes.len() - 1
        });
        let episode = &mut self.episodes[index];
        episode.seen = turn;
        episode
    }

    /// Returns whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the episode of a limit. It is separate from those of loops, so that neither hides the other. `pattern`
    /// counts how often the limit was raised: each time, the episode starts over.
    pub(crate) fn limit_episode(&mut self, watch: u16, pattern: u64) -> &mut Episode {
        self.episodes.retain(|e| !e.of_limit || e.watch != watch || e.pattern == pattern);
        let known = self.episodes.iter().position(|e| e.of_limit && e.watch == watch);
        let index = known.unwrap_or_else(|| {
            self.episodes.push(Episode { watch, pattern, of_limit: true, ..Episode::default() });
            self.episodes.len() - 1
        });
        &mut self.episodes[index]
    }

    /// Starts over after a person wrote or intervened: current episodes end, and a stop is lifted.
    pub fn start_over(&mut self) {
        self.episodes.retain(|e| e.of_limit);
        (self.stopped, self.stopped_for) = (None, None);
        self.stopped_by_limit = false;
    }

    /// Starts over after the agent's context was cut for the first time: deloop's messages are no longer in it. Later
    /// episodes outlast further cuts, because a loop may consist of them.
    pub fn compacted(&mut self) {
        if !std::mem::replace(&mut self.compacted, true) {
            self.episodes.retain(|e| e.of_limit);
        }
    }

    /// Returns whether the agent already got a message in this turn, at an earlier step.
    pub(crate) fn told(&self, turn: u64, step: u64) -> bool {
        let given = |e: &Episode| e.rung > 0 && !e.lost && !e.of_limit;
        self.episodes.iter().any(|e| given(e) && (e.turn == turn || e.reminded == turn) && e.step != step)
    }

    /// Records whether the message of the decision at `step` reached the agent.
    pub fn delivered(&mut self, step: u64, ok: bool) {
        for episode in self.episodes.iter_mut().filter(|e| e.step == step && e.rung > 0 && !e.of_limit) {
            episode.lost = !ok;
        }
        let messages = self.occurrences.iter_mut().flat_map(|o| &mut o.messages);
        messages.filter(|(at, _)| *at == step).for_each(|(_, lost)| *lost = !ok);
    }

    /// Takes over the stop of another ladder, unless it has one.
    pub fn take_stop_of(&mut self, other: Self) {
        if self.stopped.is_none() {
            self.stopped = other.stopped;
            self.stopped_for = other.stopped_for;
            self.stopped_by_limit = other.stopped_by_limit;
        }
    }

    /// Returns the current stop, if there is one.
    #[must_use]
    pub fn stopped(&self) -> Option<&Decision> {
        self.stopped.as_deref()
    }
}
