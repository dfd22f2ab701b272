//! Precision, recall and what lies behind them.

use deloop::Action;
use serde::Serialize;

use super::label::Label;
use super::replay::Replay;

/// How one labelled session was judged.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Judged {
    pub(crate) path: String,
    pub(crate) id: Option<String>,
    pub(crate) group: String,
    pub(crate) model: String,
    pub(crate) kind: String,
    pub(crate) why: String,
    /// Whether something should have fired.
    pub(crate) positive: bool,
    /// Whether it did, where it should.
    pub(crate) hit: bool,
    /// Whether it did where it should not.
    pub(crate) false_alarm: bool,
    /// Whether a call was blocked or the run stopped where it should not.
    pub(crate) false_hard: bool,
    /// Turns from the onset to the first fire that counts.
    pub(crate) delay: Option<i64>,
    pub(crate) replay: Replay,
}

impl Judged {
    pub(crate) fn new(label: &Label, positive: bool, replay: Replay) -> Self {
        let counts = |turn: u64| positive && turn >= label.earliest() && turn <= label.latest();
        let hit = replay.fires.iter().find(|f| counts(f.turn));
        let wrong = |turn: u64| !positive || turn < label.earliest();
        let mut wrong_fires = replay.fires.iter().filter(|f| wrong(f.turn));
        let delay = hit.zip(label.onset_turn).map(|(f, onset)| f.turn.cast_signed() - onset.cast_signed());
        Self {
            path: label.path.clone(),
            id: label.id.clone(),
            group: label.group().to_owned(),
            model: replay.model.clone().unwrap_or_else(|| model_of(&label.path)),
            kind: label.kind.clone().unwrap_or_default(),
            why: label.why.clone().unwrap_or_default(),
            positive,
            hit: hit.is_some(),
            false_hard: wrong_fires.clone().any(|f| f.action >= Action::Block),
            false_alarm: wrong_fires.next().is_some(),
            delay,
            replay,
        }
    }
}

/// The folder of a file, where the corpus is sorted by model.
fn model_of(path: &str) -> String {
    let mut parts = path.rsplit('/').skip(1);
    parts.next().unwrap_or_default().to_owned()
}

/// The sums over a set of sessions.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Score {
    pub(crate) sessions: u64,
    pub(crate) positives: u64,
    pub(crate) hits: u64,
    pub(crate) healthy: u64,
    pub(crate) healthy_alarms: u64,
    pub(crate) false_alarms: u64,
    pub(crate) false_hard: u64,
    pub(crate) precision: f64,
    pub(crate) recall: f64,
    pub(crate) f1: f64,
    pub(crate) f1_low: f64,
    pub(crate) f1_high: f64,
    pub(crate) median_delay: Option<i64>,
    pub(crate) fires_per_1000_calls: f64,
}

impl Score {
    pub(crate) fn of(all: &[&Judged]) -> Self {
        let count = |f: &dyn Fn(&Judged) -> bool| all.iter().filter(|j| f(j)).count() as u64;
        let mut score = Self {
            sessions: all.len() as u64,
            positives: count(&|j| j.positive),
            hits: count(&|j| j.positive && j.hit),
            healthy: count(&|j| !j.positive),
            healthy_alarms: count(&|j| !j.positive && j.false_alarm),
            false_alarms: count(&|j| j.false_alarm),
            false_hard: count(&|j| j.false_hard),
            ..Self::default()
        };
        (score.precision, score.recall, score.f1) = rates(score.hits, score.false_alarms, score.positives);
        (score.f1_low, score.f1_high) = interval(all);
        let mut delays: Vec<i64> = all.iter().filter_map(|j| j.delay).collect();
        delays.sort_unstable();
        score.median_delay = delays.get(delays.len() / 2).copied();
        let calls: u64 = all.iter().map(|j| j.replay.calls).sum();
        let fires: usize = all.iter().map(|j| j.replay.fires.len()).sum();
        #[expect(clippy::cast_precision_loss, reason = "counts of calls")]
        if calls > 0 {
            score.fires_per_1000_calls = fires as f64 * 1000.0 / calls as f64;
        }
        score
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of sessions")]
fn rates(hits: u64, alarms: u64, positives: u64) -> (f64, f64, f64) {
    let share = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
    let f1 = share(2 * hits, 2 * hits + alarms + (positives - hits));
    (share(hits, hits + alarms), share(hits, positives), f1)
}

/// A 95 % interval of F1: 1,000 resamples of the sessions, with a fixed seed so that it comes out the same each time.
fn interval(all: &[&Judged]) -> (f64, f64) {
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
                let one = all[(random() % all.len() as u64) as usize];
                positives += u64::from(one.positive);
                hits += u64::from(one.positive && one.hit);
                alarms += u64::from(one.false_alarm);
            }
            rates(hits, alarms, positives).2
        })
        .collect();
    scores.sort_by(f64::total_cmp);
    (scores[25], scores[974])
}
