//! OpenHands, in both generations of its events.

mod event;
mod usage_meters;
mod v0;
mod v1;

use crate::json::peek;
use crate::json::tolerant::{self, Objects};
use crate::step_writer::StepWriter;
use crate::{Format, Place, Reader, Shape, Sink, Source};

/// OpenHands: the events of one conversation in one document.
pub(crate) struct OpenHands;

impl Format for OpenHands {
    fn name(&self) -> &'static str {
        "openhands"
    }

    fn title(&self) -> &'static str {
        "OpenHands"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        false
    }

    fn places(&self) -> &'static [Place] {
        &[]
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let Some(first) = peek::elements(head).next() else { return false };
        let v0 =
            peek::has(first, &["action", "args"]) || peek::has(first, &["observation", "content", "extras"]);
        let kind = peek::text(first, "kind").unwrap_or_default();
        let v1 = kind.ends_with("Event") || kind.ends_with("Observation") || kind.starts_with("Condensation");
        peek::has(first, &["source", "timestamp"]) && (v0 || v1)
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(OpenhandsReader { writer: StepWriter::for_file(source) })
    }
}

struct OpenhandsReader {
    writer: StepWriter,
}

impl Reader for OpenhandsReader {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        match tolerant::read(bytes) {
            Ok(Objects::<event::OpenhandsEvent<'_>>(events)) => {
                if events.iter().any(|event| event.kind.get().is_some()) {
                    v1::read(self.writer.clone(), events, out);
                } else {
                    v0::read(self.writer.clone(), events, out);
                }
            }
            Err(error) => out.unreadable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{assert_sniffs, assert_survives, steps};

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.json");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.json");
    const STUCK_V0: &[u8] = include_bytes!("fixtures/stuck_v0.json");
    const QUIRKS_V0: &[u8] = include_bytes!("fixtures/quirks_v0.json");

    #[test]
    fn knows_its_own_files() {
        for fixture in [STUCK, QUIRKS, STUCK_V0, QUIRKS_V0] {
            assert_sniffs(&OpenHands, fixture);
        }
    }

    #[test]
    fn quirks() {
        let (v1, report) = steps(&OpenHands, QUIRKS, "quirks.json");
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["TeleportEvent"]);
        insta::assert_json_snapshot!("quirks", v1);
        let (v0, report) = steps(&OpenHands, QUIRKS_V0, "quirks.json");
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["teleport"]);
        insta::assert_json_snapshot!("quirks_v0", v0);
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&OpenHands, QUIRKS);
        assert_survives(&OpenHands, QUIRKS_V0);
    }
}
