use deloop_types::{Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::{finding, turns};
use crate::{CallRecord, Detector, Ending, Happening, Moment, short_hash};

/// Finds similar searches that all find nothing.
pub(crate) struct EmptySearch;

/// Parameters of [`EmptySearch`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EmptySearchParams {
    /// Number of similar searches that make a finding.
    at: u64,
    /// Share of words that two searches must have in common to be similar, 0 to 1.
    alike: f64,
    /// Share of the calls in between that must have found nothing or brought nothing new, 0 to 1.
    share: f64,
    /// Window, in turns.
    within: u32,
}

impl Default for EmptySearchParams {
    fn default() -> Self {
        Self { at: 5, alike: 0.5, share: 0.8, within: 20 }
    }
}

impl Detector for EmptySearch {
    type Params = EmptySearchParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "empty-search"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(EmptySearchParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("empty-search.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let Happening::Result(result) = &moment.event else { return None };
        let (record, history) = (&result.record, moment.history);
        let empty = |r: &CallRecord| r.ending == Ending::Empty && r.searches();
        if !empty(record) {
            return None;
        }
        // What is looked for must be known: different questions may well have no answer, one after the other.
        let words = history.words(record).filter(|words| !words.is_empty())?;
        let alike = |r: &&CallRecord| {
            empty(r)
                && (r.tool, r.program) == (record.tool, record.program)
                && r.turn.saturating_add(params.within) > record.turn
                && history.words(r).is_some_and(|other| words.likeness(other) >= params.alike)
        };
        let group: Vec<&CallRecord> = history.of_this_request().filter(alike).collect();
        let lately = usize::try_from(params.at).unwrap_or(0) + 2;
        let (mut all, mut barren) = (0.0, 0.0);
        for one in history.recent().iter().rev().filter(|r| r.ending.tells()).take(lately) {
            all += 1.0;
            barren += f64::from(u8::from(empty(one) || one.progress.nothing_new()));
        }
        let enough = turns(group.iter().copied()) >= params.at && barren >= params.share * all;
        enough.then(|| {
            let mut found = finding(
                (self.name(), "at"),
                moment,
                record,
                &group,
                short_hash(&record.program.to_le_bytes()),
            );
            found.repeats = Repeats::Search;
            found
        })
    }
}
