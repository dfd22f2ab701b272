//! What the kinds of tokens cost, compared with input tokens.

use deloop_types::Usage;

use super::Price;

/// How many input tokens a token of each kind costs. The default is for models that nothing is known about: what most
/// vendors charge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TokenWeights {
    output: f64,
    cache_read: f64,
    cache_write: f64,
    cache_write_1h: f64,
}

impl Default for TokenWeights {
    fn default() -> Self {
        Self { output: 5.0, cache_read: 0.1, cache_write: 1.25, cache_write_1h: 2.0 }
    }
}

impl TokenWeights {
    /// Returns the ratios of a price; `None` if its input is free.
    pub(super) fn of(price: &Price) -> Option<Self> {
        let ratio = |part: f64| part / price.input;
        let cache_write = price.cache_write.unwrap_or(price.input);
        (price.input > 0.0).then(|| Self {
            output: ratio(price.output),
            cache_read: ratio(price.cache_read.unwrap_or(price.input)),
            cache_write: ratio(cache_write),
            cache_write_1h: ratio(price.cache_write_1h.unwrap_or(cache_write)),
        })
    }

    /// Returns a request's tokens as input tokens of the same price.
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
    pub(super) fn sum(&self, usage: &Usage) -> f64 {
        let for_an_hour = usage.cache_write_1h_tokens.min(usage.cache_write_tokens);
        usage.input_tokens as f64
            + usage.output_tokens as f64 * self.output
            + usage.cache_read_tokens as f64 * self.cache_read
            + (usage.cache_write_tokens - for_an_hour) as f64 * self.cache_write
            + for_an_hour as f64 * self.cache_write_1h
    }
}
