use deloop_types::Usage;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The price of a model, in dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Tokens read from the cache; same as `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Tokens written to the cache; same as `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Tokens written to the cache for one hour; same as `cache_write` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<f64>,
    /// The prices of requests with long prompts, shortest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub long_prompts: Vec<LongPromptPrice>,
}

/// The price of a whole request whose prompt is longer than `above`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LongPromptPrice {
    /// The price applies to prompts of more tokens than this: input, cache reads and cache writes together.
    pub above: u64,
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Tokens read from the cache; same as `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Tokens written to the cache; same as `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Tokens written to the cache for one hour; same as `cache_write` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<f64>,
}

impl Price {
    /// Returns the cost of a request's tokens at this price, in dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let rates = self.rates(usage.prompt_tokens());
        let cache_read = rates.cache_read.unwrap_or(rates.input);
        let cache_write = rates.cache_write.unwrap_or(rates.input);
        let cache_write_1h = rates.cache_write_1h.unwrap_or(cache_write);
        let for_an_hour = usage.cache_write_1h_tokens.min(usage.cache_write_tokens);
        let dollars = usage.input_tokens as f64 * rates.input
            + usage.output_tokens as f64 * rates.output
            + usage.cache_read_tokens as f64 * cache_read
            + (usage.cache_write_tokens - for_an_hour) as f64 * cache_write
            + for_an_hour as f64 * cache_write_1h;
        dollars / 1e6
    }

    /// Returns the rates for a prompt of this length.
    fn rates(&self, prompt: u64) -> LongPromptPrice {
        let long = self.long_prompts.iter().filter(|long| prompt > long.above).max_by_key(|long| long.above);
        long.copied().unwrap_or(LongPromptPrice {
            above: 0,
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            cache_write_1h: self.cache_write_1h,
        })
    }
}
