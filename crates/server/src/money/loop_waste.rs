use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// How many requests are remembered, in case a loop turns out to have begun before them.
const RECENT: usize = 64;

/// Attributes the cost of an agent's requests to its loops.
///
/// A request belongs to one turn. Waste is the cost of the turns after the one with which a loop began: the first
/// occurrence isn't a repetition. A request is counted once, however many loops are found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LoopWaste {
    /// Requests that no loop is known for: the step of the turn, and the cost in millionths of a dollar.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    recent: VecDeque<(u64, u64)>,
    /// The cost of requests whose turn hasn't arrived yet.
    unplaced: u64,
    last_turn: Option<u64>,
    /// Whether the agent reports a request before its turn, rather than after it.
    usage_first: bool,
    looping: bool,
}

impl LoopWaste {
    /// Enters a request. Returns how much of its cost is known to be waste.
    pub(crate) fn usage(&mut self, micro_usd: u64) -> u64 {
        if self.looping {
            return micro_usd;
        }
        match self.last_turn {
            Some(turn) if !self.usage_first => self.remember(turn, micro_usd),
            _ => {
                self.usage_first = true;
                self.unplaced = self.unplaced.saturating_add(micro_usd);
            }
        }
        0
    }

    /// Enters a turn.
    pub(crate) fn turn(&mut self, step: u64) {
        self.last_turn = Some(step);
        let unplaced = std::mem::take(&mut self.unplaced);
        if unplaced > 0 {
            self.remember(step, unplaced);
        }
    }

    /// Enters that the agent is in a loop that began at a step. Returns the cost of earlier requests that is waste, unless
    /// it was returned before. Until the loop is left, every request is waste.
    pub(crate) fn loop_found(&mut self, since: u64) -> u64 {
        self.looping = true;
        let mut wasted: u64 = 0;
        self.recent.retain(|(turn, cost)| {
            let is_waste = *turn > since;
            wasted = wasted.saturating_add(if is_waste { *cost } else { 0 });
            !is_waste
        });
        wasted
    }

    /// Enters that the agent isn't in a loop, as far as is known. If it turns out that it was, the next
    /// [`LoopWaste::loop_found`] makes up for it.
    pub(crate) fn loop_left(&mut self) {
        self.looping = false;
    }

    fn remember(&mut self, turn: u64, cost: u64) {
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((turn, cost));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// $0.054 a turn: $0.162 when a loop is found at the third similar turn, $0.27 when it is stopped at the fifth.
    #[test]
    fn three_similar_turns_waste_their_cost_whichever_is_reported_first() {
        for usage_first in [false, true] {
            let (mut waste, mut wasted, mut at_three) = (LoopWaste::default(), 0, 0);
            for turn in 0..6_u64 {
                if usage_first {
                    wasted += waste.usage(54_000);
                }
                waste.turn(2 * turn);
                if turn >= 3 {
                    wasted += waste.loop_found(0);
                }
                if !usage_first {
                    wasted += waste.usage(54_000);
                }
                if turn == 3 {
                    at_three = wasted;
                }
            }
            assert_eq!((at_three, wasted), (162_000, 270_000), "usage first: {usage_first}");
        }
    }

    #[test]
    fn a_loop_that_is_confirmed_later_lacks_nothing() {
        let mut waste = LoopWaste::default();
        waste.turn(0);
        waste.usage(1);
        waste.turn(2);
        let mut wasted = waste.loop_found(0) + waste.usage(10);
        waste.turn(4);
        waste.loop_left();
        wasted += waste.usage(100);
        assert_eq!(wasted, 10);
        wasted += waste.loop_found(0);
        assert_eq!(wasted, 110);
        assert_eq!(waste.loop_found(0), 0, "once");
    }

    proptest! {
        #[test]
        fn waste_never_exceeds_spend(events in prop::collection::vec((0_u8..4, 0_u64..1000), 0..300)) {
            let (mut waste, mut spent, mut wasted) = (LoopWaste::default(), 0, 0);
            for (step, (kind, amount)) in events.into_iter().enumerate() {
                match kind {
                    0 => waste.turn(step as u64),
                    1 => { spent += amount; wasted += waste.usage(amount); }
                    2 => wasted += waste.loop_found((step as u64).saturating_sub(amount % 200)),
                    _ => waste.loop_left(),
                }
                prop_assert!(wasted <= spent);
                prop_assert!(waste.recent.len() <= RECENT);
                let stored = serde_json::to_string(&waste).unwrap();
                prop_assert_eq!(&serde_json::from_str::<LoopWaste>(&stored).unwrap(), &waste);
            }
        }
    }
}
