//! What requests used, each counted once and at the turn it was for.

use std::collections::HashMap;

use deloop_detect::short_hash;
use deloop_types::Usage;

use super::small;
use super::turns::SessionTurns;

/// How many requests of a session are kept one by one; later ones are added to the last.
const REQUESTS: usize = 1_000_000;
/// Stands for a model that is not named.
pub(crate) const NO_MODEL: u16 = u16::MAX;

/// What one request used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RequestUsage {
    /// The turn it was for; 0 before the first.
    pub(crate) turn: u32,
    /// Which of the session's agents.
    pub(crate) agent: u16,
    /// Which of the file's models, or [`NO_MODEL`].
    pub(crate) model: u16,
    pub(crate) input: u32,
    pub(crate) output: u32,
    pub(crate) cache_read: u32,
    pub(crate) cache_write: u32,
    /// The part of `cache_write` that was written for one hour.
    pub(crate) cache_write_1h: u32,
    /// The agent's own figure; not a number where it gives none.
    pub(crate) usd: f64,
    /// Names the request in all files; 0 without a name.
    pub(crate) key: u64,
}

impl RequestUsage {
    pub(super) fn new(usage: &Usage, turn: u32, agent: u16, model: u16, key: Option<u64>) -> Self {
        Self {
            turn,
            agent,
            model,
            input: small(usage.input_tokens),
            output: small(usage.output_tokens),
            cache_read: small(usage.cache_read_tokens),
            cache_write: small(usage.cache_write_tokens),
            cache_write_1h: small(usage.cache_write_1h_tokens),
            usd: usage.dollars().unwrap_or(f64::NAN),
            key: key.unwrap_or(0),
        }
    }

    /// Returns all tokens.
    pub(crate) fn tokens(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write].into_iter().map(u64::from).sum()
    }

    fn emptied(self) -> Self {
        Self { input: 0, output: 0, cache_read: 0, cache_write: 0, cache_write_1h: 0, usd: f64::NAN, ..self }
    }
}

/// Adds a request to a session's list.
pub(super) fn push_usage(list: &mut Vec<RequestUsage>, one: RequestUsage) {
    if list.len() < REQUESTS {
        return list.push(one);
    }
    if let Some(last) = list.last_mut() {
        last.input = last.input.saturating_add(one.input);
        last.output = last.output.saturating_add(one.output);
        last.cache_read = last.cache_read.saturating_add(one.cache_read);
        last.cache_write = last.cache_write.saturating_add(one.cache_write);
        last.cache_write_1h = last.cache_write_1h.saturating_add(one.cache_write_1h);
        last.usd += one.usd;
    }
}

/// Spreads figures that an agent reports only now and then, or once at the end, evenly over the turns since the one
/// before. `agent_turns` has the number of turns of each agent.
pub(super) fn spread(
    usage: Vec<RequestUsage>,
    turns: &SessionTurns,
    agent_turns: &[u32],
) -> Vec<RequestUsage> {
    let mut reports = vec![0_u32; agent_turns.len()];
    for used in &usage {
        if let Some(reports) = reports.get_mut(usize::from(used.agent)) {
            *reports += 1;
        }
    }
    let rarely = |agent: usize| 2 * reports[agent] <= agent_turns[agent];
    let mut before = vec![0_u32; agent_turns.len()];
    let mut out = Vec::with_capacity(usage.len());
    for used in usage {
        let agent = usize::from(used.agent);
        let Some(before) = before.get_mut(agent).filter(|_| rarely(agent)) else {
            out.push(used);
            continue;
        };
        let covered: Vec<u32> = turns.between(used.agent, *before + 1, used.turn).collect();
        *before = used.turn;
        let parts = small(covered.len() as u64);
        if parts < 2 {
            out.push(used);
            continue;
        }
        for (part, turn) in (0..parts).zip(covered) {
            // What does not divide evenly goes to the first parts, so that the sum stays the same.
            let share = |whole: u32| whole / parts + u32::from(part < whole % parts);
            out.push(RequestUsage {
                turn,
                input: share(used.input),
                output: share(used.output),
                cache_read: share(used.cache_read),
                cache_write: share(used.cache_write),
                cache_write_1h: share(used.cache_write_1h),
                usd: used.usd / f64::from(parts),
                key: if used.key == 0 { 0 } else { short_hash(format!("{} {part}", used.key).as_bytes()) },
                ..used
            });
        }
    }
    out
}

