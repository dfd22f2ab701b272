//! The tokens of a request.

use deloop_types::Usage;

use super::record::CodexTokens;

/// The four numbers that count: read, of these from the cache, of these written to it, and written.
pub(super) fn numbers(tokens: &CodexTokens) -> [u64; 4] {
    [
        tokens.input_tokens.count(),
        tokens.cached_input_tokens.count(),
        tokens.cache_write_input_tokens.count(),
        tokens.output_tokens.count(),
    ]
}

/// What a request used. What it read includes what was in the cache, and what went there.
pub(super) fn counted(tokens: &CodexTokens, model: Option<String>) -> Usage {
    let [input, cached, written, output_tokens] = numbers(tokens);
    let mut made = Usage::default();
    made.model = model;
    made.input_tokens = input.saturating_sub(cached).saturating_sub(written);
    made.output_tokens = output_tokens;
    made.cache_read_tokens = cached;
    made.cache_write_tokens = written;
    made.cost_usd = None;
    made
}
