//! goose, while its sessions were lists of lines.

mod reader;
mod record;

use crate::json::peek;
use crate::{Base, Format, Place, Reader, Shape, Source};

/// goose: a header, then one message a line.
pub(crate) struct Goose;

impl Format for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn title(&self) -> &'static str {
        "goose"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        false
    }

    fn places(&self) -> &'static [Place] {
        &[Place {
            base: Base::Variable("XDG_DATA_HOME", ".local/share"),
            folder: "goose/sessions",
            suffix: ".jsonl",
        }]
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let line = peek::first_line(head);
        let content = peek::field(line, "content").and_then(|content| peek::elements(content).next());
        peek::has(line, &["working_dir", "description", "message_count"])
            || (peek::has(line, &["role", "created"])
                && content.is_some_and(|first| peek::has(first, &["type"])))
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::GooseSession::new(source))
    }
}

#[cfg(test)]
mod tests {
    use deloop_types::Outcome;

    use super::*;
    use crate::fixture::{assert_sniffs, assert_survives, results, steps};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.jsonl");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.jsonl");

    #[test]
    fn knows_its_own_files() {
        assert_sniffs(&Goose, STUCK);
        assert_sniffs(&Goose, QUIRKS);
    }

    #[test]
    fn quirks() {
        let (steps, report) = steps(&Goose, QUIRKS, "sessions/20260301_110000.jsonl");
        assert_eq!(report.unreadable, 1);
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["hologram", "system"]);
        insta::assert_json_snapshot!(steps);
    }

    #[test]
    fn a_time_out_is_told_beside_the_output() {
        let line = br#"{"role":"user","created":1,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"x"}],"isError":true,"structuredContent":{"timed_out":true}}}}]}"#;
        assert_eq!(results(&Goose, line), [(Some(Outcome::Timeout), "x".into())]);
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&Goose, QUIRKS);
    }
}
