use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Moment};

/// Finds sessions that have used most or all of their budget.
pub(crate) struct OverBudget;

/// Parameters of [`OverBudget`]. A limit of 0 means no limit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OverBudgetParams {
    /// Maximum number of input and output tokens, without cache reads and writes.
    tokens: u64,
    /// Maximum cost in dollars.
    usd: f64,
    /// Maximum number of steps.
    steps: u64,
    /// Maximum number of minutes between the first and the last step.
    minutes: f64,
    /// Percentage of a limit that makes a finding.
    at: u64,
}

impl Default for OverBudgetParams {
    fn default() -> Self {
        Self { tokens: 0, usd: 0.0, steps: 0, minutes: 0.0, at: 80 }
    }
}

impl Detector for OverBudget {
    type Params = OverBudgetParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "over-budget"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(OverBudgetParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("over-budget.md")
    }

    #[expect(clippy::cast_precision_loss, reason = "percents need no more")]
    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        // The calls of a turn use nothing that the turn did not.
        if matches!(moment.event, Happening::Call(_)) {
            return None;
        }
        let ledger = moment.ledger;
        let parts = [
            ("tokens", ledger.tokens as f64, params.tokens as f64),
            ("dollars", ledger.usd, params.usd),
            ("steps", ledger.steps as f64, params.steps as f64),
            ("minutes", ledger.minutes(), params.minutes),
        ];
        let share = |part: &(&str, f64, f64)| if part.2 > 0.0 { part.1 / part.2 } else { 0.0 };
        let most = parts.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let percent = (share(most) * 100.0).floor() as u64;
        (params.at > 0 && percent >= params.at).then(|| {
            let (unit, used, limit) = *most;
            let amount = |n: f64| if unit == "dollars" { format!("{n:.2}") } else { format!("{n:.0}") };
            {
                let mut found = Finding::new(self.name(), percent);
                found.period = 0;
                found.score = 1.0;
                found.since = 0;
                found.repeats = Repeats::Budget;
                found.evidence = Evidence {
                    fields: vec![("unit", unit.to_owned()), ("used", amount(used)), ("limit", amount(limit))],
                    hard: true,
                    ..Evidence::default()
                };
                found
            }
        })
    }
}
