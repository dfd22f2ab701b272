//! What Claude Code prints with `--output-format stream-json`.

mod reader;
mod record;
mod totals;

use crate::json::peek;
use crate::{Format, Place, Reader, Shape, Source};

/// The messages that Claude Code prints when it runs without a terminal.
pub(crate) struct ClaudeCodeStream;

impl Format for ClaudeCodeStream {
    fn name(&self) -> &'static str {
        "claude-code-stream"
    }

    fn title(&self) -> &'static str {
        "Claude Code (stream-json)"
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
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        head.split(|b| *b == b'\n')
            .map(<[u8]>::trim_ascii)
            .map(|line| line.strip_prefix(b"[").unwrap_or(line))
            .filter(|line| line.starts_with(b"{"))
            .any(is_record)
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::StreamLog::new(source))
    }
}

/// Returns whether a line, perhaps cut off, is the start of a session or a message. Other agents print a shorter start.
fn is_record(line: &[u8]) -> bool {
    match peek::text(line, "type") {
        Some("system") => {
            peek::text(line, "subtype") == Some("init") && peek::has(line, &["session_id", "tools"])
        }
        Some("assistant" | "user") => peek::has(line, &["session_id", "parent_tool_use_id", "message"]),
        Some("stream_event") => peek::has(line, &["session_id", "parent_tool_use_id", "event"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use deloop_types::Body;

    use super::*;
    use crate::fixture::{assert_sniffs, assert_survives, steps};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.jsonl");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.jsonl");

    #[test]
    fn knows_its_own_files() {
        assert_sniffs(&ClaudeCodeStream, STUCK);
        assert_sniffs(&ClaudeCodeStream, QUIRKS);
        let cursor = br#"{"type":"system","subtype":"init","cwd":"/","session_id":"s","model":"m","permissionMode":"default"}"#;
        assert!(!ClaudeCodeStream.sniff(cursor));
    }

    #[test]
    fn quirks() {
        let (steps, report) = steps(&ClaudeCodeStream, QUIRKS, "logs/run-1.jsonl");
        assert_eq!(report.unreadable, 1);
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["brand_new_message"]);
        assert_eq!(report.version.as_deref(), Some("2.1.325"));
        insta::assert_json_snapshot!(steps);
    }

    /// `--output-format json --verbose` prints one list.
    #[test]
    fn a_list_is_read_like_lines() {
        let lines: Vec<&str> = std::str::from_utf8(STUCK).unwrap().lines().collect();
        let list = format!("[{}]\n", lines.join(","));
        assert_sniffs(&ClaudeCodeStream, list.as_bytes());
        let read = |bytes| steps(&ClaudeCodeStream, bytes, "a/b.json").0;
        assert_eq!(read(list.as_bytes()), read(STUCK));
    }

    #[test]
    fn what_a_result_adds_is_not_counted_twice() {
        let (steps, _) = steps(&ClaudeCodeStream, STUCK, "a/b.jsonl");
        let usage = |step: &deloop_types::Step| match &step.body {
            Body::Usage(usage) => usage.output_tokens,
            _ => 0,
        };
        assert_eq!(steps.iter().map(usage).sum::<u64>(), 8 * 40);
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&ClaudeCodeStream, QUIRKS);
    }
}
