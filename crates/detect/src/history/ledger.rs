use deloop_types::{Millis, Step, Usage};
use serde::{Deserialize, Serialize};

use super::ActiveTime;
use crate::UsageAmounts;

/// How many cache reads count as one token toward a ceiling: most vendors charge a tenth of the price for them.
const CACHE_READS_PER_TOKEN: u64 = 10;

/// Returns the tokens of a request that count toward a ceiling: input, output and cache writes, and a tenth of the cache
/// reads. Every request reads the whole conversation from the cache again, so at full count the reads would hide all else.
#[must_use]
pub fn limited_tokens(usage: &Usage) -> u64 {
    let cache_reads = usage.cache_read_tokens / CACHE_READS_PER_TOKEN;
    let parts = [usage.input_tokens, usage.output_tokens, usage.cache_write_tokens, cache_reads];
    parts.into_iter().fold(0, u64::saturating_add)
}

/// Tokens, dollars, steps and time of a whole session, including its subagents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ledger {
    /// Number of steps so far, including the current one.
    pub steps: u64,
    /// Tokens so far, with cache reads at their share of the price ([`limited_tokens`]).
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
    /// The time in which it did something.
    #[serde(default)]
    pub active: ActiveTime,
    /// Turns of all agents before the current step.
    #[serde(default)]
    pub turns: u64,
    /// Subagents so far.
    #[serde(default)]
    pub subagents: u64,
    /// How often a person let the session continue after it had reached a limit.
    #[serde(default)]
    pub raises: u32,
    /// The step of the last time.
    #[serde(default)]
    pub raised_at: u64,
    /// Whether people were warned about a limit since then.
    #[serde(default)]
    pub warned: bool,
    /// The first step that was asked about or stopped because of a limit, until a person lets the session continue.
    #[serde(default)]
    pub reached_at: Option<u64>,
}

impl Ledger {
    /// Counts a step and records its time. If the clock goes backwards, the start moves, so the duration never shrinks.
    pub fn tick(&mut self, step: &Step) {
        self.steps += 1;
        self.active.enter(step);
        if let Some(ts) = step.ts {
            self.first = Some(self.first.map_or(ts, |first| first.min(ts)));
            self.last = Some(self.last.map_or(ts, |last| last.max(ts)));
        }
    }

    /// Adds the usage of a request to the model. Sums saturate, so that a checkpoint can hold them.
    pub fn charge(&mut self, usage: &Usage) {
        self.tokens = self.tokens.saturating_add(limited_tokens(usage));
        self.all_tokens = self.all_tokens.saturating_add(usage.all_tokens());
        self.usd = (self.usd + usage.dollars().unwrap_or(0.0)).min(f64::MAX);
    }

    /// Raises the limits, because a person let the session continue at `step` after it had reached one.
    pub fn raise(&mut self, step: u64) {
        if self.reached_at.take().is_some() {
            self.raises = self.raises.saturating_add(1);
            self.raised_at = step;
            self.warned = false;
        }
    }

    /// Returns what can be limited.
    #[must_use]
    pub fn amounts(&self) -> UsageAmounts {
        UsageAmounts {
            tokens: self.tokens,
            usd: self.usd,
            steps: self.steps,
            turns: self.turns,
            subagents: self.subagents,
            minutes: self.active.minutes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_amount_of_money_lowers_no_sum() {
        let mut ledger = Ledger::default();
        for cost in [2.0, -5.0, f64::NAN, f64::NEG_INFINITY] {
            ledger.charge(&usage(cost));
            assert!((ledger.usd - 2.0).abs() < f64::EPSILON, "{cost}: {}", ledger.usd);
        }
        ledger.charge(&usage(f64::INFINITY));
        assert!(ledger.usd.is_finite(), "a checkpoint can hold it");
    }

    fn usage(cost: f64) -> Usage {
        let mut usage = Usage::default();
        usage.cost_usd = Some(cost);
        usage
    }
}
