//! Gemini CLI, in both shapes of its session files.

pub(crate) mod hook;
mod identity;
mod model_message;
mod outcome;
mod reader;
mod record;

pub(crate) use outcome::of_status;

use crate::json::peek;
use crate::{Base, Format, Place, Reader, Shape, Source};

/// Gemini CLI since its sessions are lists of lines.
pub(crate) struct GeminiCli;

/// Gemini CLI while each session was one document.
pub(crate) struct GeminiCliJson;

impl Format for GeminiCli {
    fn name(&self) -> &'static str {
        "gemini-cli"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[Place { base: Base::Variable("GEMINI_CLI_HOME", ""), folder: ".gemini/tmp", suffix: ".jsonl" }]
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let header = peek::first_line(head);
        peek::has(header, &["sessionId", "projectHash"]) && peek::field(header, "messages").is_none()
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::GeminiSession::new(source))
    }
}

impl Format for GeminiCliJson {
    fn name(&self) -> &'static str {
        "gemini-cli-json"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI (one document a session)"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[Place { base: Base::Variable("GEMINI_CLI_HOME", ""), folder: ".gemini/tmp", suffix: ".json" }]
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn sniff(&self, head: &[u8]) -> bool {
        peek::has(head, &["sessionId", "projectHash", "messages"])
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::GeminiSession::new(source))
    }
}

#[cfg(test)]
mod tests {
    use deloop_types::Outcome;
    use serde_json::Value;

    use super::*;
    use crate::fixture::{assert_sniffs, assert_survives, results, steps};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.jsonl");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.jsonl");
    const STUCK_JSON: &[u8] = include_bytes!("fixtures/stuck.json");
    const QUIRKS_JSON: &[u8] = include_bytes!("fixtures/quirks.json");

    #[test]
    fn a_hook_that_keeps_it_going_is_no_person() {
        let text = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-11-16T03:17:00.000Z"}
{"id":"1","timestamp":"2026-11-16T03:17:01.000Z","type":"user","content":[{"text":"Fix it."}]}
{"id":"2","timestamp":"2026-11-16T03:17:02.000Z","type":"gemini","content":"Done."}
{"id":"3","timestamp":"2026-11-16T03:17:03.000Z","type":"user","content":[{"text":"Not done (1)."}],"displayContent":[{"text":"Fix it."}]}
{"id":"4","timestamp":"2026-11-16T03:17:04.000Z","type":"gemini","content":"Done."}
{"id":"5","timestamp":"2026-11-16T03:17:05.000Z","type":"user","content":[{"text":"Not done (2)."}],"displayContent":[{"text":"Fix it."}]}
"#;
        let (steps, _) = steps(&GeminiCli, text.as_bytes(), "s.jsonl");
        let said = steps.into_iter().filter_map(|step| match step.body {
            deloop_types::Body::User(user) => Some((user.text, user.origin)),
            _ => None,
        });
        use deloop_types::Origin::{Harness, Human};
        let expected = [("Fix it.", Human), ("Not done (1).", Harness), ("Not done (2).", Harness)];
        assert!(said.eq(expected.map(|(text, origin)| (text.to_owned(), origin))));
    }

    #[test]
    fn knows_its_own_files() {
        for lines in [STUCK, QUIRKS] {
            assert_sniffs(&GeminiCli, lines);
        }
        for document in [STUCK_JSON, QUIRKS_JSON] {
            assert_sniffs(&GeminiCliJson, document);
        }
    }

    #[test]
    fn what_is_not_recorded_is_not_empty() {
        let document = |result: &str| {
            format!(
                r#"{{"sessionId":"s","messages":[{{"id":"1","type":"gemini","content":"","toolCalls":[{{"id":"c","name":"google_web_search","args":{{}},"status":"success"{result}}}]}}]}}"#
            )
        };
        let result = |field: &str| results(&GeminiCliJson, document(field).as_bytes()).remove(0);
        assert_eq!(result(""), (Some(Outcome::Ok), Value::Null));
        let empty = r#","result":[{"functionResponse":{"id":"c","name":"x","response":{"output":""}}}]"#;
        assert_eq!(result(empty), (Some(Outcome::Ok), Value::from("")));
    }

    #[test]
    fn quirks() {
        let (lines, report) = steps(&GeminiCli, QUIRKS, "chats/session-2026-03-01T10-00-7c1d2e3f.jsonl");
        assert_eq!(report.unreadable, 1);
        assert!(report.unknown.contains_key("compression"));
        insta::assert_json_snapshot!("quirks", lines);
        let (document, _) =
            steps(&GeminiCliJson, QUIRKS_JSON, "chats/session-2026-03-01T10-00-7c1d2e3f.json");
        insta::assert_json_snapshot!("quirks_json", document);
    }

    #[test]
    fn a_subagent_belongs_to_the_session_its_folder_names() {
        let header = br#"{"sessionId":"sub","projectHash":"h","kind":"subagent"}
            {"id":"m","type":"gemini","content":"CompletedCall."}"#;
        let (lines, _) = steps(&GeminiCli, header, "chats/main/sub.jsonl");
        assert_eq!(lines, [deloop_types::Step::text("main", "CompletedCall.").by("sub")]);
    }

    #[test]
    fn usage_has_a_key_and_is_told_once() {
        let mut keys = Vec::new();
        crate::read(&GeminiCli, STUCK, &Source::default(), &mut |item| keys.extend(item.key));
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 8);
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&GeminiCli, QUIRKS);
        assert_survives(&GeminiCliJson, QUIRKS_JSON);
    }
}
