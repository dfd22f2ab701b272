//! Conversations of Chat Completions, as programs save them.

pub(crate) mod message;
pub(crate) mod reader;

use crate::apis::conversations::Conversations;
use crate::apis::dialect::{self, Dialect};
use crate::json::document;
use crate::{Format, Place, Reader, Shape, Source};

/// Conversations of Chat Completions.
pub(crate) struct OpenAiMessages;

impl Format for OpenAiMessages {
    fn name(&self) -> &'static str {
        "openai-messages"
    }

    fn title(&self) -> &'static str {
        "OpenAI Chat Completions messages"
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
        dialect::of(head) == Some(Dialect::Chat) && !document::is_lines(head)
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(Conversations::<reader::ChatCompletions>::new(source))
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
        let report = read(&OpenAiMessages, text.as_bytes(), &source, &mut |item: Item| steps.push(item.step));
        assert_eq!(report.unreadable, 0);
        steps
    }

    #[test]
    fn knows_its_own_files() {
        assert!(OpenAiMessages.sniff(STUCK.as_bytes()));
        assert!(OpenAiMessages.sniff(QUIRKS.as_bytes()));
        assert!(!OpenAiMessages.sniff(b"[{\"role\":\"user\",\"content\":\"a\"}]\n[{\"role\":\"user\"}]"));
        assert!(!OpenAiMessages.sniff(br#"{"type":"turn","session":"s","text":"hi"}"#));
        assert!(!OpenAiMessages.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn quirks() {
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn a_list_of_messages_is_one_conversation() {
        let said = steps(r#"[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]"#);
        assert_eq!(said.iter().map(|step| step.session.as_str()).collect::<Vec<_>>(), ["shop", "shop"]);
    }

    #[test]
    fn deep_nesting_is_harmless() {
        for opening in
            ["[", r#"{"messages":["#, r#"{"request":"#, r#"{"messages":[{"role":"user","content":["#]
        {
            let report =
                read(&OpenAiMessages, opening.repeat(50_000).as_bytes(), &Source::default(), &mut |_| {});
            assert!(report.unreadable > 0, "{opening}");
        }
        let closed = r#"{"request":"#.repeat(50_000) + "1" + &"}".repeat(50_000);
        let report = read(&OpenAiMessages, closed.as_bytes(), &Source::default(), &mut |_| {});
        assert_eq!(report.unknown.len(), 1);
    }

    #[test]
    fn what_is_no_conversation_is_counted() {
        let count = |text: &str| {
            let report = read(&OpenAiMessages, text.as_bytes(), &Source::default(), &mut |_| {});
            (report.unreadable, report.unknown.len())
        };
        assert_eq!(count(r#"{"a":1}"#), (0, 1));
        assert_eq!(count("3"), (1, 0));
        assert_eq!(count("nonsense"), (1, 0));
        assert_eq!(count(r#"[{"role":"user","content":"a"},7,{"role":"bot"}]"#), (0, 2));
    }
}
