//! Checks answers against the vectors and against an independent reference.

use std::path::{Path, PathBuf};

use deloop_conformance::vectors::Vector;
use deloop_conformance::{Reference, Verdict, random};
use serde_json::Value;

/// The detector and count of every finding, in order.
fn findings(decision: &Value) -> Vec<(String, u64)> {
    let one = |f: &Value| (f["detector"].as_str().unwrap().to_owned(), f["count"].as_u64().unwrap());
    decision["findings"].as_array().unwrap().iter().map(one).collect()
}

/// Whether every answer holds what the vector says of it.
pub(crate) fn check_vector(vector: &Vector, answers: &[Value]) {
    assert_eq!(answers.len(), vector.steps.len(), "{}: an answer for every step", vector.name);
    for (i, (answer, expected)) in answers.iter().zip(&vector.decisions).enumerate() {
        for (key, value) in expected.as_object().unwrap() {
            let about = format!("{} step {i}: {key} ({})", vector.name, vector.about);
            if key == "findings" {
                assert_eq!(findings(answer), findings(expected), "{about}");
                continue;
            }
            assert_eq!(&answer[key], value, "{about}");
        }
    }
}

/// The configuration of a vector, as a file in this folder. JSON is YAML.
pub(crate) fn config_file(vector: &Vector, folder: &Path) -> PathBuf {
    let config = folder.join("vector.yaml");
    let text = if vector.config.is_null() { "{}".to_owned() } else { vector.config.to_string() };
    std::fs::write(&config, text).unwrap();
    config
}

/// Random cases of 30 to 200 steps, each case several interleaved sessions, and the verdict of the reference on every
/// step.
pub(crate) struct RandomCases {
    profile: &'static str,
    /// One step a line.
    pub(crate) lines: Vec<String>,
    expected: Vec<(u64, String, Verdict)>,
}

impl RandomCases {
    pub(crate) fn new(profile: &'static str, cases: u64) -> Self {
        let (mut lines, mut expected) = (Vec::new(), Vec::new());
        for seed in 0..cases {
            let mut reference = Reference::new(profile);
            for line in random::lines(seed) {
                let mut step: Value = serde_json::from_str(&line).unwrap();
                expected.push((seed, step.to_string(), reference.observe(&step)));
                // Sessions and swarms of one case must not meet those of another.
                for key in ["session", "swarm"] {
                    if key == "session" || step.get(key).is_some() {
                        let name = step[key].as_str().unwrap_or("default").to_owned();
                        step[key] = format!("{seed}/{name}").into();
                    }
                }
                lines.push(format!("{step}\n"));
            }
        }
        Self { profile, lines, expected }
    }

    pub(crate) fn check(&self, answers: &[Value]) {
        let profile = self.profile;
        assert_eq!(answers.len(), self.expected.len());
        let mut reached = std::collections::BTreeMap::new();
        for (i, (answer, (seed, step, verdict))) in answers.iter().zip(&self.expected).enumerate() {
            let found = (answer["action"].as_str().unwrap(), answer["level"].as_u64().unwrap());
            assert_eq!(
                found,
                (verdict.action.as_str(), verdict.level),
                "{profile}, seed {seed}, line {i}: {step}\n{answer}"
            );
            if let Some(expected) = &verdict.findings {
                let expected: Vec<_> = expected.iter().map(|(d, count)| ((*d).to_owned(), *count)).collect();
                assert_eq!(findings(answer), expected, "{profile}, seed {seed}, line {i}: {step}\n{answer}");
            }
            *reached.entry(found).or_insert(0) += 1;
        }
        assert!(reached.len() > 1, "{profile}: the sessions reach more than one verdict: {reached:?}");
    }
}
