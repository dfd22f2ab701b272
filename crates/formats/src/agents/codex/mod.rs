//! Codex's rollouts.

mod call;
mod code_mode;
pub(crate) mod hook;
mod outcome;
mod pending_calls;
mod reader;
mod record;
mod tokens;
mod user_text;

use memchr::memmem;

pub(crate) use outcome::failure_from_printed;
pub(crate) use user_text::is_subagent_notification;

use crate::{Base, Format, Place, Reader, Shape, Source};

/// Codex's rollouts.
pub(crate) struct Codex;

impl Format for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        const HOME: Base = Base::Variable("CODEX_HOME", ".codex");
        &[
            Place { base: HOME, folder: "sessions", suffix: ".jsonl" },
            Place { base: HOME, folder: "archived_sessions", suffix: ".jsonl" },
        ]
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let mut lines = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        is_line(first) || (is_old_meta(first) && lines.all(is_old_item))
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::Rollout::new(source))
    }
}

/// Returns whether a line, perhaps cut off, is one of a rollout. Inside a string the quotes would be escaped.
fn is_line(line: &[u8]) -> bool {
    const TYPES: [&str; 5] = ["session_meta", "response_item", "event_msg", "turn_context", "world_state"];
    has(line, "\"timestamp\":")
        && has(line, "\"payload\":")
        && TYPES.iter().any(|kind| has_field(line, "type", kind))
}

/// Returns whether a line is the first of a rollout of mid-2025.
fn is_old_meta(line: &[u8]) -> bool {
    line.starts_with(b"{")
        && has(line, "\"id\":")
        && has(line, "\"timestamp\":")
        && has(line, "\"instructions\":")
}

fn is_old_item(line: &[u8]) -> bool {
    has(line, "\"record_type\":") || has(line, "\"type\":") || has(line, "\"payload\":")
}

fn has(line: &[u8], text: &str) -> bool {
    memmem::find(line, text.as_bytes()).is_some()
}

/// Returns whether a field is there, however it is spaced.
fn has_field(line: &[u8], key: &str, value: &str) -> bool {
    has(line, &format!("\"{key}\":\"{value}\"")) || has(line, &format!("\"{key}\": \"{value}\""))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use deloop_types::{Body, Origin, Step};
    use serde_json::Value;

    use super::*;
    use crate::{Item, Report, read};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.jsonl");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.jsonl");
    const CODE_MODE: &[u8] = include_bytes!("fixtures/code_mode.jsonl");
    const OLD: &[u8] = include_bytes!("fixtures/old.jsonl");

    fn items(bytes: &[u8]) -> (Vec<Item>, Report) {
        let mut items = Vec::new();
        let source = Source { path: Some(Path::new("/p/rollout-2026-03-01T10-00-00-019c.jsonl")) };
        let report = read(&Codex, bytes, &source, &mut |item| items.push(item));
        (items, report)
    }

    fn steps(bytes: &[u8]) -> Vec<Step> {
        items(bytes).0.into_iter().map(|item| item.step).collect()
    }

    #[test]
    fn quirks() {
        let report = items(QUIRKS).1;
        let unknown: Vec<_> = report.unknown.keys().map(String::as_str).collect();
        assert_eq!(unknown, ["brand_new_line", "event_msg/brand_new_event", "response_item/hologram"]);
        assert_eq!(report.unreadable, 1);
        assert_eq!(report.project.as_deref(), Some("/home/dev/shop"));
        assert_eq!(report.version.as_deref(), Some("0.166.0"));
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn old() {
        let (items, report) = items(OLD);
        assert_eq!((report.unreadable, report.unknown.len()), (0, 0));
        insta::assert_json_snapshot!(items.into_iter().map(|item| item.step).collect::<Vec<_>>());
    }

    #[test]
    fn code_mode() {
        insta::assert_json_snapshot!(steps(CODE_MODE));
        crate::fixture::assert_survives(&Codex, CODE_MODE);
    }

    #[test]
    fn what_the_approval_reviewer_is_asked_is_told_apart() {
        let meta = r#"{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{"id":"g1","source":{"subagent":{"other":"guardian"}}}}"#;
        let ask = |what: &str| {
            format!(
                r#"{{"timestamp":"2026-03-01T10:00:00Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"The following is the Codex agent history"}},{{"type":"input_text","text":"{what}"}}]}}}}"#
            )
        };
        let lines = [meta.to_owned(), ask("May it run ls?"), ask("May it run rm?")].join("\n");
        let asked: Vec<_> = steps(lines.as_bytes())
            .into_iter()
            .filter_map(|step| if let Body::User(user) = step.body { Some(user) } else { None })
            .collect();
        assert!(asked.iter().all(|user| user.origin == Origin::Harness));
        assert!(asked[0].text.ends_with("May it run ls?") && asked[1].text.ends_with("May it run rm?"));
    }

    #[test]
    fn what_is_not_recorded_is_not_empty() {
        let line = |output: &str| {
            format!(
                r#"{{"timestamp":"2026-03-01T10:00:00Z","type":"response_item","payload":{{"type":"function_call_output","call_id":"c"{output}}}}}"#
            )
        };
        let output = |field: &str| match steps(line(field).as_bytes()).remove(0).body {
            Body::Result(result) => (result.ended(), result.output),
            _ => unreachable!(),
        };
        assert_eq!(output(""), (None, Value::Null));
        assert_eq!(output(r#","output":null"#), (None, Value::Null));
        assert_eq!(output(r#","output":"""#), (None, Value::from("")));
    }

    #[test]
    fn its_own_files_are_known_by_their_head() {
        assert!(Codex.sniff(STUCK) && Codex.sniff(QUIRKS) && Codex.sniff(OLD) && Codex.sniff(&STUCK[..120]));
        assert!(!Codex.sniff(
            br#"{"type":"turn","session":"s1","timestamp":"x","text":"\"payload\":\"type\":\"event_msg\""}"#
        ));
        assert!(!Codex.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn a_fork_names_its_requests_alike() {
        let keys =
            |bytes: &[u8]| -> Vec<_> { items(bytes).0.into_iter().filter_map(|item| item.key).collect() };
        let id = "019ca8f0-5d00-7a31-9c42-1f0e2d3c4b5a";
        let fork = format!(r#""id":"019c-fork","forked_from_id":"{id}""#);
        let fork = String::from_utf8_lossy(STUCK).replace(&format!(r#""id":"{id}""#), &fork);
        assert_eq!((keys(STUCK).len(), keys(STUCK)), (8, keys(fork.as_bytes())));
    }
}
