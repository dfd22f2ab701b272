//! Rates over all sessions, with or without a label.

use serde::Serialize;

use crate::eval::alarm::{Alarm, Worth};
use crate::eval::judge::Judged;
use crate::eval::label::Class;
use crate::eval::poisson;

/// What a profile finds, and how often it disturbs honest work.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Rates {
    pub(crate) sessions: u64,
    /// Those of them without a label.
    pub(crate) unlabelled: u64,
    pub(crate) turns: u64,
    pub(crate) calls: u64,
    pub(crate) episodes: u64,
    pub(crate) episodes_found: u64,
    pub(crate) alarms_right: u64,
    pub(crate) alarms_borderline: u64,
    pub(crate) alarms_false: u64,
    /// Alarms after the end of a loop, which count for nothing.
    pub(crate) alarms_late: u64,
    pub(crate) false_per_1000_calls: f64,
    /// The 95 % interval of that, exact for a Poisson process.
    pub(crate) false_per_1000_low: f64,
    pub(crate) false_per_1000_high: f64,
    /// Right alarms as a share of the right and the false ones.
    pub(crate) alarm_precision: Option<f64>,
    /// Alarms that asked, blocked or stopped.
    pub(crate) hard_right: u64,
    pub(crate) hard_false: u64,
    pub(crate) healthy: u64,
    pub(crate) healthy_alarmed: u64,
    pub(crate) healthy_alarmed_share: f64,
    /// Turns from the onset of a loop to the first fire in it.
    pub(crate) median_delay: Option<i64>,
}

impl Rates {
    #[expect(clippy::cast_precision_loss, reason = "counts of calls and alarms")]
    pub(crate) fn of(all: &[&Judged]) -> Self {
        let alarms = |keep: &dyn Fn(&Alarm) -> bool| {
            all.iter().flat_map(|j| &j.alarms).filter(|a| keep(a)).count() as u64
        };
        let sessions = |keep: &dyn Fn(&Judged) -> bool| all.iter().filter(|j| keep(j)).count() as u64;
        let mut rates = Self {
            sessions: all.len() as u64,
            unlabelled: sessions(&|j| !j.about.labelled),
            turns: all.iter().map(|j| j.about.turns).sum(),
            calls: all.iter().map(|j| j.about.calls).sum(),
            episodes: all.iter().map(|j| j.episodes.len() as u64).sum(),
            episodes_found: all.iter().flat_map(|j| &j.episodes).filter(|e| e.found).count() as u64,
            alarms_right: alarms(&|a| a.worth == Worth::Right),
            alarms_borderline: alarms(&|a| a.worth == Worth::Borderline),
            alarms_false: alarms(&|a| a.worth == Worth::False),
            alarms_late: alarms(&|a| a.worth == Worth::Late),
            hard_right: alarms(&|a| a.worth == Worth::Right && a.hard()),
            hard_false: alarms(&|a| a.worth == Worth::False && a.hard()),
            healthy: sessions(&|j| j.class == Class::Healthy),
            healthy_alarmed: sessions(&|j| j.class == Class::Healthy && j.false_alarms().next().is_some()),
            ..Self::default()
        };
        if rates.calls > 0 {
            let thousands = rates.calls as f64 / 1000.0;
            let (low, high) = poisson::interval(rates.alarms_false);
            rates.false_per_1000_calls = rates.alarms_false as f64 / thousands;
            (rates.false_per_1000_low, rates.false_per_1000_high) = (low / thousands, high / thousands);
        }
        if rates.healthy > 0 {
            rates.healthy_alarmed_share = rates.healthy_alarmed as f64 / rates.healthy as f64;
        }
        let counted = rates.alarms_right + rates.alarms_false;
        rates.alarm_precision = (counted > 0).then(|| rates.alarms_right as f64 / counted as f64);
        let mut delays: Vec<i64> = all.iter().flat_map(|j| &j.episodes).filter_map(|e| e.delay).collect();
        delays.sort_unstable();
        rates.median_delay = delays.get(delays.len() / 2).copied();
        rates
    }
}
