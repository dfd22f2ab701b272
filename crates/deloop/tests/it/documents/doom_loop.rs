//! The doom-loop document: its texts character by character, its prompts for commands and talk, its thresholds, and what
//! a rejection leaves alone.

use serde_json::{Value, json};

use super::{text, user_config};
use crate::binary::stream;

/// What the document prints for {tool} and {N}, copied from it.
const INITIAL: &str = "\
[System] You've called {tool} with the same arguments 3 times.
This indicates a stuck state. Either:
1. Try a DIFFERENT approach or tool
2. If blocked, explain what's preventing progress
3. If the task is complete, say so explicitly";
const WARNING: &str = "\
[System] WARNING: You've called {tool} {N} times with identical arguments.
This is a stuck state.
1. Try a DIFFERENT approach or tool
2. If blocked, explain the blocker";
const CRITICAL: &str = "\
[System] CRITICAL: You've called {tool} with the same arguments {N} times.
You are in a doom loop. You MUST:
1. STOP calling {tool} immediately
2. Explain what you're stuck on
3. Try a completely different approach
Further identical calls will be rejected.";
const TESTS: &str = "\
[System] You've had {N} consecutive test failures. Step back and rethink:
1. Re-read the error messages carefully
2. Consider whether your approach is fundamentally wrong
3. Try a DIFFERENT fix strategy instead of iterating on the same one";
const GLOBAL: &str = "\
[System] GLOBAL DOOM LOOP: {totalCalls} calls to {tool} across
{workerCount} workers. The entire swarm is stuck on this approach.
1. Try a fundamentally different strategy
2. Do NOT retry the same tool/parameters
3. Consider whether the task goal itself needs re-evaluation";

fn fill(text: &str, values: &[(&str, String)]) -> Value {
    values.iter().fold(text.to_owned(), |text, (key, value)| text.replace(key, value)).into()
}

fn answers(steps: &[Value]) -> Vec<Value> {
    stream(tempfile::tempdir().unwrap().path(), &["-p", "doom-loop"], &text(steps))
}

