use deloop_types::{Finding, Origin, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::finding;
use crate::fingerprint::half;
use crate::{CallRecord, Detector, Ending, Happening, Moment, Progress, Ring, ToolKind, short_hash};

/// Maximum number of outcomes remembered. If the rounds have more of them, repetitions go unnoticed.
const OUTCOMES: usize = 400;

/// Finds rounds between compactions that bring nothing new.
pub(crate) struct CompactionSpiral;

/// Parameters of [`CompactionSpiral`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CompactionSpiralParams {
    /// Number of rounds in a row without anything new that make a finding.
    at: u64,
    /// Share of a round's outcomes that must be unknown from earlier rounds for the round to bring something new, 0 to 1.
    share: f64,
}

impl Default for CompactionSpiralParams {
    fn default() -> Self {
        Self { at: 2, share: 0.2 }
    }
}

/// What is remembered from the first compaction on.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SpiralRounds {
    /// Hashes of the outcomes since the first compaction, oldest first, each once.
    seen: Ring<u32>,
    /// The round in progress.
    round: SpiralRound,
    /// The step of the compaction that began it, and the index of its first call.
    began: u64,
    first: u64,
    /// The number of requests at the last message.
    requests: u16,
    /// Number of rounds in a row that brought nothing new, and the step at which the first of them began.
    stale: u64,
    since: u64,
    /// Whether a round is over. The first one after the first compaction may read everything again.
    forgiven: bool,
}

/// What happened since the last compaction.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SpiralRound {
    /// Number of calls, with and without results.
    calls: u32,
    /// Number of different outcomes that weren't there in earlier rounds.
    new: u32,
    /// Number of outcomes that were.
    old: u32,
    /// Whether a person asked for something new.
    news: bool,
    /// Whether something changed, and no call has failed since as it did in earlier rounds.
    changed: bool,
    /// Whether a call waits for something.
    waits: bool,
}

/// What a round shows.
#[derive(PartialEq, Eq)]
enum RoundVerdict {
    News,
    Nothing,
    /// It waits, or its results aren't known.
    Unknown,
}

impl Detector for CompactionSpiral {
    type Params = CompactionSpiralParams;
    /// Empty before the first compaction.
    type Memory = Option<Box<SpiralRounds>>;

    fn name(&self) -> &'static str {
        "compaction-spiral"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(CompactionSpiralParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("compaction-spiral.md")
    }

    fn remembers(&self, memory: &Self::Memory) -> bool {
        memory.is_some()
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding> {
        let Some(rounds) = memory else {
            if matches!(moment.event, Happening::Compact) {
                let rounds = memory.insert(Box::default());
                let before = moment.history.recent().iter().filter_map(outcome_of);
                before.for_each(|hash| rounds.seen.push(hash, OUTCOMES));
                rounds.begin(moment);
            }
            return None;
        };
        match &moment.event {
            Happening::Call(_) => rounds.round.calls += 1,
            Happening::Result(result) => rounds.outcome(&result.record),
            Happening::User(user) => {
                let requests = moment.history.requests();
                rounds.round.news |= user.origin == Origin::Human && rounds.requests != requests;
                rounds.requests = requests;
            }
            Happening::Compact => return self.round_over(params, moment, rounds),
            _ => {}
        }
        None
    }
}

impl CompactionSpiral {
    fn round_over(
        &self,
        params: &CompactionSpiralParams,
        moment: &Moment<'_>,
        rounds: &mut SpiralRounds,
    ) -> Option<Finding> {
        let verdict = match std::mem::replace(&mut rounds.forgiven, true) {
            true => rounds.round.verdict(params),
            false if rounds.round.calls > 0 => RoundVerdict::News,
            false => rounds.round.verdict(params),
        };
        if verdict == RoundVerdict::Nothing {
            if rounds.stale == 0 {
                rounds.since = rounds.began;
            }
            rounds.stale += 1;
        } else if verdict == RoundVerdict::News {
            rounds.stale = 0;
        }
        let fires = verdict == RoundVerdict::Nothing && rounds.stale >= params.at;
        let found = fires.then(|| self.found(moment, rounds));
        rounds.begin(moment);
        found
    }

    fn found(&self, moment: &Moment<'_>, rounds: &SpiralRounds) -> Finding {
        let of_round = moment.history.recent().iter().rev();
        let of_round = of_round.take_while(|r| u64::from(r.ordinal) >= rounds.first);
        let group: Vec<&CallRecord> = of_round.filter(|r| r.ending.tells()).collect();
        let pattern = short_hash(b"compaction-spiral") ^ rounds.since;
        let mut found = match group.first() {
            Some(last) => finding((self.name(), "at"), moment, last, &group, pattern),
            None => Finding::new(self.name(), 0).by_rule("at"),
        };
        found.repeats = Repeats::Compaction;
        found.count = rounds.stale;
        found.period = rounds.round.calls;
        found.score = 1.0 - rounds.round.new_share();
        found.since = rounds.since;
        (found.tool, found.outcome, found.changed) = (None, None, None);
        found.pattern = pattern.into();
        (found.evidence.hard, found.evidence.rounds) = (true, true);
        found
    }
}

impl SpiralRounds {
    fn begin(&mut self, moment: &Moment<'_>) {
        self.round = SpiralRound::default();
        self.began = moment.step;
        self.first = moment.history.calls();
        self.requests = moment.history.requests();
    }

    fn outcome(&mut self, record: &CallRecord) {
        let round = &mut self.round;
        round.changed |= record.progress == Progress::Changed;
        round.waits |= record.waits() || record.ending == Ending::Running;
        let Some(hash) = outcome_of(record) else { return };
        let of_round = usize::try_from(round.new).unwrap_or(usize::MAX);
        let known = self.seen.iter().rev().position(|seen| *seen == hash);
        match known {
            Some(back) if back < of_round => {}
            Some(_) => {
                round.old += 1;
                round.changed &= !record.ending.in_vain();
            }
            None => {
                round.new += 1;
                self.seen.push(hash, OUTCOMES);
            }
        }
    }
}

/// Returns the hash of a call and its outcome; `None` if it has none that tells anything. A change isn't an outcome: what comes
/// of it shows later.
fn outcome_of(record: &CallRecord) -> Option<u32> {
    let tells =
        !matches!(record.progress, Progress::None | Progress::Changed) && record.kind != ToolKind::Talk;
    let parts = [record.signature.to_le_bytes(), (u64::from(record.output)).to_le_bytes()];
    tells.then(|| half(short_hash(parts.as_flattened())))
}

impl SpiralRound {
    fn verdict(&self, params: &CompactionSpiralParams) -> RoundVerdict {
        if self.news || self.changed || self.new > 0 && self.new_share() >= params.share {
            RoundVerdict::News
        } else if self.waits || self.calls > 0 && self.new + self.old == 0 {
            RoundVerdict::Unknown
        } else {
            RoundVerdict::Nothing
        }
    }

    /// Returns the share of outcomes that weren't there in earlier rounds, 0 to 1.
    fn new_share(&self) -> f64 {
        let all = self.new + self.old;
        if all == 0 { 0.0 } else { f64::from(self.new) / f64::from(all) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut rounds = SpiralRounds::default();
        let record = |signature| CallRecord { signature, progress: Progress::New, ..CallRecord::default() };
        (0..3000).for_each(|signature| rounds.outcome(&record(signature)));
        assert_eq!(rounds.seen.len(), OUTCOMES);
        let json = serde_json::to_string(&rounds).unwrap();
        assert!(json.len() < 5000, "{}", json.len());
    }
}
