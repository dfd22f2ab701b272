use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Moment, UsageAmounts};

/// The percentage at which a limit is reached.
const EXHAUSTED: u64 = 100;

/// Finds sessions that have used most or all of their budget.
pub(crate) struct OverBudget;

/// Parameters of [`OverBudget`]. A limit of 0 means no limit.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OverBudgetParams {
    /// Maximum number of tokens: input, output and cache writes, and a tenth of the cache reads.
    tokens: u64,
    /// Maximum cost in dollars.
    usd: f64,
    /// Maximum number of steps.
    steps: u64,
    /// Maximum number of minutes in which the session did something.
    minutes: f64,
    /// Maximum number of turns, those of subagents included.
    turns: u64,
    /// Maximum number of subagents.
    subagents: u64,
    /// Percentage of a limit that makes a finding.
    at: u64,
}

impl Default for OverBudgetParams {
    fn default() -> Self {
        Self { tokens: 0, usd: 0.0, steps: 0, minutes: 0.0, turns: 0, subagents: 0, at: 80 }
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

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let ledger = moment.ledger;
        let OverBudgetParams { tokens, usd, steps, minutes, turns, subagents, at } = *params;
        let limits = UsageAmounts { tokens, usd, steps, turns, subagents, minutes };
        if limits == UsageAmounts::default() {
            return None;
        }
        let closest = ledger.amounts().closest(&limits, ledger.raises)?;
        let percent = closest.percent();
        // The calls of a turn use nothing that the turn did not, but they are what can be refused.
        let is_due = match moment.event {
            Happening::Call(_) => percent >= EXHAUSTED,
            _ if percent < EXHAUSTED && ledger.warned => false,
            _ => at > 0 && percent >= at,
        };
        is_due.then(|| {
            let mut found = Finding::new(self.name(), percent).by_rule(closest.key);
            found.period = 0;
            found.score = 1.0;
            found.since = ledger.raised_at;
            found.repeats = Repeats::Budget;
            found.pattern = u64::from(ledger.raises).into();
            found.evidence = Evidence {
                fields: vec![
                    ("unit", closest.unit.to_owned()),
                    ("used", closest.amount(closest.used)),
                    ("limit", closest.amount(closest.limit)),
                    ("setting", closest.key.to_owned()),
                ],
                hard: true,
                ..Evidence::default()
            };
            found
        })
    }
}
