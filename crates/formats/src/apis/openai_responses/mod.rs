//! Items of OpenAI's Responses API, as programs save them.

pub(crate) mod items;
pub(crate) mod output;
mod reader;

use crate::apis::conversations::Conversations;
use crate::apis::dialect::{self, Dialect};
use crate::{Format, Place, Reader, Shape, Source};

/// Items of OpenAI's Responses API.
pub(crate) struct OpenAiResponses;

impl Format for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn title(&self) -> &'static str {
        "OpenAI Responses API"
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
        dialect::of(head) == Some(Dialect::Responses)
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(Conversations::<reader::Responses>::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, read};

    const STUCK: &str = include_str!("fixtures/stuck.json");
    const QUIRKS: &str = include_str!("fixtures/quirks.json");

    fn steps(text: &str) -> Vec<deloop_types::Step> {
        let source = Source { path: Some(std::path::Path::new("logs/shop.json")) };
        let mut steps = Vec::new();
        let report =
            read(&OpenAiResponses, text.as_bytes(), &source, &mut |item: Item| steps.push(item.step));
        assert_eq!(report.unreadable, 0);
        steps
    }

    #[test]
    fn knows_its_own_files() {
        assert!(OpenAiResponses.sniff(STUCK.as_bytes()));
        assert!(OpenAiResponses.sniff(QUIRKS.as_bytes()));
        assert!(!OpenAiResponses.sniff(br#"[{"role":"user","content":"hi"}]"#));
        assert!(!OpenAiResponses.sniff(br#"{"type":"turn","session":"s","text":"hi"}"#));
        assert!(!OpenAiResponses.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn quirks() {
        insta::assert_json_snapshot!(steps(QUIRKS));
    }
}
