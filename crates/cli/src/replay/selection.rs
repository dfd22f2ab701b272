//! Which steps of a session are shown.

use super::Loop;

/// Steps shown before and after a loop.
const CONTEXT_STEPS: u32 = 4;
/// Steps shown of a session without a loop.
const START: u32 = 40;

/// Which steps of a session are shown: all that repeat or that deloop would have acted on, and a few around each loop.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    all: bool,
    /// The turns that are shown, in order.
    turns: Vec<u32>,
    /// The turns that repeat, in order.
    repeated: Vec<u32>,
    /// The steps that deloop would have acted on, in order.
    acted: Vec<u32>,
    /// Steps around the edges of loops.
    near: StepRanges,
    /// Steps inside loops.
    inside: StepRanges,
}

impl Selection {
    /// Selects steps around these loops and these actions, given as steps and turns; with `all`, every step.
    pub(crate) fn new<'a>(
        loops: impl Iterator<Item = &'a Loop> + Clone,
        actions: impl Iterator<Item = (u32, u32)> + Clone,
        all: bool,
    ) -> Self {
        let sorted = |mut numbers: Vec<u32>| {
            numbers.sort_unstable();
            numbers.dedup();
            numbers
        };
        let repeated = sorted(loops.clone().flat_map(|l| l.repeated.iter().copied()).collect());
        let first = loops.clone().map(|l| l.first_turn);
        let turns = repeated.iter().copied().chain(first).chain(actions.clone().map(|(_, turn)| turn));
        let mut near: Vec<(u32, u32)> = Vec::new();
        for one in loops.clone() {
            near.push((one.first_step.saturating_sub(CONTEXT_STEPS), one.first_step));
            near.push((one.last_step, one.last_step.saturating_add(CONTEXT_STEPS)));
        }
        let acted = sorted(actions.map(|(step, _)| step).collect());
        if near.is_empty() && acted.is_empty() {
            near.push((0, START - 1));
        }
        Self {
            all,
            turns: sorted(turns.filter(|turn| *turn > 0).collect()),
            repeated,
            acted,
            near: StepRanges::new(near),
            inside: StepRanges::new(loops.map(|l| (l.first_step, l.last_step)).collect()),
        }
    }

    /// Returns whether a step is shown; `turn` is the turn it belongs to.
    pub(crate) fn shows(&self, step: u32, turn: u32) -> bool {
        self.all || self.turns.binary_search(&turn).is_ok() || self.acts_at(step) || self.near.contains(step)
    }

    /// Returns whether deloop would have acted at a step.
    pub(crate) fn acts_at(&self, step: u32) -> bool {
        self.acted.binary_search(&step).is_ok()
    }

    /// Returns whether a turn repeats.
    pub(crate) fn repeats(&self, turn: u32) -> bool {
        self.repeated.binary_search(&turn).is_ok()
    }

    /// Returns whether a step is inside a loop.
    pub(crate) fn is_inside(&self, step: u32) -> bool {
        self.inside.contains(step)
    }
}

/// Ranges of steps that don't overlap, in order.
#[derive(Debug, Default)]
struct StepRanges(Vec<(u32, u32)>);

impl StepRanges {
    fn new(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, end)) if first <= *end => *end = (*end).max(last),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    fn contains(&self, step: u32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= step);
        after.checked_sub(1).is_some_and(|index| step <= self.0[index].1)
    }
}

#[cfg(test)]
mod tests {
    use super::StepRanges;

    #[test]
    fn ranges_may_overlap_and_touch() {
        let ranges = StepRanges::new(vec![(10, 12), (1, 3), (2, 5), (20, 20)]);
        let inside: Vec<u32> = (0..25).filter(|step| ranges.contains(*step)).collect();
        assert_eq!(inside, [1, 2, 3, 4, 5, 10, 11, 12, 20]);
    }
}
