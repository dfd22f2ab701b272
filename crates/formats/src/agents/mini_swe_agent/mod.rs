//! mini-SWE-agent: one JSON document a run.

mod fence;
mod observation;
mod reader;
mod record;

use crate::json::document;
use crate::{Base, Format, Place, Reader, Shape, Source};

/// mini-SWE-agent's trajectories.
pub(crate) struct MiniSweAgent;

impl Format for MiniSweAgent {
    fn name(&self) -> &'static str {
        "mini-swe-agent"
    }

    fn title(&self) -> &'static str {
        "mini-SWE-agent"
    }

    fn page(&self) -> &'static str {
        include_str!("page.md")
    }

    fn verified(&self) -> bool {
        true
    }

    fn places(&self) -> &'static [Place] {
        &[Place { base: Base::Config, folder: "mini-swe-agent", suffix: ".traj.json" }]
    }

    fn shape(&self) -> Shape {
        Shape::Document
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let Some(doc) = document::head(head) else { return false };
        let named = doc["trajectory_format"].as_str().is_some_and(|name| name.starts_with("mini-swe-agent"));
        let agent =
            doc["info"]["config"]["agent_type"].as_str().is_some_and(|name| name.starts_with("minisweagent"));
        named || agent || doc["info"].get("mini_version").is_some()
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::MiniSweTrajectory::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, read};

    const STUCK: &str = include_str!("fixtures/stuck.json");
    const QUIRKS: &str = include_str!("fixtures/quirks.json");
    const TOOLS: &str = include_str!("fixtures/tools.json");
    const RESPONSES: &str = include_str!("fixtures/responses.json");

    fn steps(text: &str) -> Vec<deloop_types::Step> {
        let source = Source { path: Some(std::path::Path::new("runs/shop-1.traj.json")) };
        let mut steps = Vec::new();
        let report = read(&MiniSweAgent, text.as_bytes(), &source, &mut |item: Item| steps.push(item.step));
        assert_eq!((report.unreadable, report.project.as_deref()), (0, Some("/home/dev/shop")));
        assert!(report.version.is_some());
        steps
    }

    #[test]
    fn knows_its_own_files() {
        for text in [STUCK, QUIRKS, TOOLS, RESPONSES] {
            assert!(MiniSweAgent.sniff(text.as_bytes()));
        }
        assert!(
            !MiniSweAgent.sniff(br#"{"info":{"exit_status":"submitted"},"trajectory":[{"action":"ls"}]}"#)
        );
        assert!(!MiniSweAgent.sniff(br#"{"messages":[{"role":"user","content":"hi"}]}"#));
        assert!(!MiniSweAgent.sniff(br#"{"type":"turn","session":"s","text":"hi"}"#));
        assert!(!MiniSweAgent.sniff(br#"{"name":"shop","version":"1.0.0"}"#));
    }

    #[test]
    fn quirks() {
        insta::assert_json_snapshot!(steps(QUIRKS));
    }

    #[test]
    fn tool_calls() {
        insta::assert_json_snapshot!(steps(TOOLS));
    }

    #[test]
    fn responses() {
        insta::assert_json_snapshot!(steps(RESPONSES));
    }
}
