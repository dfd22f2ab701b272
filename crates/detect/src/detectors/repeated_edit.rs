use deloop_types::{Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counting::{finding, turns};
use crate::{CallRecord, Detector, Ending, Happening, Moment, ToolKind, short_hash};

/// Finds the same edit made again in another place: only its numbers differ.
pub(crate) struct RepeatedEdit;

/// Parameters of [`RepeatedEdit`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RepeatedEditParams {
    /// Number of edits that make a finding.
    at: u64,
    /// Share of words, numbers aside, that two edits must have in common to be the same, 0 to 1.
    alike: f64,
    /// Window, in turns.
    within: u32,
    /// Minimum number of words in an edit. Shorter edits aren't compared.
    words: usize,
}

impl Default for RepeatedEditParams {
    fn default() -> Self {
        Self { at: 4, alike: 0.95, within: 12, words: 8 }
    }
}

impl Detector for RepeatedEdit {
    type Params = RepeatedEditParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "repeated-edit"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(RepeatedEditParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("repeated-edit.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let Happening::Result(result) = &moment.event else { return None };
        let (record, history) = (&result.record, moment.history);
        let edits = |r: &CallRecord| {
            r.kind == ToolKind::Write
                && matches!(r.ending, Ending::Brought | Ending::Empty)
                && r.tool == record.tool
        };
        let words = history.words(record).filter(|w| w.len() >= params.words)?;
        if !edits(record) {
            return None;
        }
        let same = |r: &&CallRecord| {
            edits(r)
                && history.is_since_person(r)
                && r.turn.saturating_add(params.within) > record.turn
                && history.words(r).is_some_and(|other| words.likeness(other) >= params.alike)
        };
        let group: Vec<&CallRecord> = history.of_this_request().filter(same).collect();
        (turns(group.iter().copied()) >= params.at).then(|| {
            let mut found = finding((self.name(), "at"), moment, record, &group, short_hash(&[record.tool]));
            found.repeats = Repeats::Edit;
            found.outcome = None;
            found
        })
    }
}
