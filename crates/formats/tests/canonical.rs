//! Every format's fixture of the canonical stuck session (`CANONICAL.md`) reads as the same Steps, apart from the
//! differences listed in `canonical/differences.jsonl`.

use std::collections::HashMap;
use std::path::Path;

use deloop_formats::{FORMATS, Item, Source};
use serde::Deserialize;
use serde_json::{Map, Value, json};

const STEPS: &str = include_str!("canonical/steps.jsonl");
const DIFFERENCES: &str = include_str!("canonical/differences.jsonl");

/// How a fixture differs from the canonical Steps.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    /// The file, below `src`.
    fixture: String,
    session: String,
    project: Option<String>,
    version: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    args: Option<Value>,
    /// The output as this agent frames it: `{}` is the canonical output, `*` is text that varies within a line.
    #[serde(default)]
    output: Option<String>,
    /// Fields of each usage; `null` when requests have none.
    #[serde(default = "empty")]
    usage: Option<Map<String, Value>>,
    #[serde(default)]
    usage_after_result: bool,
    #[serde(default)]
    without_last_usage: bool,
    #[serde(default)]
    without_results: bool,
    #[serde(default)]
    without_ids: bool,
    /// A usage of the whole session, at its end.
    #[serde(default)]
    total: Option<Map<String, Value>>,
    /// By how much a step of each type is later, a usage than the step before it; `null` when it has no time.
    #[serde(default)]
    late_ms: HashMap<String, Option<i64>>,
}

#[expect(clippy::unnecessary_wraps, reason = "a default for serde")]
fn empty() -> Option<Map<String, Value>> {
    Some(Map::new())
}

fn lines<T: for<'a> Deserialize<'a>>(text: &str) -> Vec<T> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Difference {
    /// Returns the canonical Steps as this fixture holds them.
    fn expected(&self) -> Vec<Value> {
        let mut steps: Vec<Value> = lines(STEPS);
        if self.without_last_usage {
            steps.pop();
        }
        if self.usage_after_result {
            (2..steps.len() - 1).filter(|at| at % 3 == 2).for_each(|at| steps.swap(at, at + 1));
        }
        steps.retain(|step| match step["type"].as_str() {
            Some("usage") => self.usage.is_some(),
            Some("result") => !self.without_results,
            _ => true,
        });
        let mut before = None;
        for step in &mut steps {
            self.apply(step, before);
            before = step["ts"].as_i64();
        }
        if let Some(total) = &self.total {
            let mut step = json!({"type": "usage", "session": self.session});
            step.as_object_mut().unwrap().extend(total.clone());
            steps.push(step);
        }
        steps
    }

    fn apply(&self, step: &mut Value, before: Option<i64>) {
        let kind = step["type"].as_str().unwrap().to_owned();
        step["session"] = json!(self.session);
        let canonical = if kind == "usage" { before } else { step["ts"].as_i64() };
        let late = self.late_ms.get(&kind).copied().unwrap_or(Some(0));
        match canonical.zip(late) {
            Some((ts, late)) => step["ts"] = json!(ts + late),
            None => drop(step.as_object_mut().unwrap().remove("ts")),
        }
        match (&self.usage, kind.as_str()) {
            (Some(fields), "usage") => step.as_object_mut().unwrap().extend(fields.clone()),
            (_, "turn") if step.get("calls").is_some() => {
                let call = step["calls"][0].as_object_mut().unwrap();
                call.extend(self.tool.iter().map(|tool| ("tool".to_owned(), json!(tool))));
                call.extend(self.args.iter().map(|args| ("args".to_owned(), args.clone())));
                if self.without_ids {
                    call.remove("id");
                }
            }
            (_, "result") if self.without_ids => drop(step.as_object_mut().unwrap().remove("id")),
            _ => {}
        }
    }

    /// Replaces what no two fixtures have in common: the ids of calls, in order, and the frame around an output.
    fn normalize(&self, steps: &mut [Value]) {
        let canonical = lines::<Value>(STEPS)[3]["output"].as_str().unwrap().to_owned();
        let frame = self.output.as_deref().unwrap_or("{}").replace("{}", &canonical);
        let mut ids: Vec<Value> = Vec::new();
        for step in steps {
            if let Some(id) = step.get_mut("calls").and_then(|calls| calls[0].get_mut("id")) {
                ids.push(id.clone());
                *id = json!(format!("call-{}", ids.len()));
            }
            if let Some(id) = step.get_mut("id") {
                let at = ids.iter().position(|known| known == id).expect("a result of a call");
                *id = json!(format!("call-{}", at + 1));
            }
            if let Some(output) = step.get_mut("output") {
                assert!(
                    matches(output.as_str().unwrap(), &frame),
                    "{}: {output} is not {frame:?}",
                    self.fixture
                );
                *output = json!(canonical);
            }
        }
    }
}

/// Returns whether a text is what a pattern says, in which `*` stands for anything but a line's end.
fn matches(text: &str, pattern: &str) -> bool {
    let Some((start, pattern)) = pattern.split_once('*') else { return text == pattern };
    let Some(rest) = text.strip_prefix(start) else { return false };
    let line = rest.find('\n').unwrap_or(rest.len());
    (0..=line).any(|at| rest.is_char_boundary(at) && matches(&rest[at..], pattern))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "fixtures are files")]
fn every_format_reads_the_canonical_session() {
    let mut covered = Vec::new();
    for difference in lines::<Difference>(DIFFERENCES) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(&difference.fixture);
        let bytes = std::fs::read(&path).unwrap();
        let format = deloop_formats::sniff(&bytes).unwrap();
        let mut steps = Vec::new();
        let report =
            deloop_formats::read(format, &bytes, &Source { path: Some(&path) }, &mut |item: Item| {
                steps.push(serde_json::to_value(item.step).unwrap());
            });
        difference.normalize(&mut steps);
        let expected = difference.expected();
        for (at, (step, expected)) in steps.iter().zip(&expected).enumerate() {
            assert_eq!(step, expected, "{}, step {at}", difference.fixture);
        }
        assert_eq!(steps.len(), expected.len(), "{}", difference.fixture);
        assert_eq!((report.unreadable, report.unknown.len()), (0, 0), "{}", difference.fixture);
        let about = (report.project, report.version);
        assert_eq!(about, (difference.project, difference.version), "{}", difference.fixture);
        covered.push(format.name());
    }
    for format in FORMATS.iter().filter(|format| format.name() != "native") {
        assert!(covered.contains(&format.name()), "{} has no fixture", format.name());
    }
}

#[test]
fn a_pattern_matches_within_lines() {
    assert!(matches("a 12 b", "a * b") && matches("a", "a") && matches("a", "a*"));
    assert!(!matches("a 1\n2 b", "a * b") && !matches("a 12 c", "a * b") && !matches("ab", "a"));
}
