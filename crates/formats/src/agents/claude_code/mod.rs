//! Claude Code's transcripts.

pub(crate) mod hook;
mod message;
mod outcome;
pub(super) mod reader;
pub(super) mod record;
mod skip;
mod user_text;

use std::path::Path;

use memchr::memmem;

pub(crate) use outcome::{of_failure, of_response, of_shown};
pub(crate) use user_text::is_task_notification;

use crate::{Base, Format, Place, Reader, Shape, Source};

/// Claude Code's transcripts.
pub(crate) struct ClaudeCode;

impl Format for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[Place {
            base: Base::Variable("CLAUDE_CONFIG_DIR", ".claude"),
            folder: "projects",
            suffix: ".jsonl",
        }]
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        head.split(|b| *b == b'\n')
            .map(<[u8]>::trim_ascii)
            .filter(|line| line.starts_with(b"{"))
            .any(is_record)
    }

    fn subagent<'a>(&self, path: &'a Path) -> Option<&'a str> {
        path.file_stem()?.to_str()?.strip_prefix("agent-")
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::ClaudeTranscript::new(source))
    }
}

/// Whether a line, perhaps cut off, has the keys of this agent's records, and none of those that are only in its
/// relatives'. Inside a string a key's quotes would be escaped.
fn is_record(line: &[u8]) -> bool {
    let has = |key: &str| memmem::find(line, key.as_bytes()).is_some();
    (has("\"parentUuid\":") && has("\"isSidechain\":") && !has("\"parts\":") && !has("\"systemPayload\":"))
        || (has("\"summary\":") && has("\"leafUuid\":"))
        || (has("\"messageId\":") && has("\"isSnapshotUpdate\":"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use deloop_types::{Body, Step};

    use super::*;
    use crate::{Item, Report, read};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.jsonl");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.jsonl");

    fn items(bytes: &[u8]) -> (Vec<Item>, Report) {
        let mut items = Vec::new();
        let source = Source { path: Some(Path::new("/p/from-the-path.jsonl")) };
        let report = read(&ClaudeCode, bytes, &source, &mut |item| items.push(item));
        (items, report)
    }

    fn steps(bytes: &[u8]) -> Vec<Step> {
        items(bytes).0.into_iter().map(|item| item.step).collect()
    }

    #[test]
    fn quirks() {
        let report = items(QUIRKS).1;
        assert_eq!((report.unreadable, report.unknown), (1, [("brand-new-record".to_owned(), 1)].into()));
        assert_eq!(report.project.as_deref(), Some("/home/dev/shop"));
        assert_eq!(report.version.as_deref(), Some("2.1.325"));
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn its_own_files_are_known_by_their_head() {
        assert!(ClaudeCode.sniff(STUCK) && ClaudeCode.sniff(QUIRKS) && ClaudeCode.sniff(&STUCK[..200]));
        assert!(
            !ClaudeCode
                .sniff(br#"{"type":"turn","session":"s1","text":"\"parentUuid\":1,\"isSidechain\":1"}"#)
        );
        assert!(!ClaudeCode.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn a_resumed_session_names_its_requests_alike() {
        let keys =
            |bytes: &[u8]| -> Vec<_> { items(bytes).0.into_iter().filter_map(|item| item.key).collect() };
        let resumed = String::from_utf8_lossy(STUCK)
            .replace("5f0c1d2e", "99999999")
            .replace("-4000-8000-", "-4000-9000-");
        assert_eq!((keys(STUCK).len(), keys(STUCK)), (8, keys(resumed.as_bytes())));
    }

    #[test]
    fn messages_of_one_name_are_told_apart_by_their_prompts() {
        let line = |prompt: u64| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"same","content":[{{"type":"text","text":"Again."}}],"usage":{{"input_tokens":{prompt}}}}}}}"#
            )
        };
        let turns = |lines: String| {
            let steps = steps(lines.as_bytes());
            assert_eq!(steps[0].session.as_str(), "from-the-path");
            steps.iter().filter(|step| matches!(step.body, Body::Turn(_))).count()
        };
        assert_eq!(turns([line(5), line(5)].join("\n")), 1);
        assert_eq!(turns([line(5), line(6)].join("\n")), 2);
    }
}