/// Leaves one record of every request. Streamed records, resumed and forked sessions repeat a request: one of them stays,
/// with the largest figures that any of them has, and the others become empty. The first in the order of `lists` stays,
/// but one that `in_loop` accepts goes before one that it does not, so that a loop keeps what it used.
pub(crate) fn count_once(
    lists: &mut [&mut Vec<RequestUsage>],
    in_loop: &dyn Fn(usize, &RequestUsage) -> bool,
) {
    let mut owners: HashMap<u64, (usize, usize, bool)> = HashMap::new();
    for list in 0..lists.len() {
        for index in 0..lists[list].len() {
            let used = lists[list][index];
            if used.key == 0 {
                continue;
            }
            let looping = in_loop(list, &used);
            let Some(&(first, at, known)) = owners.get(&used.key) else {
                owners.insert(used.key, (list, index, looping));
                continue;
            };
            let owner = lists[first][at];
            let (place, other, stays) = if looping && !known {
                owners.insert(used.key, (list, index, true));
                ((list, index), (first, at), used)
            } else {
                ((first, at), (list, index), owner)
            };
            lists[other.0][other.1] = lists[other.0][other.1].emptied();
            lists[place.0][place.1] = RequestUsage {
                input: owner.input.max(used.input),
                output: owner.output.max(used.output),
                cache_read: owner.cache_read.max(used.cache_read),
                cache_write: owner.cache_write.max(used.cache_write),
                cache_write_1h: owner.cache_write_1h.max(used.cache_write_1h),
                // `max` takes the number where the other is none.
                usd: owner.usd.max(used.usd),
                ..stays
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::turns::TurnMark;

    fn used(turn: u32, input: u32, usd: f64, key: u64) -> RequestUsage {
        RequestUsage {
            turn,
            agent: 0,
            model: 0,
            input,
            output: 0,
            cache_read: 0,
            cache_write: 0,
            cache_write_1h: 0,
            usd,
            key,
        }
    }

    #[test]
    fn a_figure_for_many_turns_is_spread_over_them() {
        let mut turns = SessionTurns::default();
        for step in [0, 2, 4, 6] {
            turns.push(TurnMark { step, line: 0, agent: 0, calls: 1, ts: None, millis: 0 });
        }
        let whole = spread(vec![used(4, 10, 1.0, 0)], &turns, &[4]);
        let parts: Vec<_> = whole.iter().map(|u| (u.turn, u.input)).collect();
        assert_eq!(parts, [(1, 3), (2, 3), (3, 2), (4, 2)]);
        assert!((whole.iter().map(|u| u.usd).sum::<f64>() - 1.0).abs() < 1e-9);
        let each = vec![used(1, 5, 1.0, 1), used(2, 5, 1.0, 2), used(3, 5, 1.0, 3), used(4, 5, 1.0, 4)];
        assert_eq!(spread(each.clone(), &turns, &[4]), each, "one a turn stays as it is");
        let most = each[1..].to_vec();
        assert_eq!(
            spread(most.clone(), &turns, &[4]),
            most,
            "a turn without a figure takes none from the next"
        );
    }

    #[test]
    fn a_request_counts_once_with_its_last_figures() {
        let mut first = vec![used(1, 1, f64::NAN, 7), used(1, 5, f64::NAN, 7), used(2, 2, f64::NAN, 0)];
        let mut copy = vec![used(1, 4, 0.5, 7), used(2, 9, f64::NAN, 8)];
        count_once(&mut [&mut first, &mut copy], &|_, _| false);
        assert_eq!(first.iter().map(|u| u.input).collect::<Vec<_>>(), [5, 0, 2]);
        assert_eq!((first[0].usd, copy[0].input, copy[1].input), (0.5, 0, 9));
    }

    #[test]
    fn a_loop_keeps_what_it_used() {
        let (mut first, mut copy) = (vec![used(1, 4, f64::NAN, 7)], vec![used(3, 5, f64::NAN, 7)]);
        count_once(&mut [&mut first, &mut copy], &|list, _| list == 1);
        assert_eq!((first[0].input, copy[0].input, copy[0].turn), (0, 5, 3));
    }
}