fn shell(command: &str) -> Value {
    json!({"type": "call", "tool": "bash", "args": {"command": command}})
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

#[test]
fn the_texts_of_repetitions_are_the_documents() {
    let steps =
        vec![json!({"type": "call", "id": null, "tool": "search_code", "args": {"query": "main"}}); 12];
    for (n, answer) in (1..).zip(answers(&steps)) {
        let values = [("{tool}", "search_code".to_owned()), ("{N}", n.to_string())];
        let (action, text) = match n {
            1 | 2 => ("continue", Value::Null),
            3 => ("nudge", fill(INITIAL, &values)),
            4 | 5 => ("nudge", fill(WARNING, &values)),
            _ => ("block", fill(CRITICAL, &values)),
        };
        assert_eq!((&answer["action"], &answer["message"]), (&json!(action), &text), "call {n}");
        // "Further identical calls will be rejected", and so they are.
        assert_eq!(answer["calls"], if n < 6 { json!([]) } else { json!(["#0"]) });
    }
}

#[test]
fn the_text_of_test_failures_is_the_documents() {
    let run = |n: u32| {
        let call = json!({"type": "call", "id": n.to_string(), "tool": "bash", "args": {"command": "cargo test", "try": n}});
        let edit = json!({"type": "call", "tool": "edit_file", "args": {"path": "a.rs", "content": n}});
        [edit, call, json!({"type": "result", "id": n.to_string(), "ok": false, "output": "1 failed"})]
    };
    let steps: Vec<Value> = (1..=5).flat_map(run).collect();
    for (n, answer) in (1..).zip(answers(&steps).iter().skip(2).step_by(3)) {
        let text = if n < 3 { Value::Null } else { fill(TESTS, &[("{N}", n.to_string())]) };
        assert_eq!(answer["message"], text, "failure {n}");
    }
}

#[test]
fn the_text_of_the_global_loop_is_the_documents_and_reaches_each_worker() {
    let call = |n: usize| json!({"type": "call", "session": format!("w{}", n % 4), "swarm": "s", "tool": "fetch", "args": {"url": "https://x.test"}});
    let other = |n: usize| json!({"type": "call", "session": format!("w{}", n % 4), "tool": "note", "args": {"topic": n}});
    let steps: Vec<Value> = (0..14).flat_map(|n| [call(n), other(n)]).collect();
    let mut told = Vec::new();
    for (n, answer) in (1..).zip(answers(&steps).iter().step_by(2)) {
        let values = [
            ("{totalCalls}", n.to_string()),
            ("{tool}", "fetch".to_owned()),
            ("{workerCount}", "4".to_owned()),
        ];
        let text = if n < 10 { Value::Null } else { fill(GLOBAL, &values) };
        assert_eq!(answer["message"], text, "call {n}");
        told.extend(answer["message"].as_str().map(|_| answer["session"].clone()));
    }
    told.sort_by_key(ToString::to_string);
    told.dedup();
    assert_eq!(told, ["w0", "w1", "w2", "w3"]);
}

#[test]
fn reads_of_one_file_are_one_fingerprint_unless_the_command_is_complex() {
    let counts = |commands: [&str; 4]| {
        let last = answers(&commands.map(shell)).pop().unwrap();
        (last["level"].clone(), last["findings"][0]["detector"].clone())
    };
    let found = (json!(2), json!("repeated-target"));
    assert_eq!(counts(["cat foo.ts", "head foo.ts", "tail foo.ts", "head -n 5 foo.ts"]), found);
    for complex in ["cat foo.ts | wc", "cat foo.ts > x", "cat foo.ts; ls"] {
        assert_eq!(counts(["cat foo.ts", "head foo.ts", "tail foo.ts", complex]), (json!(0), Value::Null));
    }
}

/// Workers that repeat in step are told both: the global text, and behind it their own.
#[test]
fn workers_in_step_are_told_of_the_global_loop_first() {
    for workers in [2, 3] {
        let call = |n: usize| json!({"type": "call", "session": format!("w{}", n % workers), "swarm": "s", "tool": "fetch", "args": {"url": "https://x.test"}});
        let steps: Vec<Value> = (0..30).map(call).collect();
        for (n, answer) in (1..).zip(answers(&steps)).skip(9) {
            let own = (n - 1) / workers + 1;
            let global = fill(
                GLOBAL,
                &[
                    ("{totalCalls}", n.to_string()),
                    ("{tool}", "fetch".to_owned()),
                    ("{workerCount}", workers.to_string()),
                ],
            );
            let begin = format!("{}\n\n[System] ", global.as_str().unwrap());
            assert!(
                answer["message"].as_str().unwrap().starts_with(&begin),
                "{workers} workers, call {n}: {answer}"
            );
            assert_eq!(answer["action"], if own < 6 { "nudge" } else { "block" }, "the stronger action");
        }
    }
}

/// The interface has no null but `lastTool`: before the first call and after a reset the state has its defaults.
#[test]
fn the_loop_detection_state_has_its_defaults() {
    let defaults = json!({"doomLoopDetected": false, "lastTool": null, "consecutiveCount": 0, "threshold": 3,
        "fuzzyThreshold": 4, "lastWarningTime": 0});
    let ask = json!({"type": "state"});
    let mut steps = vec![ask.clone(), json!({"type": "user", "text": "Fix it"}), ask.clone()];
    steps.extend(vec![shell("make"); 3]);
    steps.extend([ask.clone(), json!({"type": "end"}), ask]);
    let answers = answers(&steps);
    for n in [0, 2, 8] {
        assert_eq!(answers[n]["loop_detection_state"], defaults, "{n}");
    }
    let state = &answers[6]["loop_detection_state"];
    assert_eq!((&state["doomLoopDetected"], &state["consecutiveCount"]), (&json!(true), &json!(3)));
    let warned = state["lastWarningTime"].as_i64().unwrap();
    assert!(warned > 1_700_000_000_000, "without `ts` it is the time of the program: {state}");
}

/// In mode nudge nothing is rejected, stopped or terminated, and no message says so. All else is the document's.
#[test]
fn in_mode_nudge_no_message_announces_what_is_not_done() {
    let home = tempfile::tempdir().unwrap();
    let same = vec![shell("make"); 8];
    let turns = vec![json!({"type": "turn", "text": "check price and decide trade"}); 8];
    for (profile, steps, sentences) in [
        ("doom-loop", &same, &["\nFurther identical calls will be rejected."][..]),
        ("signature", &same, &[" The session ends if it occurs once more.", "\nSession stopped."][..]),
        ("turn-similarity", &turns, &[" Session will be terminated."][..]),
    ] {
        let in_mode = |mode: &str| stream(home.path(), &["-p", profile, "--mode", mode], &text(steps));
        let (nudged, enforced) = (in_mode("nudge"), in_mode("enforce"));
        for sentence in sentences {
            let said = |answers: &[Value]| {
                let mut messages = answers.iter().filter_map(|answer| answer["message"].as_str());
                messages.any(|message| message.contains(sentence))
            };
            assert!(said(&enforced) && !said(&nudged), "{profile}: {sentence}");
        }
        for (nudge, enforce) in nudged.iter().zip(&enforced).filter(|(nudge, _)| nudge["action"] == "nudge") {
            let (less, full) = (nudge["message"].as_str().unwrap(), enforce["message"].as_str());
            let Some(full) =
                full.filter(|_| nudge["findings"][0]["count"] == enforce["findings"][0]["count"])
            else {
                continue;
            };
            let expected =
                sentences.iter().fold(full.to_owned(), |text, sentence| text.replace(sentence, ""));
            assert_eq!(less, expected, "{profile}");
        }
        let closing = sentences[sentences.len() - 1];
        let would =
            |answer: &Value| answer["would"]["message"].as_str().is_some_and(|full| full.contains(closing));
        assert!(nudged.iter().any(would), "what enforce would have said is recorded: {profile}");
    }
}
