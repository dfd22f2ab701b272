//! Conversations of Chat Completions, one a line.

use crate::apis::conversations::Conversations;
use crate::apis::dialect::{self, Dialect};
use crate::apis::openai_messages::reader::ChatCompletions;
use crate::json::document;
use crate::{Format, Place, Reader, Shape, Source};

/// Conversations of Chat Completions, one a line.
pub(crate) struct OpenAiMessagesJsonl;

impl Format for OpenAiMessagesJsonl {
    fn name(&self) -> &'static str {
        "openai-messages-jsonl"
    }

    fn title(&self) -> &'static str {
        "OpenAI Chat Completions messages, one conversation a line"
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
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        dialect::of(head) == Some(Dialect::Chat) && document::is_lines(head)
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(Conversations::<ChatCompletions>::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, read};

    const STUCK: &str = include_str!("fixtures/stuck.jsonl");
    const QUIRKS: &str = include_str!("fixtures/quirks.jsonl");

    fn steps(text: &str) -> (Vec<deloop_types::Step>, u64) {
        let source = Source { path: Some(std::path::Path::new("logs/shop.jsonl")) };
        let mut steps = Vec::new();
        let report =
            read(&OpenAiMessagesJsonl, text.as_bytes(), &source, &mut |item: Item| steps.push(item.step));
        (steps, report.unreadable)
    }

    #[test]
    fn knows_its_own_files() {
        assert!(OpenAiMessagesJsonl.sniff(STUCK.as_bytes()));
        assert!(OpenAiMessagesJsonl.sniff(QUIRKS.as_bytes()));
        assert!(!OpenAiMessagesJsonl.sniff(br#"[{"role":"user","content":"a"}]"#));
        assert!(!OpenAiMessagesJsonl.sniff(b"{\"type\":\"turn\"}\n{\"type\":\"turn\"}"));
    }

    #[test]
    fn quirks() {
        let (steps, unreadable) = steps(QUIRKS);
        assert_eq!(unreadable, 1);
        insta::assert_json_snapshot!(steps);
    }
}
