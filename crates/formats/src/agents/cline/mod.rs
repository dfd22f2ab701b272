//! Cline and the agents made from it: Roo Code, Kilo Code.

mod reader;
mod record;
mod xml;

use crate::json::peek;
use crate::{Base, Format, Place, Reader, Shape, Source};

/// Cline: the messages of one task in one document.
pub(crate) struct Cline;

const HISTORY: &str = "api_conversation_history.json";

/// The tasks of an extension of VS Code, or of an editor made from it.
const fn tasks(folder: &'static str) -> Place {
    Place { base: Base::Config, folder, suffix: HISTORY }
}

impl Format for Cline {
    fn name(&self) -> &'static str {
        "cline"
    }

    fn title(&self) -> &'static str {
        "Cline, Roo Code"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        false
    }

    fn places(&self) -> &'static [Place] {
        const PLACES: &[Place] = &[
            tasks("Code/User/globalStorage/saoudrizwan.claude-dev/tasks"),
            tasks("Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks"),
            tasks("Code/User/globalStorage/kilocode.kilo-code/tasks"),
            tasks("Cursor/User/globalStorage/saoudrizwan.claude-dev/tasks"),
            tasks("Cursor/User/globalStorage/rooveterinaryinc.roo-cline/tasks"),
            Place { base: Base::Home, folder: ".cline/data/tasks", suffix: HISTORY },
            Place { base: Base::Home, folder: ".cline/data/sessions", suffix: ".messages.json" },
        ];
        PLACES
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let marked = |first: &[u8]| {
            [&b"<task>"[..], b"<user_message>", b"<environment_details>"]
                .iter()
                .any(|mark| memchr::memmem::find(first, mark).is_some())
        };
        let task = peek::elements(head)
            .next()
            .is_some_and(|first| peek::text(first, "role").is_some() && marked(first));
        let messages = peek::field(head, "messages").and_then(|messages| peek::elements(messages).next());
        let session = peek::has(head, &["version", "sessionId"])
            && messages.is_some_and(|first| peek::has(first, &["role", "content"]));
        task || session
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::ClineTask::new(source))
    }
}

#[cfg(test)]
mod tests {
    use deloop_types::Outcome;

    use super::*;
    use crate::fixture::{assert_sniffs, assert_survives, results, steps};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.json");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.json");
    const SESSION: &[u8] = include_bytes!("fixtures/session.json");

    #[test]
    fn knows_its_own_files() {
        for fixture in [STUCK, QUIRKS, SESSION] {
            assert_sniffs(&Cline, fixture);
        }
    }

    #[test]
    fn a_time_out_is_no_success() {
        let result = br#"[{"role":"user","content":[{"type":"text","text":"[execute_command for 'make'] Result:\nCommand execution timed out after 30 seconds. It may still run."}]}]"#;
        let ended = results(&Cline, result).remove(0).0;
        assert_eq!(ended, Some(Outcome::Timeout));
    }

    #[test]
    fn quirks() {
        let (steps, report) = steps(&Cline, QUIRKS, "tasks/1772359200001/api_conversation_history.json");
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["hologram", "system"]);
        insta::assert_json_snapshot!(steps);
    }

    #[test]
    fn the_newer_document_names_its_session() {
        let (steps, _) = steps(&Cline, SESSION, "sessions/x/x.messages.json");
        insta::assert_json_snapshot!(steps);
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&Cline, QUIRKS);
    }
}
