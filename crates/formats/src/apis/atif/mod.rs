//! ATIF, the Agent Trajectory Interchange Format of Harbor.

mod metrics;
mod outcome;
mod reader;
mod record;

use crate::json::document;
use crate::{Format, Place, Reader, Shape, Source};

/// ATIF: one JSON document per run.
pub(crate) struct Atif;

impl Format for Atif {
    fn name(&self) -> &'static str {
        "atif"
    }

    fn title(&self) -> &'static str {
        "ATIF (Harbor, Terminal-Bench)"
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
        let Some(document) = document::head(head) else { return false };
        if let Some(version) = document["schema_version"].as_str() {
            return version.starts_with("ATIF-v");
        }
        // The version may come last.
        let step = &document["steps"][0];
        document["agent"].is_object() && step.get("step_id").is_some() && step.get("source").is_some()
    }

    fn reader(&self, source: &Source<'_>) -> Box<dyn Reader> {
        Box::new(reader::AtifFile::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deloop_testing::assert_linear;

    use crate::fixture::{assert_sniffs, assert_survives, results, steps};
    use deloop_types::Outcome;

    const STUCK: &[u8] = include_bytes!("fixtures/stuck.json");
    const QUIRKS: &[u8] = include_bytes!("fixtures/quirks.json");

    #[test]
    fn knows_its_own_files() {
        assert_sniffs(&Atif, STUCK);
        assert_sniffs(&Atif, QUIRKS);
        assert!(
            Atif.sniff(br#"{"agent":{"name":"codex"},"steps":[{"source":"user","step_id":1,"message":"hi"#)
        );
        assert!(
            !Atif.sniff(br#"{"schema_version":"1.2","agent":{},"steps":[{"step_id":1,"source":"user"}]}"#)
        );
    }

    #[test]
    fn quirks() {
        let (steps, report) = steps(&Atif, QUIRKS, "jobs/2026-03-01/shop__a1b2c3/agent/trajectory.json");
        assert_eq!((report.unreadable, report.project.as_deref()), (0, Some("/home/dev/shop")));
        assert_eq!(report.unknown.keys().collect::<Vec<_>>(), ["environment", "step"]);
        insta::assert_json_snapshot!(steps);
    }

    #[test]
    fn the_trial_names_the_session_if_nothing_else_does() {
        let session = |path, document: &str| {
            steps(&Atif, document.as_bytes(), path).0.first().map(|step| step.session.to_string())
        };
        let document = r#"{"schema_version":"ATIF-v1.7","agent":{},"steps":[{"step_id":1,"source":"user","message":"hi"}]}"#;
        assert_eq!(session("jobs/a/shop__1/agent/trajectory.json", document).unwrap(), "shop__1");
        assert_eq!(session("runs/shop.json", document).unwrap(), "shop");
        let named = document.replace("\"agent\"", "\"trajectory_id\":\"t\",\"agent\"");
        assert_eq!(session("runs/shop.json", &named).unwrap(), "t");
    }

    /// Each exporter has its own way to say that a call failed.
    #[test]
    fn outcomes() {
        let of = |agent: &str, step: &str, result: &str| {
            let document = format!(
                r#"{{"schema_version":"ATIF-v1.6","session_id":"s","agent":{{"name":"{agent}"}},"steps":[
                {{"step_id":1,"source":"agent","message":"","tool_calls":[{{"tool_call_id":"c","function_name":"Bash","arguments":{{}}}}],
                "observation":{{"results":[{{"source_call_id":"c",{result}}}]}}{step}}}]}}"#
            );
            let mut all = results(&Atif, document.as_bytes());
            assert_eq!(all.len(), 1);
            all.remove(0)
        };
        let failed = (Some(Outcome::Error), "Exit code 1".into());
        let content = r#""content":"Exit code 1\n\n[error] tool reported failure""#;
        assert_eq!(of("claude-code", "", content), failed);
        let flag = r#","extra":{"tool_result_is_error":true}"#;
        assert_eq!(of("other", flag, r#""content":"Exit code 1""#), failed);
        let (_, output) =
            of("claude-code", "", r#""content":"a\n\n[stdout]\na\n[metadata] {\"durationMs\": 12}""#);
        assert_eq!(output, "a\n\n[stdout]\na");
        let outcome = |agent: &str, result: &str| of(agent, "", result).0;
        assert_eq!(outcome("claude-code", r#""content":"fine""#), Some(Outcome::Ok));
        let denied = r#""content":"The user doesn't want to proceed with this tool use.""#;
        assert_eq!(outcome("claude-code", denied), Some(Outcome::Denied));
        for extra in [r#"{"is_error":true}"#, r#"{"status":"Failed"}"#, r#"{"exit_code":2}"#] {
            let result = format!(r#""content":"x","extra":{extra}"#);
            assert_eq!(outcome("other", &result), Some(Outcome::Error), "{extra}");
        }
        for extra in [r#"{"is_error":false}"#, r#"{"status":"success"}"#, r#"{"returncode":0}"#] {
            let result = format!(r#""content":"x","extra":{extra}"#);
            assert_eq!(outcome("other", &result), Some(Outcome::Ok), "{extra}");
        }
        assert_eq!(
            outcome("codex", r#""content":"Exit code: 101\nWall time: 2 seconds\nOutput:\nx""#),
            Some(Outcome::Error)
        );
        assert_eq!(outcome("other", r#""content":"Error: no such file""#), Some(Outcome::Error));
        assert_eq!(outcome("other", r#""content":"done""#), None);
    }

    /// Each level of embedded trajectories is a document of its own.
    #[test]
    fn subagents_of_subagents_are_read_to_a_depth() {
        let nested = |levels: usize| {
            let mut document = String::new();
            for level in 0..levels {
                document.push_str(&format!(
                    r#"{{"schema_version":"ATIF-v1.7","trajectory_id":"t{level}","agent":{{}},"steps":[{{"step_id":1,"source":"user","message":"hi"}}],"subagent_trajectories":["#
                ));
            }
            document + &"]}".repeat(levels)
        };
        assert_eq!(steps(&Atif, nested(3).as_bytes(), "a/b.json").0.len(), 3);
        assert_linear("nested trajectories", 8_000, |levels| {
            steps(&Atif, nested(levels).as_bytes(), "a/b.json");
        });
    }

    #[test]
    fn damaged_files_are_survived() {
        assert_survives(&Atif, QUIRKS);
    }
}
