//! Traces with OpenInference attributes, as nested spans.

mod agent;
mod code;
mod messages;
mod reader;
pub(crate) mod span;
pub(crate) mod trace;
mod tree;

use crate::json::document;
use crate::{Format, Place, Reader, Shape, Source};

/// Traces with OpenInference attributes, as nested spans.
pub(crate) struct OpenInference;

impl Format for OpenInference {
    fn name(&self) -> &'static str {
        "openinference"
    }

    fn title(&self) -> &'static str {
        "OpenInference traces"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[]
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let Some(value) = document::head(head) else { return false };
        let trace = value.get(0).unwrap_or(&value);
        let span = &trace["spans"][0];
        span["span_id"].is_string() || span["timestamp"].is_string() && span["trace_id"].is_string()
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::Traces::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, read};

    const STUCK: &str = include_str!("fixtures/stuck.json");
    const QUIRKS: &str = include_str!("fixtures/quirks.json");

    fn items(text: &str) -> Vec<Item> {
        let source = Source { path: Some(std::path::Path::new("traces/shop.json")) };
        let mut items = Vec::new();
        let report = read(&OpenInference, text.as_bytes(), &source, &mut |item: Item| items.push(item));
        assert_eq!(report.unreadable, 0);
        items
    }

    fn steps(text: &str) -> Vec<deloop_types::Step> {
        items(text).into_iter().map(|item| item.step).collect()
    }

    #[test]
    fn knows_its_own_files() {
        assert!(OpenInference.sniff(STUCK.as_bytes()));
        assert!(OpenInference.sniff(QUIRKS.as_bytes()));
        assert!(!OpenInference.sniff(br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"a"}]}]}]}"#));
        assert!(!OpenInference.sniff(br#"{"trace_id":"a","messages":[{"role":"user","content":"hi"}]}"#));
        assert!(!OpenInference.sniff(br#"{"type":"turn","session":"s","text":"hi"}"#));
        assert!(!OpenInference.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn quirks() {
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn a_request_is_named_by_its_span() {
        let keys: std::collections::HashSet<_> =
            items(STUCK).into_iter().filter_map(|item| item.key).collect();
        assert_eq!(keys.len(), 8);
    }

    #[test]
    fn deep_nesting_ends_somewhere() {
        let deep = r#"{"span_id":"x","child_spans":["#.repeat(5000) + &"]}".repeat(5000);
        let text = format!(r#"{{"trace_id":"t","spans":[{deep}]}}"#);
        let report = read(&OpenInference, text.as_bytes(), &Source::default(), &mut |_| {});
        assert_eq!(report.unknown.get("spans nested too deep"), Some(&1));
    }
}
