//! Conversations of Anthropic's Messages API, as programs save them.

mod reader;

use crate::apis::conversations::Conversations;
use crate::apis::dialect::{self, Dialect};
use crate::{Format, Place, Reader, Shape, Source};

/// Conversations of Anthropic's Messages API.
pub(crate) struct AnthropicMessages;

impl Format for AnthropicMessages {
    fn name(&self) -> &'static str {
        "anthropic-messages"
    }

    fn title(&self) -> &'static str {
        "Anthropic Messages API"
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
        dialect::of(head) == Some(Dialect::Messages)
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(Conversations::<reader::MessagesApi>::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, read};

    const STUCK: &str = include_str!("fixtures/stuck.json");
    const QUIRKS: &str = include_str!("fixtures/quirks.json");

    fn items(text: &str) -> Vec<Item> {
        let source = Source { path: Some(std::path::Path::new("logs/shop.json")) };
        let mut items = Vec::new();
        let report = read(&AnthropicMessages, text.as_bytes(), &source, &mut |item: Item| items.push(item));
        assert_eq!(report.unreadable, 0);
        items
    }

    fn steps(text: &str) -> Vec<deloop_types::Step> {
        items(text).into_iter().map(|item| item.step).collect()
    }

    #[test]
    fn knows_its_own_files() {
        assert!(AnthropicMessages.sniff(STUCK.as_bytes()));
        assert!(AnthropicMessages.sniff(QUIRKS.as_bytes()));
        assert!(!AnthropicMessages.sniff(br#"[{"role":"user","content":"hi"}]"#));
        assert!(!AnthropicMessages.sniff(br#"{"type":"turn","session":"s","text":"hi"}"#));
        assert!(!AnthropicMessages.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn quirks() {
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn an_answer_in_pieces_is_one_turn() {
        let piece = |block: &str| {
            format!(r#"{{"id":"m1","role":"assistant","usage":{{"input_tokens":1}},"content":[{block}]}}"#)
        };
        let text = piece(r#"{"type":"text","text":"I look."}"#);
        let call = piece(r#"{"type":"tool_use","id":"t1","name":"ls","input":{}}"#);
        let items = items(&format!("[{text},{call},{call}]"));
        assert_eq!(items.len(), 2);
        let deloop_types::Body::Turn(turn) = &items[0].step.body else { panic!("a turn comes first") };
        assert_eq!((turn.text.as_str(), turn.calls.len()), ("I look.", 2));
    }

    #[test]
    fn a_request_is_named_by_its_message() {
        assert!(items(STUCK).iter().any(|item| item.key.is_some()));
    }
}
