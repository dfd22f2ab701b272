//! Qwen Code's chats.

pub(crate) mod hook;
mod outcome;
mod reader;
mod record;

use memchr::memmem;

use crate::{Base, Format, Place, Reader, Shape, Source};

/// Qwen Code's chats.
pub(crate) struct QwenCode;

impl Format for QwenCode {
    fn name(&self) -> &'static str {
        "qwen-code"
    }

    fn title(&self) -> &'static str {
        "Qwen Code"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[Place { base: Base::Variable("QWEN_HOME", ".qwen"), folder: "projects", suffix: ".jsonl" }]
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

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::QwenChat::new(source))
    }
}

/// Whether a line, perhaps cut off, has the keys of this agent's records. Inside a string a key's quotes would be
/// escaped.
fn is_record(line: &[u8]) -> bool {
    let has = |key: &str| memmem::find(line, key.as_bytes()).is_some();
    has("\"uuid\":")
        && has("\"parentUuid\":")
        && has("\"sessionId\":")
        && (has("\"parts\":") || has("\"systemPayload\":"))
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
        let source = Source { path: Some(Path::new("/p/chats/5f0c.jsonl")) };
        let report = read(&QwenCode, bytes, &source, &mut |item| items.push(item));
        (items, report)
    }

    fn steps(bytes: &[u8]) -> Vec<Step> {
        items(bytes).0.into_iter().map(|item| item.step).collect()
    }

    #[test]
    fn quirks() {
        let report = items(QUIRKS).1;
        assert_eq!((report.unreadable, report.unknown), (1, [("hologram".to_owned(), 1)].into()));
        assert_eq!(report.project.as_deref(), Some("/home/dev/shop"));
        assert_eq!(report.version.as_deref(), Some("0.24.4"));
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn its_own_files_are_known_by_their_head() {
        assert!(QwenCode.sniff(STUCK) && QwenCode.sniff(QUIRKS));
        assert!(!QwenCode.sniff(br#"{"type":"turn","session":"s1","text":"\"uuid\":\"parentUuid\":"}"#));
        assert!(!QwenCode.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn a_fork_names_its_requests_alike() {
        let key = |line: &str| items(line.as_bytes()).0.into_iter().find_map(|item| item.key).unwrap();
        let usage = r#""type":"assistant","usageMetadata":{"totalTokenCount":5}"#;
        let first = key(&format!(r#"{{"uuid":"a",{usage}}}"#));
        assert_eq!(first, key(&format!(r#"{{"uuid":"b","forkedFrom":{{"messageUuid":"a"}},{usage}}}"#)));
        assert_ne!(first, key(&format!(r#"{{"uuid":"b",{usage}}}"#)));
    }
}
