//! GitHub Copilot CLI.

pub(crate) mod hook;
mod outcome;
mod reader;
mod record;
mod totals;
mod wrapped;

pub(crate) use outcome::of_text;

use crate::json::peek;
use crate::{Base, Format, Place, Reader, Shape, Source};

/// GitHub Copilot CLI: one event a line.
pub(crate) struct CopilotCli;

impl Format for CopilotCli {
    fn name(&self) -> &'static str {
        "copilot-cli"
    }

    fn title(&self) -> &'static str {
        "GitHub Copilot CLI"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[Place {
            base: Base::Variable("COPILOT_HOME", ".copilot"),
            folder: "session-state",
            suffix: ".jsonl",
        }]
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let line = peek::first_line(head);
        let is_event = peek::text(line, "type").is_some_and(|kind| kind.contains('.'))
            && peek::has(line, &["data", "id", "timestamp", "parentId"]);
        is_event || head.split(|b| *b == b'\n').any(|line| wrapped::unwrap(line.trim_ascii()).is_some())
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(wrapped::CopilotLog::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{assert_sniffs, assert_survives, steps};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.jsonl");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.jsonl");
    const WRAPPED: &[u8] = include_bytes!("fixtures/wrapped.jsonl");

    #[test]
    fn knows_its_own_files() {
        assert_sniffs(&CopilotCli, STUCK);
        assert_sniffs(&CopilotCli, QUIRKS);
        assert_sniffs(&CopilotCli, WRAPPED);
        assert!(!CopilotCli.sniff(br#"{"event":{"type":"page.view","data":{}},"timestamp":1}"#));
    }

    #[test]
    fn quirks() {
        let (steps, report) = steps(&CopilotCli, QUIRKS, "session-state/5b8e1c40/events.jsonl");
        assert_eq!(report.unreadable, 1);
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["teleport.requested"]);
        insta::assert_json_snapshot!(steps);
    }

    /// The messages of the Copilot SDK, of two sessions at once.
    #[test]
    fn wrapped() {
        let (steps, report) = steps(&CopilotCli, WRAPPED, "logs/sdk.jsonl");
        assert_eq!((report.unreadable, report.unknown.len()), (0, 0));
        insta::assert_json_snapshot!(steps);
    }

    #[test]
    fn a_wrapped_session_reads_as_it_does_without() {
        let wrap = |event: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session.event","params":{{"sessionId":"s","event":{event}}}}}"#
            )
        };
        let lines: Vec<String> = std::str::from_utf8(STUCK).unwrap().lines().map(wrap).collect();
        let wrapped = lines.join("\n");
        assert_eq!(
            steps(&CopilotCli, wrapped.as_bytes(), "a/b.jsonl").0,
            steps(&CopilotCli, STUCK, "a/b.jsonl").0
        );
    }

    #[test]
    fn many_wrapped_sessions_are_read_in_bounded_memory() {
        let line = |n: usize| {
            format!(
                r#"{{"params":{{"sessionId":"s{n}","event":{{"type":"assistant.message","data":{{"content":"hi"}}}}}}}}"#
            )
        };
        let text: Vec<String> = (0..1000).map(line).collect();
        assert_eq!(steps(&CopilotCli, text.join("\n").as_bytes(), "a/b.jsonl").0.len(), 1000);
    }

    #[test]
    fn the_folder_names_the_session_until_an_event_does() {
        let line = br#"{"type":"user.message","data":{"content":"hi"},"id":"e"}"#;
        let session = |path| steps(&CopilotCli, line, path).0[0].session.to_string();
        assert_eq!(session("session-state/abc/events.jsonl"), "abc");
        assert_eq!(session("session-state/abc.jsonl"), "abc");
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&CopilotCli, QUIRKS);
        assert_survives(&CopilotCli, WRAPPED);
    }
}
