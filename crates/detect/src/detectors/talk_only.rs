use deloop_types::{Evidence, Finding};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Run;
use crate::{Detector, Happening, Moment};

/// Turns with text and no call, one after the other.
pub(crate) struct TalkOnly;

/// How [`TalkOnly`] is tuned.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Params {
    /// From how many turns without a call in a row on it is a finding.
    at: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { at: 2 }
    }
}

impl Detector for TalkOnly {
    type Params = Params;
    type Memory = Run;

    fn name(&self) -> &'static str {
        "talk-only"
    }

    fn page(&self) -> &'static str {
        include_str!("talk-only.md")
    }

    fn look(&self, params: &Params, moment: &Moment<'_>, run: &mut Run) -> Option<Finding> {
        let Happening::Turn(turn) = &moment.event else { return None };
        if !turn.calls.is_empty() {
            run.end();
            return None;
        }
        turn.said()?;
        run.extend(0, moment.step);
        (run.count >= params.at).then(|| Finding {
            detector: self.name().to_owned(),
            count: run.count,
            period: 1,
            score: 1.0,
            since: run.since,
            tool: None,
            summary: format!("{} turns in a row talked and did nothing", run.count),
            evidence: Evidence { at: moment.history.turns(), ..Evidence::default() },
        })
    }
}
