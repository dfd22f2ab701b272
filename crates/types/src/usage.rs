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
    /// The cost in dollars, if the agent reports it.
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// Returns all tokens, including those read from and written to the cache.
    #[must_use]
    pub fn all_tokens(&self) -> u64 {
        let parts = [self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}
