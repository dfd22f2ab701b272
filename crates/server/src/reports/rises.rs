use std::time::Duration;

use deloop_store::{RecordName, SharedRecords, StoreError};
use deloop_types::Millis;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::weekly::{WeeklyLoops, weekly};
use crate::money::group;

/// How many weeks before the current one it is compared with.
const BEFORE: usize = 4;
/// Fewer loops in a week are never a rise.
const LOOPS: u64 = 5;
/// The rate of a rise is more than this many times the earlier one.
const TIMES: f64 = 2.0;
/// The probability that chance explains a rise is below this.
const CHANCE: f64 = 0.01;
/// How long servers remember that a rise was raised.
const RAISED: Duration = Duration::from_secs(15 * 24 * 3600);

/// An agent loops more often this week than in the four weeks before.
///
/// With `L` loops in `S` sessions this week and `L0` in `S0` before, chance would make `m = S * max(L0, 1) / S0` loops.
/// It is a rise if `L` is at least 5, `L / S` is more than twice `L0 / S0`, and the probability of `L` or more events of a
/// Poisson distribution with mean `m` is below 0.01.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rise {
    /// The Monday that the week starts with.
    pub week: String,
    /// The project.
    pub project: String,
    /// The agent.
    pub agent: String,
    /// The model.
    pub model: String,
    /// Loops this week.
    pub loops: u64,
    /// Sessions this week.
    pub sessions: u64,
    /// Loops per 100 sessions this week.
    pub per_100: f64,
    /// Loops per 100 sessions in the four weeks before.
    pub per_100_before: f64,
    /// The probability of so many loops or more if nothing had changed.
    pub chance: f64,
}

/// Returns the rise of the last week of a group, if there is one.
#[expect(clippy::cast_precision_loss, reason = "counts of sessions")]
pub(super) fn rise_of(group: &WeeklyLoops, week: &str) -> Option<Rise> {
    let last = group.loops.len().checked_sub(1)?;
    let before = last.saturating_sub(BEFORE)..last;
    let (loops, sessions) = (group.loops[last], group.sessions[last]);
    let loops_before = group.loops[before.clone()].iter().sum::<u64>() as f64;
    let sessions_before = group.sessions[before].iter().sum::<u64>() as f64;
    if loops < LOOPS || sessions == 0 || sessions_before == 0.0 {
        return None;
    }
    let (rate, rate_before) = (loops as f64 / sessions as f64, loops_before / sessions_before);
    let mean = sessions as f64 * loops_before.max(1.0) / sessions_before;
    let chance = at_least(loops, mean);
    (rate > TIMES * rate_before && chance < CHANCE).then(|| Rise {
        week: week.to_owned(),
        project: group.project.clone(),
        agent: group.agent.clone(),
        model: group.model.clone(),
        loops,
        sessions,
        per_100: 100.0 * rate,
        per_100_before: 100.0 * rate_before,
        chance,
    })
}

/// Returns the probability of at least `count` events when `mean` are expected.
#[expect(clippy::cast_precision_loss, reason = "counts of loops")]
fn at_least(count: u64, mean: f64) -> f64 {
    let mut log_term = -mean;
    let mut below = if count == 0 { 0.0 } else { log_term.exp() };
    for n in 1..count.min(1_000_000) {
        log_term += (mean / n as f64).ln();
        below += log_term.exp();
    }
    (1.0 - below).max(0.0)
}

/// Returns the rises of this week, each to the one server that asks first.
///
/// # Errors
/// When the shared records fail.
pub(crate) fn rises(records: &dyn SharedRecords, now: Millis) -> Result<Vec<Rise>, StoreError> {
    let report = weekly(records, None, BEFORE + 1, now)?;
    let mut found = Vec::new();
    for rise in report.groups.into_iter().filter_map(|group| group.rise) {
        let name = format!("rise/{}/{}\t{}", rise.week, rise.model, rise.agent);
        if records.claim(RecordName::new(&group(&rise.project), &name), RAISED, now)? {
            found.push(rise);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group_of(sessions: &[u64], loops: &[u64]) -> WeeklyLoops {
        WeeklyLoops {
            project: "p".to_owned(),
            agent: "main".to_owned(),
            model: "m".to_owned(),
            sessions: sessions.to_vec(),
            loops: loops.to_vec(),
            terminated: vec![0; loops.len()],
            per_100: None,
            rise: None,
        }
    }

    /// The figures of any table of the Poisson distribution.
    #[test]
    fn the_probability_agrees_with_the_tables() {
        for (count, mean, expected) in
            [(0, 3.0, 1.0), (1, 1.0, 0.632_121), (5, 2.0, 0.052_653), (10, 4.0, 0.008_132)]
        {
            assert!((at_least(count, mean) - expected).abs() < 1e-5, "{count} of {mean}");
        }
    }

    #[test]
    fn a_rise_is_more_than_chance() {
        let rise =
            |sessions: &[u64], loops: &[u64]| rise_of(&group_of(sessions, loops), "w").map(|r| r.loops);
        assert_eq!(rise(&[10, 10, 10, 10, 10], &[1, 0, 1, 0, 6]), Some(6));
        assert_eq!(rise(&[10, 10, 10, 10, 10], &[1, 0, 1, 0, 4]), None, "too few");
        assert_eq!(rise(&[10, 10, 10, 10, 60], &[1, 0, 1, 0, 6]), None, "more sessions");
        assert_eq!(rise(&[100; 5], &[20, 20, 20, 20, 36]), None, "not twice as many");
        assert_eq!(rise(&[0, 0, 0, 0, 10], &[0, 0, 0, 0, 9]), None, "nothing to compare with");
        assert_eq!(rise(&[10, 10, 10, 10, 10], &[0, 0, 0, 0, 5]), Some(5), "one loop is assumed");
        assert_eq!(rise(&[2, 0, 0, 0, 10], &[1, 0, 0, 0, 11]), None, "few sessions before: 5 are expected");
        assert_eq!(rise(&[], &[]), None);
        // Older weeks than four don't count.
        assert_eq!(rise(&[10, 10, 10, 10, 10, 10], &[50, 0, 0, 0, 0, 6]), Some(6));
    }
}
