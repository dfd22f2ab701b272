/// What a request to the model used.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// The model's name.
    pub model: Option<String>,
    /// Input tokens, without those from the cache.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The part of `cache_write_tokens` that was written for one hour, which costs more than for five minutes.
    pub cache_write_1h_tokens: u64,
    /// The cost in dollars, if the agent reports it.
    pub cost_usd: Option<f64>,
    /// All tokens as input tokens of the same price: each counts as many times as it costs more than an input token of the
    /// model or its family. Set by deloop.
    pub weighted_tokens: Option<u64>,
}

impl Usage {
    /// Returns the cost, if there is one. A negative figure, which would lower a sum, is none, and so is an infinite one.
    ///
    /// ```
    /// let mut usage = deloop_types::Usage::default();
    /// usage.cost_usd = Some(0.5);
    /// assert_eq!(usage.dollars(), Some(0.5));
    /// usage.cost_usd = Some(-0.5);
    /// assert_eq!(usage.dollars(), None);
    /// ```
    #[must_use]
    pub fn dollars(&self) -> Option<f64> {
        self.cost_usd.filter(|usd| usd.is_finite() && *usd >= 0.0)
    }

    /// Returns the length of the prompt: input, cache reads and cache writes.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        let parts = [self.input_tokens, self.cache_read_tokens, self.cache_write_tokens];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns all tokens, including those read from and written to the cache.
    #[must_use]
    pub fn all_tokens(&self) -> u64 {
        let parts = [self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}
