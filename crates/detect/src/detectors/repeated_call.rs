use deloop_types::{Evidence, Finding, Millis, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::WarnedRun;
use crate::{Detector, Happening, Moment, Streak, short_call};

/// Finds the same tool called with identical arguments in a row.
pub(crate) struct RepeatedCall;

/// Parameters of [`RepeatedCall`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RepeatedCallParams {
    /// Number of identical calls in a row that make a finding.
    at: u64,
}

impl Default for RepeatedCallParams {
    fn default() -> Self {
        Self { at: 3 }
    }
}

impl Detector for RepeatedCall {
    type Params = RepeatedCallParams;
    type Memory = WarnedRun;

    fn name(&self) -> &'static str {
        "repeated-call"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(RepeatedCallParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("repeated-call.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut WarnedRun) -> Option<Finding> {
        let Happening::Call(call) = &moment.event else { return None };
        let run = &mut memory.run;
        run.extend(call.signature.short(), moment.step);
        (run.count >= params.at).then(|| {
            let short = short_call(&call.call.tool, &call.call.args);
            {
                let mut found = Finding::new(self.name(), run.count).by_rule("at");
                found.period = 1;
                found.score = 1.0;
                found.since = run.since;
                found.tool = Some(call.call.tool.clone());
                found.repeats = Repeats::Call;
                found.calls = vec![short];
                found.pattern = run.of.into();
                found.evidence = Evidence { at: call.record.ordinal.into(), ..Evidence::default() };
                found
            }
        })
    }

    fn streak(&self, params: &Self::Params, memory: &WarnedRun) -> Option<Streak> {
        Some(memory.streak(params.at))
    }

    fn warned(&self, memory: &mut WarnedRun, at: Millis) {
        memory.warned = Some(at);
    }
}
