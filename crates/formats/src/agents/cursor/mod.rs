//! Cursor's agent transcripts.

pub(crate) mod hook;
mod reader;

use crate::json::peek;
use crate::{Base, Format, Place, Reader, Shape, Source};

/// Cursor: one message a line.
pub(crate) struct Cursor;

impl Format for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn title(&self) -> &'static str {
        "Cursor"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        false
    }

    fn places(&self) -> &'static [Place] {
        &[Place { base: Base::Home, folder: ".cursor/projects", suffix: ".jsonl" }]
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let line = peek::first_line(head);
        let role = peek::text(line, "role").unwrap_or_default();
        let content = peek::field(line, "message").and_then(|message| peek::field(message, "content"));
        matches!(role, "user" | "assistant")
            && content.is_some_and(|content| peek::elements(content).next().is_some())
            && peek::field(line, "type").is_none()
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::CursorTranscript::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{assert_sniffs, assert_survives, steps};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.jsonl");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.jsonl");

    #[test]
    fn knows_its_own_files() {
        assert_sniffs(&Cursor, STUCK);
        assert_sniffs(&Cursor, QUIRKS);
    }

    #[test]
    fn quirks() {
        let (steps, report) = steps(&Cursor, QUIRKS, "agent-transcripts/3c5e/subagents/9d1a.jsonl");
        assert_eq!(report.unreadable, 1);
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["hologram", "teleported", "tool"]);
        insta::assert_json_snapshot!(steps);
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&Cursor, QUIRKS);
    }
}
