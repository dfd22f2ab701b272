//! Runs every example of docs/intervention.md: the page is the test.

use std::path::Path;

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said, stream};

/// A fenced block of the page: its language, its text and the line it starts at.
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

/// The answers that do something, or would have done something in another mode.
fn decisions(home: &Path, place: &str, arguments: &str, steps: &str) -> Vec<Value> {
    let mut command = deloop(home);
    command.args(["stream", "--profile", "default"]).args(arguments.split_whitespace());
    let output = run(&mut command, steps.as_bytes());
    assert!(output.status.success(), "{place}: {}", said(&output));
    let answers = lines(&output.stdout);
    assert_eq!(answers.len(), steps.lines().count(), "{place}: every step has its answer");
    answers.into_iter().filter(|a| a["action"] != "continue" || !a["would"].is_null()).collect()
}

/// Whether a value has everything that is expected of it; an object may have more.
fn has(value: &Value, expected: &Value) -> bool {
    match expected {
        Value::Object(fields) => fields.iter().all(|(key, field)| has(&value[key], field)),
        other => value == other,
    }
}

fn compare(place: &str, found: &[Value], expected: &str) {
    let expected: Vec<Value> = lines(expected.as_bytes());
    let steps = |list: &[Value]| list.iter().map(|d| d["step"].clone()).collect::<Vec<_>>();
    assert_eq!(steps(found), steps(&expected), "{place}: the steps with a decision; found {found:#?}");
    for (decision, expected) in found.iter().zip(&expected) {
        assert!(has(decision, expected), "{place}: expected {expected}, found {decision:#}");
    }
}

/// Rule 4, for every message on the page.
fn texts_are_sound(place: &str, found: &[Value]) {
    for message in found.iter().filter_map(|d| d["message"].as_str()) {
        assert!(message.starts_with("[deloop] "), "{place}: {message}");
        assert!(message.len() <= 1000, "{place}: {message}");
    }
}

#[test]
fn every_example_is_true() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/intervention.md");
    let page = std::fs::read_to_string(page).unwrap();
    // One home for the whole page: an example may go on where another ended, with `--checkpoint`.
    let home = tempfile::tempdir().unwrap();
    let blocks = blocks(&page);
    let mut arguments = "";
    let (mut loud, mut quiet) = (0, 0);
    for (i, block) in blocks.iter().enumerate() {
        let place = format!("docs/intervention.md:{}", block.line);
        match block.language {
            "args" => arguments = &block.text,
            "jsonl" => {
                let found = decisions(home.path(), &place, std::mem::take(&mut arguments), &block.text);
                texts_are_sound(&place, &found);
                let expected = blocks.get(i + 1).filter(|b| b.language == "decisions");
                compare(&place, &found, expected.map_or("", |b| &b.text));
                *(if expected.is_some() { &mut loud } else { &mut quiet }) += 1;
            }
            "decisions" => {}
            other => panic!("{place}: a block of {other}"),
        }
    }
    assert!(loud > 10 && quiet > 1, "the page shows when it steps in ({loud}) and when not ({quiet})");
}

/// The finding that is listed first may have reached no rung.
#[test]
fn the_user_is_told_of_the_finding_that_decided() {
    let home = tempfile::tempdir().unwrap();
    let mut steps = String::new();
    for (n, target) in ["a", "b", "c", "d", "e", "a", "a", "f"].into_iter().enumerate() {
        let call = json!({"type": "call", "id": n.to_string(), "tool": "bash", "args": {"command": format!("make {target}")}});
        let result = json!({"type": "result", "id": n.to_string(), "ok": false, "output": "error: linker `cc` not found"});
        steps += &format!("{call}\n{result}\n");
    }
    let decisions = stream(home.path(), &["--mode", "enforce"], steps.as_bytes());
    let second = &decisions[13];
    let detectors: Vec<&Value> =
        second["findings"].as_array().unwrap().iter().map(|f| &f["detector"]).collect();
    assert_eq!(detectors, ["repeated-failure", "repeated-error"]);
    assert_eq!(second["rung"], "second-nudge");
    let said = |at: usize| decisions[at]["user_message"].as_str().unwrap();
    assert!(said(13).starts_with("deloop messaged the agent: 7 calls failed the same way"), "{}", said(13));
    assert!(said(15).starts_with("deloop stopped the run: 8 calls failed the same way"), "{}", said(15));
}
