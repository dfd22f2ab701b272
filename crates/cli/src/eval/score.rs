//! Precision, recall and F1 over labelled sessions.

use serde::Serialize;

use crate::eval::alarm::Alarm;
use crate::eval::judge::Judged;
use crate::eval::label::Class;

/// How well loops are told from honest work, session by session.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Score {
    /// Labelled sessions that are not borderline.
    pub(crate) sessions: u64,
    /// Those with at least one loop.
    pub(crate) positives: u64,
    /// Those with at least one loop found.
    pub(crate) hits: u64,
    pub(crate) healthy: u64,
    pub(crate) healthy_alarms: u64,
    /// Sessions with a false alarm, loops or not.
    pub(crate) false_alarms: u64,
    /// Sessions with a false alarm that asked, blocked or stopped.
    pub(crate) false_hard: u64,
    pub(crate) precision: f64,
    pub(crate) recall: f64,
    pub(crate) f1: f64,
    /// The 95 % interval of F1.
    pub(crate) f1_low: f64,
    pub(crate) f1_high: f64,
}

impl Score {
    pub(crate) fn of(all: &[&Judged]) -> Self {
        let all: Vec<ScoredSession> = all.iter().filter_map(|j| ScoredSession::of(j)).collect();
        let count = |keep: &dyn Fn(&ScoredSession) -> bool| all.iter().filter(|s| keep(s)).count() as u64;
        let mut score = Self {
            sessions: all.len() as u64,
            positives: count(&|s| s.positive),
            hits: count(&|s| s.hit),
            healthy: count(&|s| !s.positive),
            healthy_alarms: count(&|s| !s.positive && s.false_alarm),
            false_alarms: count(&|s| s.false_alarm),
            false_hard: count(&|s| s.false_hard),
            ..Self::default()
        };
        (score.precision, score.recall, score.f1) = rates(score.hits, score.false_alarms, score.positives);
        (score.f1_low, score.f1_high) = interval(&all);
        score
    }
}

struct ScoredSession {
    positive: bool,
    hit: bool,
    false_alarm: bool,
    false_hard: bool,
}

impl ScoredSession {
    fn of(judged: &Judged) -> Option<Self> {
        (judged.about.labelled && judged.class != Class::Borderline).then(|| Self {
            positive: judged.class == Class::Loop,
            hit: judged.hit(),
            false_alarm: judged.false_alarms().next().is_some(),
            false_hard: judged.false_alarms().any(Alarm::hard),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of sessions")]
fn rates(hits: u64, alarms: u64, positives: u64) -> (f64, f64, f64) {
    let share = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
    let f1 = share(2 * hits, 2 * hits + alarms + (positives - hits));
    (share(hits, hits + alarms), share(hits, positives), f1)
}

/// A 95 % interval of F1: 1,000 resamples of the sessions, with a fixed seed so that it is the same each time.
fn interval(all: &[ScoredSession]) -> (f64, f64) {
    if all.is_empty() {
        return (0.0, 0.0);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut scores: Vec<f64> = (0..1000)
        .map(|_| {
            let (mut hits, mut alarms, mut positives) = (0, 0, 0);
            for _ in 0..all.len() {
                #[expect(clippy::cast_possible_truncation, reason = "less than the number of sessions")]
                let one = &all[(random() % all.len() as u64) as usize];
                positives += u64::from(one.positive);
                hits += u64::from(one.hit);
                alarms += u64::from(one.false_alarm);
            }
            rates(hits, alarms, positives).2
        })
        .collect();
    scores.sort_by(f64::total_cmp);
    (scores[25], scores[974])
}
