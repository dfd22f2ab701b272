//! pi's sessions.

mod openclaw;
mod reader;
mod record;

use memchr::memmem;

use crate::{Base, Format, Place, Reader, Shape, Source};

/// pi's sessions.
pub(crate) struct Pi;

impl Format for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn title(&self) -> &'static str {
        "pi"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[Place {
            base: Base::Variable("PI_CODING_AGENT_DIR", ".pi/agent"),
            folder: "sessions",
            suffix: ".jsonl",
        }]
    }

    fn shape(&self) -> Shape {
        Shape::Lines
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let first = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
        first.is_some_and(is_header)
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::PiSession::new(source))
    }
}

/// Returns whether a line is the first of a session.
fn is_header(line: &[u8]) -> bool {
    let has = |text: &str| memmem::find(line, text.as_bytes()).is_some();
    line.starts_with(b"{")
        && (has("\"type\":\"session\"") || has("\"type\": \"session\""))
        && has("\"id\":")
        && has("\"timestamp\":")
        && has("\"cwd\":")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use deloop_types::Step;

    use super::*;
    use crate::{Item, Report, read};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.jsonl");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.jsonl");

    fn items(bytes: &[u8]) -> (Vec<Item>, Report) {
        let mut items = Vec::new();
        let source = Source { path: Some(Path::new("/p/2026-03-01T10-00-00-000Z_5f0c.jsonl")) };
        let report = read(&Pi, bytes, &source, &mut |item| items.push(item));
        (items, report)
    }

    fn steps(bytes: &[u8]) -> Vec<Step> {
        items(bytes).0.into_iter().map(|item| item.step).collect()
    }

    #[test]
    fn quirks() {
        let report = items(QUIRKS).1;
        let unknown: Vec<_> = report.unknown.keys().map(String::as_str).collect();
        assert_eq!((report.unreadable, unknown), (1, vec!["brand_new_entry", "message/oracle"]));
        assert_eq!(report.project.as_deref(), Some("/home/dev/shop"));
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn its_own_files_are_known_by_their_head() {
        assert!(Pi.sniff(STUCK) && Pi.sniff(QUIRKS));
        assert!(!Pi.sniff(br#"{"type":"turn","session":"s1","text":"\"type\":\"session\",\"cwd\":"}"#));
        assert!(!Pi.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn a_fork_names_its_requests_alike() {
        let keys =
            |bytes: &[u8]| -> Vec<_> { items(bytes).0.into_iter().filter_map(|item| item.key).collect() };
        let fork = String::from_utf8_lossy(STUCK).replace("5f0c1d2e", "99999999");
        assert_eq!((keys(STUCK).len(), keys(STUCK)), (8, keys(fork.as_bytes())));
    }
}
