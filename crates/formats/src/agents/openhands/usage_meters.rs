//! Usage: the events tell what was used so far, each step is told what came on top.

use std::collections::HashMap;

use deloop_types::Usage;

use super::event::OpenhandsMetrics;

/// What was used so far, for each of the meters.
#[derive(Default)]
pub(super) struct UsageMeters {
    meters: HashMap<String, Usage>,
}

impl UsageMeters {
    /// What came on top since this meter was last read. A meter that went back was started anew.
    pub(super) fn since(&mut self, meter: &str, metrics: &OpenhandsMetrics<'_>) -> Usage {
        let now = so_far(metrics);
        let before = self.meters.entry(meter.to_owned()).or_default();
        let went_back =
            now.output_tokens < before.output_tokens || now.cache_read_tokens < before.cache_read_tokens;
        let base = if went_back { Usage::default() } else { std::mem::take(before) };
        let cost = now.cost_usd.map(|cost| rounded(cost - base.cost_usd.unwrap_or(0.0)));
        let mut fresh = Usage::default();
        fresh.model = now.model.clone();
        fresh.input_tokens = now.input_tokens.saturating_sub(base.input_tokens);
        fresh.output_tokens = now.output_tokens.saturating_sub(base.output_tokens);
        fresh.cache_read_tokens = now.cache_read_tokens.saturating_sub(base.cache_read_tokens);
        fresh.cache_write_tokens = now.cache_write_tokens.saturating_sub(base.cache_write_tokens);
        fresh.cost_usd = cost.filter(|cost| *cost > 0.0);
        *before = now;
        fresh
    }
}

/// To a billionth of a dollar, which is less than any token costs: differences of sums are not exact.
fn rounded(cost: f64) -> f64 {
    (cost * 1e9).round() / 1e9
}

fn so_far(metrics: &OpenhandsMetrics<'_>) -> Usage {
    let cost_usd = metrics.accumulated_cost.0;
    let Some(tokens) = &metrics.accumulated_token_usage.0 else {
        return {
            let mut made = Usage::default();
            made.cost_usd = cost_usd;
            made
        };
    };
    let (read, write) = (tokens.cache_read_tokens.0, tokens.cache_write_tokens.0);
    let prompt = tokens.prompt_tokens.0;
    let mut made = Usage::default();
    made.model = tokens.model.get().map(str::to_owned);
    made.input_tokens = prompt.checked_sub(read.saturating_add(write)).unwrap_or(prompt);
    made.output_tokens = tokens.completion_tokens.0;
    made.cache_read_tokens = read;
    made.cache_write_tokens = write;
    made.cost_usd = cost_usd;
    made
}
