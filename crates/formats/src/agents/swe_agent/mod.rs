//! SWE-agent: one `.traj` document a run.

mod action;
mod observation;
mod reader;

use serde_json::Value;

use crate::json::document;
use crate::{Format, Place, Reader, Shape, Source};

/// SWE-agent's trajectories.
pub(crate) struct SweAgent;

impl Format for SweAgent {
    fn name(&self) -> &'static str {
        "swe-agent"
    }

    fn title(&self) -> &'static str {
        "SWE-agent"
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
        Shape::Document
    }

    fn sniff(&self, head: &[u8]) -> bool {
        document::head(head).is_some_and(|doc| is_run(&doc) || doc["attempts"].get(0).is_some_and(is_run))
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::SweTrajectory::new(source))
    }
}

/// Returns whether an object has SWE-agent's steps; a run that failed at once has none, but says where it ran.
fn is_run(doc: &Value) -> bool {
    match doc["trajectory"].as_array().map(|steps| steps.first()) {
        Some(Some(step)) => {
            let others = ["observation", "response", "thought", "state"];
            let cut = step.as_object().is_some_and(|step| step.len() == 1);
            step["action"].is_string() && (cut || others.iter().any(|key| step.get(key).is_some()))
        }
        Some(None) => doc.get("environment").is_some() || doc.get("history").is_some(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, read};

    const STUCK: &str = include_str!("fixtures/stuck.traj");
    const QUIRKS: &str = include_str!("fixtures/quirks.traj");

    fn steps(text: &str) -> Vec<deloop_types::Step> {
        let source = Source { path: Some(std::path::Path::new("runs/shop-1.traj")) };
        let mut steps = Vec::new();
        let report = read(&SweAgent, text.as_bytes(), &source, &mut |item: Item| steps.push(item.step));
        assert_eq!(report.unreadable, 0);
        steps
    }

    #[test]
    fn knows_its_own_files() {
        assert!(SweAgent.sniff(STUCK.as_bytes()));
        assert!(SweAgent.sniff(QUIRKS.as_bytes()));
        assert!(
            SweAgent.sniff(br#"{"environment":"swe_main","trajectory":[{"action":"ls\n","observation":"a"#)
        );
        assert!(!SweAgent.sniff(br#"{"trajectory":[{"role":"user","content":"hi"}]}"#));
        assert!(!SweAgent.sniff(br#"{"type":"turn","session":"s","text":"hi"}"#));
        assert!(!SweAgent.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
        assert!(!SweAgent.sniff(b"not json"));
    }

    #[test]
    fn quirks() {
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn a_run_that_was_cut_off_is_read_as_far_as_it_goes() {
        let mut steps = Vec::new();
        let head = &STUCK.as_bytes()[..STUCK.len() / 2];
        let report = read(&SweAgent, head, &Source::default(), &mut |item: Item| steps.push(item.step));
        assert_eq!(report.unreadable, 1);
        assert!(steps.len() > 4);
    }

    #[test]
    fn what_it_says_of_the_run() {
        let report = read(&SweAgent, QUIRKS.as_bytes(), &Source::default(), &mut |_| {});
        assert_eq!(report.project.as_deref(), Some("/home/dev/shop"));
        assert_eq!(report.version.as_deref(), Some("1.1.0"));
    }
}
