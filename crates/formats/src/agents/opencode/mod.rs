//! opencode: its exports, and the files of its storage folder.

pub(crate) mod plugin;
mod record;
mod session;
mod storage;

use crate::json::peek;
use crate::json::tolerant::{self, Object};
use crate::step_writer::StepWriter;
use crate::{Format, Place, Reader, Shape, Sink, Source};

pub use storage::read_storage;
use storage::{DATABASE, STORAGE};

/// What `opencode export` writes: one session in one document.
pub(crate) struct Opencode;

impl Format for Opencode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn title(&self) -> &'static str {
        "opencode"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[DATABASE, STORAGE]
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let Some(info) = peek::field(head, "info") else { return false };
        let Some(messages) = peek::field(head, "messages") else { return false };
        let first = peek::elements(messages).next();
        peek::text(info, "id").is_some_and(|id| id.starts_with("ses"))
            && first.is_none_or(|message| peek::field(message, "info").is_some())
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(OpencodeExportReader { writer: StepWriter::for_file(source) })
    }
}

struct OpencodeExportReader {
    writer: StepWriter,
}

impl Reader for OpencodeExportReader {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        match tolerant::read(bytes) {
            Ok(Object::<record::OpencodeExport<'_>>(Some(export))) => {
                let info = export.info.0.unwrap_or_default();
                session::read(self.writer.clone(), info, export.messages.0, out);
            }
            Ok(Object(None)) => out.unreadable("not a JSON object"),
            Err(error) => out.unreadable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use deloop_types::Outcome;
    use serde_json::Value;

    use super::*;
    use crate::fixture::{assert_sniffs, assert_survives, results, steps};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.json");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.json");

    #[test]
    fn knows_its_own_files() {
        assert_sniffs(&Opencode, STUCK);
        assert_sniffs(&Opencode, QUIRKS);
    }

    #[test]
    fn what_is_not_recorded_is_not_empty() {
        let export = |state: &str| {
            format!(
                r#"{{"info":{{"id":"s"}},"messages":[{{"info":{{"role":"assistant"}},"parts":[{{"type":"tool","callID":"c","tool":"x","state":{{{state}}}}}]}}]}}"#
            )
        };
        let result = |state: &str| results(&Opencode, export(state).as_bytes()).remove(0);
        assert_eq!(result(r#""status":"completed""#), (Some(Outcome::Ok), Value::Null));
        assert_eq!(result(r#""status":"completed","output":"""#), (Some(Outcome::Ok), Value::from("")));
        let dismissed = r#""status":"error","error":"The user dismissed this question""#;
        assert_eq!(result(dismissed).0, Some(Outcome::Denied));
    }

    #[test]
    fn quirks() {
        let (steps, report) = steps(&Opencode, QUIRKS, "export.json");
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["hologram", "system"]);
        insta::assert_json_snapshot!(steps);
    }

    /// The files that the storage folder has for what an export holds.
    fn stored(export: &[u8]) -> Vec<(String, Vec<u8>)> {
        let export: Value = serde_json::from_slice(export).unwrap();
        let session = export["info"]["id"].as_str().unwrap();
        let mut files =
            vec![(format!("session/shop/{session}.json"), export["info"].to_string().into_bytes())];
        for message in export["messages"].as_array().unwrap() {
            let id = message["info"]["id"].as_str().unwrap();
            files.push((format!("message/{session}/{id}.json"), message["info"].to_string().into_bytes()));
            for part in message["parts"].as_array().unwrap() {
                let part_id = part["id"].as_str().unwrap();
                files.push((format!("part/{id}/{part_id}.json"), part.to_string().into_bytes()));
            }
        }
        files.reverse();
        files
    }

    #[test]
    fn the_storage_folder_holds_the_same_steps() {
        let files = stored(STUCK);
        let mut stored = Vec::new();
        let pairs = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
        let report = read_storage(pairs, &mut |item| stored.push(item.step));
        assert_eq!((report.unreadable, report.project.as_deref()), (0, Some("/home/dev/shop")));
        assert_eq!(stored, steps(&Opencode, STUCK, "export.json").0);
    }

    #[test]
    fn older_storage_folders_are_nested_and_damaged_files_are_skipped() {
        let files: [(&str, &[u8]); 5] = [
            ("session/part/ses_1/msg_1/prt_2.json", br#"{"type":"text","text":"B"}"#),
            ("session/part/ses_1/msg_1/prt_1.json", br#"{"type":"text","text":"A"}"#),
            ("session/part/ses_1/msg_1/prt_3.json", b"{"),
            ("session/message/ses_1/msg_1.json", br#"{"role":"assistant"}"#),
            ("migration", b"2"),
        ];
        let mut read = Vec::new();
        let report = read_storage(files, &mut |item| read.push(item.step));
        assert_eq!(read, [deloop_types::Step::text("ses_1", "A\nB")]);
        assert_eq!((report.unreadable, report.unknown.len()), (1, 1));
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&Opencode, QUIRKS);
    }
}
