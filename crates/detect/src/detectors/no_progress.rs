use deloop_types::{Evidence, Finding, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Run;
use crate::{Detector, Happening, Moment, ToolKind, short_hash};

/// The same call with the same outcome, in a row.
pub(crate) struct NoProgress;

/// How [`NoProgress`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From how many such calls in a row on it is a finding.
    at: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { at: 3 }
    }
}

impl Detector for NoProgress {
    type Params = Params;
    type Memory = Run;

    fn name(&self) -> &'static str {
        "no-progress"
    }

    fn page(&self) -> &'static str {
        include_str!("no-progress.md")
    }

    fn look(&self, params: &Params, moment: &Moment<'_>, run: &mut Run) -> Option<Finding> {
        let Happening::Result(result) = &moment.event else { return None };
        let record = &result.record;
        if record.kind == ToolKind::Poll || record.outcome == Some(Outcome::Running) {
            run.end();
            return None;
        }
        let mut key = record.signature.short().to_le_bytes().to_vec();
        key.extend(record.output.to_le_bytes());
        key.push(u8::from(record.outcome.is_some_and(Outcome::failed)));
        run.extend(short_hash(&key), record.step);
        let tool = moment.history.tool(record);
        (run.count >= params.at).then(|| Finding {
            detector: self.name().to_owned(),
            count: run.count,
            period: 1,
            score: 1.0,
            since: run.since,
            tool: Some(tool.to_owned()),
            summary: format!("{} gave the same result {} times in a row", crate::clean(tool, 40), run.count),
            evidence: Evidence {
                pattern: record.signature.short(),
                at: record.ordinal,
                hard: true,
                ..Evidence::default()
            },
        })
    }
}
