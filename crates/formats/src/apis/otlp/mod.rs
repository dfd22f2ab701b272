//! OpenTelemetry traces in OTLP's JSON, with OpenInference or GenAI attributes.

mod reader;

use crate::json::document;
use crate::{Format, Place, Reader, Shape, Source};

/// OpenTelemetry traces in OTLP's JSON.
pub(crate) struct Otlp;

impl Format for Otlp {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn title(&self) -> &'static str {
        "OpenTelemetry traces (OTLP JSON)"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        false
    }

    fn places(&self) -> &'static [Place] {
        &[]
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let Some(value) = document::head(head) else { return false };
        let batch = value.get(0).unwrap_or(&value);
        ["resourceSpans", "resource_spans"].iter().any(|key| batch[key].is_array())
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::OtlpReader::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, read};

    const STUCK: &str = include_str!("fixtures/stuck.json");
    const QUIRKS: &str = include_str!("fixtures/quirks.json");

    fn steps(text: &str) -> Vec<deloop_types::Step> {
        let source = Source { path: Some(std::path::Path::new("traces/shop.json")) };
        let mut steps = Vec::new();
        let report = read(&Otlp, text.as_bytes(), &source, &mut |item: Item| steps.push(item.step));
        assert_eq!(report.unreadable, 0);
        steps
    }

    #[test]
    fn knows_its_own_files() {
        assert!(Otlp.sniff(STUCK.as_bytes()));
        assert!(Otlp.sniff(QUIRKS.as_bytes()));
        assert!(!Otlp.sniff(br#"{"trace_id":"t","spans":[{"span_id":"a"}]}"#));
        assert!(!Otlp.sniff(br#"{"type":"turn","session":"s","text":"hi"}"#));
        assert!(!Otlp.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn quirks() {
        insta::assert_json_snapshot!(steps(QUIRKS));
    }
}
