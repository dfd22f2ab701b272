//! The tokens of a request.

use deloop_types::Usage;

use super::record::Tokens;

/// The four numbers that count: read, of these from the cache, of these written to it, and written.
pub(super) fn numbers(tokens: &Tokens) -> [u64; 4] {
    [
        tokens.input_tokens.count(),
        tokens.cached_input_tokens.count(),
        tokens.cache_write_input_tokens.count(),
        tokens.output_tokens.count(),
    ]
}

/// What a request used. What it read includes what was in the cache, and what went there.
pub(super) fn counted(tokens: &Tokens, model: Option<String>) -> Usage {
    let [input, cached, written, output_tokens] = numbers(tokens);
    Usage {
        model,
        input_tokens: input.saturating_sub(cached).saturating_sub(written),
        output_tokens,
        cache_read_tokens: cached,
        cache_write_tokens: written,
        cost_usd: None,
    }
}
