//! The doom-loop document: its prompts for commands and talk, its thresholds, and what a rejection leaves alone.

use serde_json::{Value, json};

use super::{text, user_config};
use crate::binary::stream;

fn answers(steps: &[Value]) -> Vec<Value> {
    stream(tempfile::tempdir().unwrap().path(), &["-p", "doom-loop"], &text(steps))
}

fn failing(commands: &[&str]) -> Vec<Value> {
    let pair = |(n, command): (usize, &&str)| {
        let call =
            json!({"type": "call", "id": format!("c{n}"), "tool": "bash", "args": {"command": command}});
        [call, json!({"type": "result", "id": format!("c{n}"), "ok": false, "output": "failed"})]
    };
    commands.iter().enumerate().flat_map(pair).collect()
}

/// Only a cascade of file operations is sent to the tools for files.
#[test]
fn failing_file_operations_are_sent_to_proper_tools() {
    let tools = ["write_file", "edit_file", "read_file"];
    for (commands, files) in [
        (["cat a.ts", "echo x > b.ts", "sed -i s/a/b/ c.ts"], true),
        (["make", "cargo build", "npm run lint"], false),
    ] {
        let last = answers(&failing(&commands)).pop().unwrap();
        assert_eq!((&last["action"], &last["level"]), (&json!("nudge"), &json!(1)));
        let message = last["message"].as_str().unwrap();
        assert!(message.starts_with("[System] 3 shell commands in a row have failed"), "{message}");
        for tool in tools {
            assert_eq!(message.contains(tool), files, "{commands:?}: {message}");
        }
    }
}

#[test]
fn talk_without_tools_is_sent_to_work() {
    let turn = |text: &str| json!({"type": "turn", "text": text});
    let last =
        answers(&[turn("So far I have read the code."), turn("In summary, much is left.")]).pop().unwrap();
    let message = last["message"].as_str().unwrap();
    for part in ["Stop summarizing", "Pick ONE task", "NOW with a tool call"] {
        assert!(message.contains(part), "{message}");
    }
}

/// From the sixth on, identical calls are rejected. Nothing else is, and the run isn't ended.
#[test]
fn a_rejection_stops_the_call_and_not_the_run() {
    let call = |tool: &str| json!({"type": "call", "tool": tool, "args": {"path": "a.ts"}});
    let mut steps = vec![call("read_file"); 9];
    steps.push(call("edit_file"));
    let answers = answers(&steps);
    let actions: Vec<&str> = answers.iter().map(|answer| answer["action"].as_str().unwrap()).collect();
    let block = ["block"; 4];
    assert_eq!(actions[..5], ["continue", "continue", "nudge", "nudge", "nudge"]);
    assert_eq!((&actions[5..9], actions[9]), (&block[..], "continue"));
    assert!(answers.iter().all(|answer| answer["status"].is_null()));
}

/// Both thresholds are defaults that a configuration can set, and outlive a reset.
#[test]
fn thresholds_can_be_set() {
    let home = tempfile::tempdir().unwrap();
    let config = "[detectors.repeated-call]\nat = 4\n[detectors.repeated-target]\nat = 5\n";
    let call = |n: u32| json!({"type": "call", "tool": "read_file", "args": {"path": "a.ts", "encoding": n}});
    let first = |same: bool| {
        let steps: Vec<Value> = (0..8).map(|n| call(if same { 0 } else { n })).collect();
        let answers = stream(home.path(), &["-p", "doom-loop"], &text(&steps));
        answers.iter().position(|answer| answer["action"] != "continue").unwrap() + 1
    };
    assert_eq!((first(true), first(false)), (3, 4));
    user_config(home.path(), "deloop.toml", config);
    assert_eq!((first(true), first(false)), (4, 5));
    // A reset deletes the count and keeps what was set.
    let mut steps = vec![call(0); 4];
    steps.push(json!({"type": "end"}));
    steps.extend(vec![call(0); 4]);
    let answers = stream(home.path(), &["-p", "doom-loop"], &text(&steps));
    let nudged: Vec<usize> = (0..9).filter(|n| answers[*n]["action"] == "nudge").collect();
    assert_eq!(nudged, [3, 8]);
}
