use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Moment, short_call};

/// Finds a call that many workers of a swarm make.
pub(crate) struct SwarmRepeat;

/// Parameters of [`SwarmRepeat`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SwarmRepeatParams {
    /// Number of calls across the swarm that make a finding.
    at: u64,
    /// Minimum number of different workers.
    workers: u64,
    /// Whether to count only calls that failed or found nothing.
    in_vain: bool,
}

impl Default for SwarmRepeatParams {
    fn default() -> Self {
        Self { at: 10, workers: 2, in_vain: false }
    }
}

impl Detector for SwarmRepeat {
    type Params = SwarmRepeatParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "swarm-repeat"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(SwarmRepeatParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("swarm-repeat.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let Happening::Call(call) = &moment.event else { return None };
        let swarm = call.swarm?;
        let (count, workers) = match params.in_vain {
            true => (swarm.in_vain, swarm.in_vain_workers),
            false => (swarm.calls, swarm.workers),
        };
        if count < params.at || workers < params.workers {
            return None;
        }
        let short = short_call(&call.call.tool, &call.call.args);
        Some({
            let mut found = Finding::new(self.name(), count).by_rule("at");
            found.period = 1;
            found.score = 1.0;
            found.since = moment.step;
            found.tool = Some(call.call.tool.clone());
            found.repeats = Repeats::Swarm;
            found.calls = vec![short];
            found.pattern = call.target().short().into();
            found.evidence = Evidence {
                at: call.record.ordinal.into(),
                fields: vec![("workers", workers.to_string())],
                ..Evidence::default()
            };
            found
        })
    }
}
