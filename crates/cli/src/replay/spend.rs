//! What was spent: no token counted twice, no price guessed.

use deloop_policy::{Price, Prices};
use deloop_types::Usage;
use schemars::JsonSchema;
use serde::Serialize;

use super::RequestUsage;

/// Tokens and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Spend {
    /// Input tokens, without those from the cache.
    pub(crate) input_tokens: u64,
    /// Output tokens.
    pub(crate) output_tokens: u64,
    /// Tokens read from the cache.
    pub(crate) cache_read_tokens: u64,
    /// Tokens written to the cache.
    pub(crate) cache_write_tokens: u64,
    /// Cost in dollars of the tokens whose price is known.
    pub(crate) usd: f64,
    /// Tokens of models whose price is unknown; they are not in `usd`.
    pub(crate) unpriced_tokens: u64,
}

impl Spend {
    /// Returns all tokens.
    pub(crate) fn tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens
    }

    fn add(&mut self, used: &RequestUsage, prices: &[Option<Price>]) {
        let mut usage = Usage::default();
        usage.model = None;
        usage.input_tokens = used.input.into();
        usage.output_tokens = used.output.into();
        usage.cache_read_tokens = used.cache_read.into();
        usage.cache_write_tokens = used.cache_write.into();
        usage.cache_write_1h_tokens = used.cache_write_1h.into();
        usage.cost_usd = None;
        self.input_tokens += usage.input_tokens;
        self.output_tokens += usage.output_tokens;
        self.cache_read_tokens += usage.cache_read_tokens;
        self.cache_write_tokens += usage.cache_write_tokens;
        let price = prices.get(usize::from(used.model)).and_then(Option::as_ref);
        match price {
            _ if !used.usd.is_nan() => self.usd += used.usd,
            Some(price) => self.usd += price.cost(&usage),
            None => self.unpriced_tokens += used.tokens(),
        }
    }

    /// Adds another.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.usd += other.usd;
        self.unpriced_tokens += other.unpriced_tokens;
    }
}

/// Adds up requests. `prices` has the price of each of the file's models.
pub(crate) fn spend_of<'a>(usage: impl Iterator<Item = &'a RequestUsage>, prices: &[Option<Price>]) -> Spend {
    let mut spend = Spend::default();
    usage.for_each(|used| spend.add(used, prices));
    spend
}

/// Looks up the price of each of a file's models.
pub(crate) fn prices_of(models: &[String], prices: &Prices) -> Vec<Option<Price>> {
    models.iter().map(|model| prices.of(model)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_without_a_price_costs_nothing_known() {
        let used = |model, usd| RequestUsage {
            turn: 1,
            agent: 0,
            model,
            input: 10,
            output: 5,
            cache_read: 0,
            cache_write: 0,
            cache_write_1h: 0,
            usd,
            key: 0,
        };
        let prices = Prices::new(std::collections::BTreeMap::new());
        let prices = prices_of(&["mystery".to_owned(), "claude-sonnet-4-5".to_owned()], &prices);
        let all = [used(0, f64::NAN), used(0, 0.25), used(1, f64::NAN)];
        let spend = spend_of(all.iter(), &prices);
        let priced = (10.0 * 3.0 + 5.0 * 15.0) / 1e6;
        assert!((spend.usd - 0.25 - priced).abs() < 1e-12, "{spend:?}");
        assert_eq!((spend.unpriced_tokens, spend.tokens()), (15, 45));
    }
}
