use deloop_types::{Evidence, Finding, Repeats};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Detector, Happening, Moment, short_hash};

/// Finds money that is spent while nothing new comes, however slowly.
pub(crate) struct IdleSpend;

/// Parameters of [`IdleSpend`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct IdleSpendParams {
    /// Dollars that may be spent in a row without anything new; 0 means no limit.
    usd: f64,
    /// Minimum number of calls and replies that brought nothing new.
    least: u64,
}

impl Default for IdleSpendParams {
    fn default() -> Self {
        Self { usd: 20.0, least: 6 }
    }
}

/// The percentages of the limit at which a finding becomes more serious.
const STAGES: [u64; 3] = [40, 70, 100];

impl Detector for IdleSpend {
    type Params = IdleSpendParams;
    type Memory = ();

    fn name(&self) -> &'static str {
        "idle-spend"
    }

    #[cfg(feature = "schema")]
    fn schema(&self) -> serde_json::Value {
        schemars::schema_for!(IdleSpendParams).to_value()
    }

    fn page(&self) -> &'static str {
        include_str!("idle-spend.md")
    }

    fn look(&self, params: &Self::Params, moment: &Moment<'_>, (): &mut ()) -> Option<Finding> {
        let looks = match &moment.event {
            Happening::Turn(turn) => turn.calls.is_empty(),
            Happening::Result(_) | Happening::User(_) => true,
            _ => false,
        };
        let stretch = moment.history.stretch();
        let all = [stretch.calls, stretch.replies, stretch.notes];
        let count: u64 = all.into_iter().map(u64::from).sum();
        if !looks || params.usd <= 0.0 || count < params.least {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small percentage")]
        let percent = (stretch.usd / params.usd * 100.0).min(1e9) as u64;
        let severity = STAGES.iter().filter(|stage| percent >= **stage).count() as u64;
        (severity > 0).then(|| {
            let mut found = Finding::new(self.name(), percent).by_rule("usd");
            found.score = 1.0;
            found.since = stretch.began().into();
            found.repeats = Repeats::IdleSpend;
            found.pattern = (short_hash(b"idle-spend") ^ u64::from(moment.history.requests())).into();
            found.evidence = Evidence {
                at: moment.history.turns(),
                severity,
                fields: vec![("usd", format!("{:.2}", stretch.usd)), ("times", count.to_string())],
                hard: true,
                ..Evidence::default()
            };
            found
        })
    }
}
