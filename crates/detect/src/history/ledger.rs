use deloop_types::{Millis, Usage};
use serde::{Deserialize, Serialize};

/// Tokens, dollars, steps and time of a whole session, including its subagents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ledger {
    /// Number of steps so far, including the current one.
    pub steps: u64,
    /// Input and output tokens so far, without cache reads and writes.
    pub tokens: u64,
    /// All tokens so far.
    #[serde(default)]
    pub all_tokens: u64,
    /// Cost in dollars so far, as reported by the steps.
    pub usd: f64,
    /// The earliest time seen.
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>"))]
    pub first: Option<Millis>,
    /// The latest time seen.
    #[cfg_attr(feature = "schema", schemars(with = "Option<i64>"))]
    pub last: Option<Millis>,
}

impl Ledger {
    /// Records a step's time. If the clock goes backwards, the start moves, so the duration never shrinks.
    pub fn tick(&mut self, ts: Option<Millis>) {
        self.steps += 1;
        if let Some(ts) = ts {
            self.first = Some(self.first.map_or(ts, |first| first.min(ts)));
            self.last = Some(self.last.map_or(ts, |last| last.max(ts)));
        }
    }

    /// Adds the usage of a request to the model. Sums saturate, so that a checkpoint can hold them.
    pub fn charge(&mut self, usage: &Usage) {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        self.tokens = self.tokens.saturating_add(tokens);
        self.all_tokens = self.all_tokens.saturating_add(usage.all_tokens());
        self.usd = (self.usd + usage.cost_usd.unwrap_or(0.0)).clamp(f64::MIN, f64::MAX);
    }

    /// Returns the minutes between the earliest and the latest step.
    #[must_use]
    pub fn minutes(&self) -> f64 {
        match (self.first, self.last) {
            #[expect(clippy::cast_precision_loss, reason = "minutes need no more")]
            (Some(first), Some(last)) => last.since(first) as f64 / 60_000.0,
            _ => 0.0,
        }
    }
}
