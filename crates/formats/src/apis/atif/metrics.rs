//! Tokens and costs. `prompt_tokens` includes what came from the cache and what was written to it.

use deloop_types::Usage;
use serde::Deserialize;

use crate::json::field::{self, Field};

/// Of one step.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StepMetrics<'a> {
    #[serde(borrow)]
    prompt_tokens: Field<'a>,
    #[serde(borrow)]
    completion_tokens: Field<'a>,
    #[serde(borrow)]
    cached_tokens: Field<'a>,
    #[serde(borrow)]
    cost_usd: Field<'a>,
    #[serde(borrow)]
    extra: Field<'a>,
}

/// What exporters add to the tokens of a step.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MetricsExtra<'a> {
    #[serde(borrow)]
    cache_creation_input_tokens: Field<'a>,
}

/// Of the whole run.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FinalMetrics<'a> {
    #[serde(borrow)]
    total_prompt_tokens: Field<'a>,
    #[serde(borrow)]
    total_completion_tokens: Field<'a>,
    #[serde(borrow)]
    total_cached_tokens: Field<'a>,
    #[serde(borrow)]
    total_cost_usd: Field<'a>,
}

impl StepMetrics<'_> {
    /// Returns the usage of the step.
    pub(super) fn usage(&self, model: Option<String>) -> Usage {
        let extra: MetricsExtra<'_> = field::object(self.extra).unwrap_or_default();
        let prompt = field::count(self.prompt_tokens);
        let cached = field::count(self.cached_tokens);
        let written = field::count(extra.cache_creation_input_tokens);
        let mut made = Usage::default();
        made.model = model;
        // Some exporters leave out of `prompt_tokens` what came from the cache.
        let uncached = prompt.checked_sub(cached);
        made.input_tokens = uncached.map_or(prompt, |rest| rest.checked_sub(written).unwrap_or(rest));
        made.output_tokens = field::count(self.completion_tokens);
        made.cache_read_tokens = cached;
        made.cache_write_tokens = written;
        made.cost_usd = field::number(self.cost_usd).filter(|cost| *cost > 0.0);
        made
    }
}

/// What the steps of a run reported so far, its subagents' included.
#[derive(Default)]
pub(super) struct ReportedUsage {
    prompt: u64,
    cached: u64,
    output: u64,
    cost: f64,
    steps: u64,
    priced: u64,
}

impl ReportedUsage {
    /// Adds the usage of a step.
    pub(super) fn add(&mut self, usage: &Usage) {
        if usage.all_tokens() == 0 && usage.cost_usd.is_none() {
            return;
        }
        self.prompt = self.prompt.saturating_add(usage.prompt_tokens());
        self.cached = self.cached.saturating_add(usage.cache_read_tokens);
        self.output = self.output.saturating_add(usage.output_tokens);
        self.cost += usage.cost_usd.unwrap_or_default();
        self.steps += 1;
        self.priced += u64::from(usage.cost_usd.is_some());
    }

    /// Returns what the totals of the run hold beyond that. Their cost counts only if all steps have one: else those
    /// without are priced by their tokens.
    pub(super) fn beyond(&self, totals: &FinalMetrics<'_>, model: Option<String>) -> Usage {
        let prompt = field::count(totals.total_prompt_tokens).saturating_sub(self.prompt);
        let cached = field::count(totals.total_cached_tokens).saturating_sub(self.cached);
        let mut made = Usage::default();
        made.model = model;
        made.input_tokens = prompt.checked_sub(cached).unwrap_or(prompt);
        made.output_tokens = field::count(totals.total_completion_tokens).saturating_sub(self.output);
        made.cache_read_tokens = cached;
        if self.steps == self.priced {
            let cost = field::number(totals.total_cost_usd).unwrap_or_default() - self.cost;
            made.cost_usd = Some(cost).filter(|cost| *cost > 1e-6);
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(json: &str) -> Usage {
        serde_json::from_str::<StepMetrics<'_>>(json).unwrap().usage(None)
    }

    fn tokens(usage: &Usage) -> (u64, u64, u64, u64) {
        (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    }

    #[test]
    fn a_prompt_includes_its_cached_tokens() {
        let json = r#"{"prompt_tokens":2000,"completion_tokens":40,"cached_tokens":800}"#;
        assert_eq!(tokens(&step(json)), (1200, 40, 800, 0));
        let json =
            r#"{"prompt_tokens":2000,"cached_tokens":800,"extra":{"cache_creation_input_tokens":200}}"#;
        assert_eq!(tokens(&step(json)), (1000, 0, 800, 200));
        assert_eq!(tokens(&step(r#"{"prompt_tokens":12,"cached_tokens":120}"#)), (12, 0, 120, 0));
    }

    #[test]
    fn totals_count_what_the_steps_did_not_report() {
        let totals = r#"{"total_prompt_tokens":3000,"total_completion_tokens":90,"total_cached_tokens":900,"total_cost_usd":0.5}"#;
        let totals: FinalMetrics<'_> = serde_json::from_str(totals).unwrap();
        let mut reported = ReportedUsage::default();
        let all = reported.beyond(&totals, None);
        assert_eq!((tokens(&all), all.cost_usd), ((2100, 90, 900, 0), Some(0.5)));
        reported.add(&step(
            r#"{"prompt_tokens":2000,"completion_tokens":40,"cached_tokens":800,"cost_usd":0.2}"#,
        ));
        let rest = reported.beyond(&totals, None);
        assert_eq!((tokens(&rest), rest.cost_usd), ((900, 50, 100, 0), Some(0.3)));
        reported.add(&step(r#"{"prompt_tokens":1000,"completion_tokens":50,"cached_tokens":100}"#));
        let none = reported.beyond(&totals, None);
        assert_eq!((tokens(&none), none.cost_usd), ((0, 0, 0, 0), None));
    }
}
