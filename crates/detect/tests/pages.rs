//! Runs every example of every detector page: the page is the test.

use std::collections::HashMap;

use deloop_detect::{
    AnyDetector, DETECTORS, FailureNote, FoldContext, Happening, History, KnownFailures, Ledger, Memory,
    Nesting, Swarm, SwarmCount, SwarmWorker, ToolKind, Tools, WholeSession, fold, short_call, signature,
    target,
};
use deloop_types::{Body, Finding, Step};
use serde_json::Value;

const HEADINGS: [&str; 4] = ["## What it finds", "## Stuck", "## Not stuck", "## Tuning"];

/// A fenced block of a page: its language, its text and the line it starts at.
struct Block<'a> {
    language: &'a str,
    text: String,
    line: usize,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some(Block { language, text: String::new(), line: number + 1 }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Every finding of a detector on a session, with the session and step it was made at.
fn run(detector: &'static dyn AnyDetector, params: Value, steps: &str) -> Vec<(String, u64, Finding)> {
    let tuned = detector.tune(params).expect("parameters");
    let tools = Tools::default();
    let mut agents: HashMap<(String, Option<String>), (History, Memory)> = HashMap::new();
    let mut sessions: HashMap<String, (u64, Ledger)> = HashMap::new();
    let mut swarms: HashMap<String, Swarm> = HashMap::new();
    let mut wholes: HashMap<String, WholeSession> = HashMap::new();
    let mut projects: HashMap<String, KnownFailures> = HashMap::new();
    let mut found = Vec::new();
    for line in steps.lines() {
        let step: Step = line.parse().unwrap_or_else(|e| panic!("{e}: {line}"));
        let session = step.session.to_string();
        let (index, ledger) = sessions.entry(session.clone()).or_default();
        ledger.tick(&step);
        let mut counts = Vec::new();
        match &step.body {
            Body::Usage(usage) => {
                ledger.tokens += usage.input_tokens + usage.output_tokens;
                ledger.usd += usage.cost_usd.unwrap_or(0.0);
            }
            Body::Turn(turn) => {
                if let Some(swarm) = &step.swarm {
                    let worker = SwarmWorker { session: &session, agent: None };
                    counts.extend(turn.calls.iter().map(|call| {
                        let kind = tools.kind(&call.tool);
                        assert_ne!(kind, ToolKind::Poll);
                        let about = target(&call.tool, &call.args, kind).short();
                        let swarm = swarms.entry(swarm.clone()).or_default();
                        let vain = swarm.in_vain(signature(call, &tools).short());
                        let (in_vain, in_vain_workers) = (vain.calls, vain.workers);
                        let short = || short_call(&call.tool, &call.args);
                        Some(SwarmCount { in_vain, in_vain_workers, ..swarm.push(about, worker, short) })
                    }));
                }
            }
            _ => {}
        }
        let key = (session.clone(), step.agent.clone());
        ledger.subagents += u64::from(step.agent.is_some() && !agents.contains_key(&key));
        let (history, memory) = agents.entry(key).or_insert_with(|| (History::default(), tuned.fresh()));
        let turns = history.turns();
        let mut last = None;
        let above = step.controller.as_ref().map(|controller| {
            let tree = wholes.get(controller.as_str()).and_then(|whole| whole.tree.as_ref());
            tree.map_or(Nesting { depth: 1, relays: 0 }, |tree| tree.started_session())
        });
        let whole = wholes.entry(session.clone()).or_default();
        let known = step.project.clone().map(|project| projects.entry(project).or_default().clone());
        let spawned = Some(above.unwrap_or_default());
        let context = FoldContext { ledger, tools: &tools, arrived: None, spawned, failures: known.as_ref() };
        let mut note = FailureNote::of_step(&step, history);
        fold(history, whole, context, &step, *index, &counts, &mut |moment| {
            match &moment.event {
                Happening::Result(view) => {
                    note = FailureNote::of_result(moment.history, &view.record, moment.failures);
                }
                Happening::Call(call) => {
                    note = FailureNote::of_call(moment.history, &call.record, moment.failures).or(note);
                }
                _ => {}
            }
            if let (Some(swarm), Happening::Result(view)) = (&step.swarm, &moment.event)
                && view.record.ending.in_vain()
            {
                let worker = SwarmWorker { session: &session, agent: None };
                swarms.entry(swarm.clone()).or_default().push_in_vain(view.record.signature, worker);
            }
            last = tuned.look(moment, memory).or(last.take());
        });
        if let Some(note) = note {
            let project = step.project.as_ref().and_then(|project| projects.get_mut(project));
            project.unwrap_or_else(|| whole.failures.get_or_insert_default()).enter(&note);
        }
        ledger.turns += history.turns() - turns;
        found.extend(last.map(|finding| (session, *index, *finding)));
        *index += 1;
    }
    found
}

fn check(detector: &'static dyn AnyDetector) {
    let page = detector.page();
    let name = detector.name();
    assert!(page.starts_with(&format!("# {name}\n")), "{name}: the page starts with its name");
    let headings: Vec<&str> = page.lines().filter(|l| l.starts_with("## ")).collect();
    assert_eq!(headings, HEADINGS, "{name}: the headings of the page");
    let mut params = Value::Object(serde_json::Map::new());
    let (mut stuck, mut quiet) = (0, 0);
    let blocks = blocks(page);
    for (i, block) in blocks.iter().enumerate() {
        let place = format!("{name}.md:{}", block.line);
        match block.language {
            "toml" => params = toml::from_str(&block.text).unwrap_or_else(|e| panic!("{place}: {e}")),
            "jsonl" => {
                let expected = blocks.get(i + 1).filter(|b| b.language == "finding");
                let found = run(detector, std::mem::take(&mut params), &block.text);
                params = Value::Object(serde_json::Map::new());
                match expected {
                    None => {
                        quiet += 1;
                        assert!(found.is_empty(), "{place}: must find nothing, found {found:#?}");
                    }
                    Some(expected) => {
                        stuck += 1;
                        compare(&place, &found, &expected.text);
                    }
                }
            }
            "finding" => {}
            other => panic!("{place}: a block of {other}"),
        }
    }
    assert!(stuck > 0 && quiet > 0, "{name}: a page shows both what it finds and what it leaves alone");
    tuning_tells_every_default(detector);
}

fn compare(place: &str, found: &[(String, u64, Finding)], expected: &str) {
    let expected: Vec<Value> =
        expected.lines().map(|l| serde_json::from_str(l).expect("a finding is JSON")).collect();
    let steps: Vec<u64> = found.iter().map(|(_, step, _)| *step).collect();
    let wanted: Vec<u64> =
        expected.iter().map(|e| e["step"].as_u64().expect("a finding has a step")).collect();
    assert_eq!(steps, wanted, "{place}: the steps with a finding; found {found:#?}");
    for ((session, step, finding), expected) in found.iter().zip(&expected) {
        let mut shown = serde_json::to_value(finding).expect("a finding is JSON");
        shown["step"] = (*step).into();
        shown["session"] = session.clone().into();
        for (key, value) in expected.as_object().expect("a finding is an object") {
            assert_eq!(&shown[key], value, "{place}: `{key}` of the finding at step {step}");
        }
    }
}

fn tuning_tells_every_default(detector: &dyn AnyDetector) {
    let tuning = detector.page().split("## Tuning").nth(1).unwrap_or_default();
    let defaults = detector.defaults();
    for (key, value) in defaults.as_object().into_iter().flatten() {
        let value = value.as_f64().map_or_else(|| value.to_string(), |n| n.to_string());
        let line = format!("- `{key}` ({value}):");
        assert!(tuning.contains(&line), "{}: Tuning has no line `{line}`", detector.name());
    }
    let told = tuning.lines().filter(|l| l.starts_with("- `")).count();
    assert_eq!(
        told,
        defaults.as_object().map_or(0, serde_json::Map::len),
        "{}: Tuning lines",
        detector.name()
    );
}

#[test]
fn every_page_is_true() {
    for detector in DETECTORS {
        check(*detector);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the pages are files")]
fn names_are_unique_and_every_page_is_registered() {
    let mut names: Vec<&str> = DETECTORS.iter().map(|d| d.name()).collect();
    names.sort_unstable();
    let mut pages: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/detectors"))
        .expect("the folder of detectors")
        .filter_map(|entry| {
            entry.ok()?.file_name().into_string().ok()?.strip_suffix(".md").map(str::to_owned)
        })
        .collect();
    pages.sort_unstable();
    assert_eq!(names, pages);
}
