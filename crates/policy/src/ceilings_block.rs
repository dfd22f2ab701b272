use deloop_detect::UsageAmounts;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::DocumentError;

/// How much one session, and one project per day, may use. 0 means no limit. At 80 % people are warned; at 100 % the next
/// call is refused, and a person is asked or the run is stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct CeilingsBlock {
    /// Dollars per session. Requests to models without a price don't count.
    pub usd: Option<f64>,
    /// Tokens per session: input, output and cache writes, and a tenth of the cache reads.
    pub tokens: Option<u64>,
    /// Turns per session, those of subagents included.
    pub turns: Option<u64>,
    /// Subagents per session.
    pub subagents: Option<u64>,
    /// Minutes of active time per session.
    pub minutes: Option<f64>,
    /// Dollars per project and day (UTC).
    pub day_usd: Option<f64>,
    /// Input and output tokens per project and day.
    pub day_tokens: Option<u64>,
    /// Turns per project and day.
    pub day_turns: Option<u64>,
    /// Subagents per project and day.
    pub day_subagents: Option<u64>,
    /// Minutes of active time per project and day, all its sessions together.
    pub day_minutes: Option<f64>,
}

impl CeilingsBlock {
    /// Returns the limits of one session.
    #[must_use]
    pub fn session(&self) -> UsageAmounts {
        UsageAmounts {
            tokens: self.tokens.unwrap_or(0),
            usd: self.usd.unwrap_or(0.0),
            steps: 0,
            turns: self.turns.unwrap_or(0),
            subagents: self.subagents.unwrap_or(0),
            minutes: self.minutes.unwrap_or(0.0),
        }
    }

    /// Returns the limits of one project per day.
    #[must_use]
    pub fn day(&self) -> UsageAmounts {
        UsageAmounts {
            tokens: self.day_tokens.unwrap_or(0),
            usd: self.day_usd.unwrap_or(0.0),
            steps: 0,
            turns: self.day_turns.unwrap_or(0),
            subagents: self.day_subagents.unwrap_or(0),
            minutes: self.day_minutes.unwrap_or(0.0),
        }
    }

    /// Adds the limits of a session to the parameters of the detector that watches them. Parameters that are set there
    /// take precedence.
    pub(crate) fn apply(&self, params: &mut Map<String, Value>) {
        let limits = [
            ("usd", json!(self.usd)),
            ("tokens", json!(self.tokens)),
            ("turns", json!(self.turns)),
            ("subagents", json!(self.subagents)),
            ("minutes", json!(self.minutes)),
        ];
        for (key, limit) in limits.into_iter().filter(|(_, limit)| !limit.is_null()) {
            params.entry(key).or_insert(limit);
        }
    }

    /// Returns what is wrong with the values.
    pub(crate) fn check(&self) -> Result<(), DocumentError> {
        let parts = [
            ("usd", self.usd),
            ("minutes", self.minutes),
            ("day_usd", self.day_usd),
            ("day_minutes", self.day_minutes),
        ];
        match parts.into_iter().find(|(_, limit)| limit.is_some_and(|n| !n.is_finite() || n < 0.0)) {
            Some((key, _)) => Err(DocumentError(format!("`ceilings.{key}` must be 0 (no limit) or more"))),
            None => Ok(()),
        }
    }
}
