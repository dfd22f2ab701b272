//! The usage objects of the model vendors' APIs. They differ in whether the tokens that came from the cache are part
//! of the tokens read.

use deloop_types::Usage;
use serde::Deserialize;

use crate::json::field::{self, Field};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Counts<'a> {
    #[serde(borrow)]
    prompt_tokens: Field<'a>,
    #[serde(borrow)]
    completion_tokens: Field<'a>,
    #[serde(borrow)]
    input_tokens: Field<'a>,
    #[serde(borrow)]
    output_tokens: Field<'a>,
    #[serde(borrow)]
    prompt_tokens_details: Field<'a>,
    #[serde(borrow)]
    input_tokens_details: Field<'a>,
    #[serde(borrow)]
    cache_read_input_tokens: Field<'a>,
    #[serde(borrow)]
    cache_creation_input_tokens: Field<'a>,
    #[serde(borrow)]
    cache_creation: Field<'a>,
    #[serde(borrow)]
    cost: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details<'a> {
    #[serde(borrow)]
    cached_tokens: Field<'a>,
    #[serde(borrow)]
    cache_creation_tokens: Field<'a>,
    #[serde(borrow)]
    cache_write_tokens: Field<'a>,
}

/// The parts of `cache_creation_input_tokens`, by how long they are kept.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CacheCreation<'a> {
    #[serde(borrow)]
    ephemeral_1h_input_tokens: Field<'a>,
}

/// Reads a usage object of Chat Completions, Responses or Messages; `None` when there is none.
pub(crate) fn usage(field: Field<'_>, model: Option<String>) -> Option<Usage> {
    let counts: Counts<'_> = field::object(field)?;
    let details = counts.prompt_tokens_details.or(counts.input_tokens_details);
    let details: Option<Details<'_>> = field::object(details);
    let of_details = |pick: fn(&Details<'_>) -> u64| details.as_ref().map_or(0, pick);
    let cached =
        of_details(|d| field::count(d.cached_tokens)).max(field::count(counts.cache_read_input_tokens));
    let written = of_details(|d| field::count(d.cache_creation_tokens.or(d.cache_write_tokens)))
        .max(field::count(counts.cache_creation_input_tokens));
    let included = counts.prompt_tokens.is_some() || counts.input_tokens_details.is_some();
    let read = field::count(counts.prompt_tokens.or(counts.input_tokens));
    Some({
        let mut made = Usage::default();
        made.model = model;
        made.input_tokens = if included { read.saturating_sub(cached).saturating_sub(written) } else { read };
        made.output_tokens = field::count(counts.completion_tokens.or(counts.output_tokens));
        made.cache_read_tokens = cached;
        made.cache_write_tokens = written;
        let kept: Option<CacheCreation<'_>> = field::object(counts.cache_creation);
        made.cache_write_1h_tokens = kept.map_or(0, |kept| field::count(kept.ephemeral_1h_input_tokens));
        made.cost_usd = field::number(counts.cost);
        made
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> (u64, u64, u64, u64) {
        let raw = serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
        let usage = usage(Some(&raw), None).unwrap();
        (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    }

    #[test]
    fn chat_completions_count_the_cache_in() {
        let json =
            r#"{"prompt_tokens":2000,"completion_tokens":40,"prompt_tokens_details":{"cached_tokens":800}}"#;
        assert_eq!(read(json), (1200, 40, 800, 0));
        let json = r#"{"prompt_tokens":2000,"completion_tokens":40,"cache_read_input_tokens":800,
            "cache_creation_input_tokens":200,"prompt_tokens_details":{"cached_tokens":800}}"#;
        assert_eq!(read(json), (1000, 40, 800, 200));
    }

    #[test]
    fn responses_count_the_cache_in() {
        let json = r#"{"input_tokens":2000,"output_tokens":40,"input_tokens_details":{"cached_tokens":800}}"#;
        assert_eq!(read(json), (1200, 40, 800, 0));
    }

    #[test]
    fn messages_count_the_cache_apart() {
        let json = r#"{"input_tokens":1200,"output_tokens":40,"cache_read_input_tokens":800,
            "cache_creation_input_tokens":100}"#;
        assert_eq!(read(json), (1200, 40, 800, 100));
    }

    #[test]
    fn writes_for_an_hour_are_counted_apart() {
        let json = r#"{"input_tokens":1,"cache_creation_input_tokens":100,
            "cache_creation":{"ephemeral_5m_input_tokens":40,"ephemeral_1h_input_tokens":60}}"#;
        let raw = serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
        let usage = usage(Some(&raw), None).unwrap();
        assert_eq!((usage.cache_write_tokens, usage.cache_write_1h_tokens), (100, 60));
    }
}
