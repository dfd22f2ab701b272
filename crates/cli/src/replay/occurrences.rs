//! Which turns a finding is about: the one at which it was made, and those before it that a detector counted without
//! reporting them yet.

use deloop_types::Finding;

use super::small;
use super::turns::SessionTurns;

/// Where a finding was made.
pub(super) struct FindingSite<'a> {
    pub(super) turns: &'a SessionTurns,
    pub(super) agent: u16,
    /// What to add to a finding's steps: the steps before the session last ended.
    pub(super) base: u64,
    /// The agent's turn.
    pub(super) turn: u32,
    /// The turn at which the pattern began.
    pub(super) since: u32,
    /// The latest turn that is known to be an occurrence; 0 if none is.
    pub(super) known: u32,
}

/// Returns the numbers of the turns after the known ones in which what was found occurs.
pub(super) fn occurrences(finding: &Finding, site: &FindingSite<'_>) -> Vec<u32> {
    if !finding.counted.is_empty() {
        let turn_of = |step: &u64| site.turns.at_step(site.agent, small(site.base + step));
        let unknown =
            finding.counted.iter().map(turn_of).filter(|turn| *turn > site.known && *turn >= site.since);
        return unknown.chain([site.turn]).collect();
    }
    // From its first report on, every occurrence is reported.
    if site.known >= site.since {
        return vec![site.turn];
    }
    // What is found at a call or a turn mostly comes in a row. Where there is more in between than was counted, only
    // its first turn is known. Patterns without a number don't count the first.
    let counted = finding.count * u64::from(finding.period.max(1)) + u64::from(finding.pattern.is_none());
    let row: Vec<u32> = site.turns.between(site.agent, site.since, site.turn).collect();
    if row.len() as u64 <= counted { row } else { vec![site.turn, site.since] }
}
