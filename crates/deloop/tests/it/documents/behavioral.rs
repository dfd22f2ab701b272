//! The behavioral document: its buffer, its log lines, its task update and its notes.

use std::path::Path;

use serde_json::{Value, json};

use super::{list, state_after, text};
use crate::agent_hooks::{Agent, denied};
use crate::binary::{deloop, lines, run, said, stream, trusted_config};
use crate::json_schema::assert_matches;

fn call(tool: &str, file: &str) -> Value {
    json!({"type": "call", "tool": tool, "args": {"path": file}, "task": "t1"})
}

fn hook(home: &Path, input: &Value) -> (Value, String) {
    assert_matches("hook-input", input);
    let output = run(deloop(home).args(["hook", "behavioral"]), input.to_string().as_bytes());
    let answer = lines(&output.stdout).remove(0);
    assert_matches("hook-output", &answer);
    (answer, said(&output))
}

/// What makes calls differ in name only: ids, dates and numbers in file names and addresses.
#[test]
fn ids_and_dates_in_paths_and_addresses_hide_no_loop() {
    let id = |n: u64| format!("0b7e2f1c-3a4d-4e5f-8a9b-{n:012x}");
    let levels = |tool: &str, args: &dyn Fn(u64) -> Value| -> Vec<u64> {
        let call = |n| json!({"type": "call", "tool": tool, "args": args(n), "task": "t1"});
        let steps: Vec<Value> = (1..=8).map(call).collect();
        let home = tempfile::tempdir().unwrap();
        let answers = stream(home.path(), &["-p", "behavioral"], &text(&steps));
        answers.iter().map(|answer| answer["level"].as_u64().unwrap()).collect()
    };
    let stuck = [0, 0, 1, 1, 2, 2, 2, 3];
    assert_eq!(levels("Read", &|n| json!({"path": format!("/tmp/{}.json", id(n))})), stuck);
    assert_eq!(levels("Fetch", &|n| json!({"url": format!("https://x.test/jobs/{}", id(n))})), stuck);
    assert_eq!(
        levels("Fetch", &|n| json!({"url": format!("https://x.test/users/{n}/posts?page={n}")})),
        stuck
    );
    assert_eq!(levels("Read", &|n| json!({"path": format!("report-2026-11-{:02}.csv", n)})), stuck);
    for name in ["page_N.html", "vN", "fileN.ts"] {
        assert_eq!(levels("Read", &|n| json!({"path": name.replace('N', &n.to_string())})), [0; 8], "{name}");
    }
}

/// Returns the buffer of the only task.
fn buffer(state: &Value) -> &[Value] {
    list(&list(state, "tasks").unwrap()[0], "window").unwrap()
}

#[test]
fn the_buffer_holds_the_last_twenty_actions() {
    for actions in [1_u64, 19, 20, 21, 45] {
        let steps: Vec<Value> = (0..actions).map(|n| call("Read", &format!("file-{n}.ts"))).collect();
        let state = state_after("behavioral", &steps);
        let window = buffer(&state);
        assert_eq!(window.len() as u64, actions.min(20));
        assert_eq!(window[0]["stepIndex"], actions.saturating_sub(20), "the oldest go first");
        let newest = window.last().unwrap();
        assert_eq!(newest["normalizedArgs"], format!(r#"{{"path":"file-{}.ts"}}"#, actions - 1));
        let keys: Vec<&String> = newest.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["normalizedArgs", "stepIndex", "timestamp", "toolName"]);
    }
}

#[test]
fn the_buffer_is_empty_before_the_first_action() {
    let state = state_after("behavioral", &[json!({"type": "user", "text": "Fix it"})]);
    assert!(list(&state, "window").is_none_or(Vec::is_empty), "{state}");
    let home = tempfile::tempdir().unwrap();
    let (first, _) = hook(home.path(), &json!({"taskId": "t1", "toolName": "Read", "args": {}}));
    let expected =
        json!({"level": 0, "action": "continue", "message": null, "similar": false, "runLength": 1});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&first[key], value, "{key}");
    }
    assert_eq!(first["score"], Value::Null);
}

/// A run ends with another tool; the evidence stays.
#[test]
fn the_buffer_outlives_a_change_of_tool() {
    let steps: Vec<Value> = ["Read", "Read", "Edit", "Read"].iter().map(|tool| call(tool, "a.ts")).collect();
    let state = state_after("behavioral", &steps);
    let tools: Vec<&str> = buffer(&state).iter().map(|entry| entry["toolName"].as_str().unwrap()).collect();
    assert_eq!(tools, ["Read", "Read", "Edit", "Read"]);
}

#[test]
fn a_stream_writes_no_file() {
    let home = tempfile::tempdir().unwrap();
    let answers = stream(home.path(), &["-p", "behavioral"], &text(&vec![call("Read", "a.ts"); 9]));
    assert_eq!(answers[8]["action"], "stop");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn an_action_without_a_time_gets_the_current_one() {
    let home = tempfile::tempdir().unwrap();
    let mut input = json!({"taskId": "t1", "toolName": "Read", "args": {}});
    let mut times = || -> Vec<i64> {
        let replies: Vec<(Value, String)> = (0..8).map(|_| hook(home.path(), &input)).collect();
        (input["taskId"], input["timestamp"]) = (json!("t2"), json!(5));
        let kept =
            replies[7].0["taskUpdate"]["metadata"]["loopDetails"]["bufferSnapshot"].as_array().unwrap();
        kept.iter().map(|entry| entry["timestamp"].as_i64().unwrap()).collect()
    };
    assert!(times().iter().all(|time| *time > 1_700_000_000_000));
    assert_eq!(times(), [5; 5]);
}

#[test]
fn every_level_is_logged_on_standard_error() {
    let home = tempfile::tempdir().unwrap();
    let input = json!({"taskId": "t1", "toolName": "Read", "args": {"path": "a.ts"}});
    let logged: Vec<String> = (0..9).map(|_| hook(home.path(), &input).1).collect();
    let line = |action: &str, n: u32| format!("[loop-detection] {action}: {n} similar actions. Task t1\n");
    let mut expected = vec![String::new(), String::new()];
    expected.extend((3..=4).map(|n| line("REPLAN", n)));
    expected.extend((5..=7).map(|n| line("EXPLORE", n)));
    expected.extend((8..=9).map(|n| line("FORCE-DONE", n)));
    assert_eq!(logged, expected);
}

#[test]
fn the_task_update_has_every_field() {
    let home = tempfile::tempdir().unwrap();
    let steps: Vec<Value> = (0..8).map(|n| call("Read", &format!("/src/{n}/Main.ts"))).collect();
    let arguments = ["stream", "-p", "behavioral", "--events", "e.jsonl"];
    let output = run(deloop(home.path()).args(arguments), &text(&steps));
    let answers = lines(&output.stdout);
    assert!(answers[..7].iter().all(|answer| answer["action"] != "stop" && answer["task_update"].is_null()));
    let update = &answers[7]["task_update"];
    assert_eq!((&update["taskId"], &update["status"]), (&json!("t1"), &json!("completed")));
    let metadata = &update["metadata"];
    assert_eq!((&metadata["partial"], &metadata["loopDetected"]), (&json!(true), &json!(true)));
    let summary = metadata["summary"].as_str().unwrap();
    let begin = "Task partially completed. Loop detected after 8 similar actions. ";
    assert!(summary.starts_with(begin) && summary.len() > begin.len(), "{summary}");
    let details = &metadata["loopDetails"];
    assert_eq!((&details["runLength"], &details["lastAction"]), (&json!(8), &json!(r#"{"path":"main.ts"}"#)));
    let last: Vec<u64> = details["bufferSnapshot"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["stepIndex"].as_u64().unwrap())
        .collect();
    assert_eq!(last, [3, 4, 5, 6, 7]);
    let events = lines(&std::fs::read(home.path().join("e.jsonl")).unwrap());
    let event = events.iter().find(|event| event["event"] == "task.update").unwrap();
    assert_eq!((&event["task"], &event["task_update"]), (&json!("t1"), update));
}

/// Claude Code is told at 3 and 5; at 8 the call doesn't run and the run ends.
#[test]
fn claude_code_is_ended_at_the_eighth_action() {
    let mut agent = Agent::new("claude-code", "behavioral", "enforce");
    let seen: String = (1..=8)
        .map(|_| {
            let reply = agent.before("make check");
            let told = reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
            match (denied(&reply), reply["continue"] == false) {
                (true, true) => 'S',
                (false, false) if told.ends_with("Stop and produce a revised plan before continuing.") => 'r',
                (false, false) if told.ends_with("Try a completely different tool or method.") => 'e',
                (false, false) if told.is_empty() => '.',
                _ => '?',
            }
        })
        .collect();
    assert_eq!(seen, "..rreeeS");
}

/// Force-done fires at the eighth similar action and at each one after it.
#[test]
fn the_third_forced_end_of_a_session_is_an_issue() {
    for (actions, forced) in [(8, 1), (9, 2), (10, 3)] {
        let home = tempfile::tempdir().unwrap();
        trusted_config(home.path(), "deloop.toml", "[memory]\nfolder = \".claude/context/memory\"");
        stream(home.path(), &["-p", "behavioral"], &text(&vec![call("Read", "a.ts"); actions]));
        let folder = home.path().join(".claude/context/memory");
        let learnings = std::fs::read_to_string(folder.join("learnings.md")).unwrap();
        assert_eq!(learnings.matches("## Behavioral Loop Detection — 2").count(), forced);
        let line = "- Task t1: Read looped 8 times. Final normalized args: {\"path\":\"a.ts\"}.";
        let written: Vec<&str> = learnings.lines().collect();
        assert_eq!(written[1], line);
        assert!(written[2].starts_with("- Root cause hypothesis: "), "{learnings}");
        assert!(written[3].starts_with("- Recommendation: "), "{learnings}");
        assert_eq!(folder.join("issues.md").exists(), forced > 2, "{actions}");
    }
}

/// The hook has a file per task and counts for the session all the same.
#[test]
fn forced_ends_of_all_tasks_of_a_session_count() {
    let home = tempfile::tempdir().unwrap();
    let force = |session: &str, task: &str| {
        let input = json!({"sessionId": session, "taskId": task, "toolName": "Read", "args": {}}).to_string();
        let hook = || {
            let mut command = deloop(home.path());
            run(command.args(["hook", "behavioral", "--memory", "notes"]), input.as_bytes())
        };
        let outputs: Vec<_> = (0..8).map(|_| lines(&hook().stdout).remove(0)).collect();
        assert_eq!(outputs[7]["taskUpdate"]["taskId"], task);
        home.path().join("notes/issues.md").exists()
    };
    let issues = [("s1", "a"), ("s1", "b"), ("s2", "a"), ("s2", "b"), ("s1", "c")].map(|(s, t)| force(s, t));
    assert_eq!(issues, [false, false, false, false, true]);
    let text = std::fs::read_to_string(home.path().join("notes/issues.md")).unwrap();
    assert!(text.contains("- Session s1: force-done fired 3 times; last on task c"), "{text}");
}

/// Without a forced end there is nothing to learn.
/// In an agent's own hook, too, a forced end is noted where the user wants it.
#[test]
fn an_agents_hook_notes_a_forced_end() {
    let mut agent = Agent::new("claude-code", "behavioral", "enforce");
    let notes = agent.home.path().join("notes");
    super::user_config(agent.home.path(), "deloop.toml", &format!("[memory]\nfolder = {notes:?}\n"));
    for _ in 0..8 {
        agent.before("make check");
        assert!(!notes.join("issues.md").exists());
    }
    let learnings = std::fs::read_to_string(notes.join("learnings.md")).unwrap();
    assert!(learnings.contains("- Task s1: Bash looped 8 times."), "{learnings}");
}

#[test]
fn nothing_is_noted_below_level_three() {
    let home = tempfile::tempdir().unwrap();
    trusted_config(home.path(), "deloop.toml", "[memory]\nfolder = \"notes\"");
    let answers = stream(home.path(), &["-p", "behavioral"], &text(&vec![call("Read", "a.ts"); 7]));
    assert_eq!(answers[6]["level"], 2);
    assert!(!home.path().join("notes/learnings.md").exists());
}

/// Two tasks of one session don't add up, and agents that work on one task do.
#[test]
fn a_task_has_a_buffer_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let levels = |steps: &[Value]| -> Vec<u64> {
        let answers = stream(home.path(), &["-p", "behavioral"], &text(steps));
        answers.iter().map(|answer| answer["level"].as_u64().unwrap()).collect()
    };
    let of = |task: &str, agent: &str| json!({"type": "call", "tool": "Read", "args": {"path": "a.ts"}, "task": task, "agent": agent});
    let two: Vec<Value> = (0..4).flat_map(|_| [of("t1", "a"), of("t2", "a")]).collect();
    assert_eq!(levels(&two), [0, 0, 0, 0, 1, 1, 1, 1]);
    let shared: Vec<Value> = (0..8).map(|n| of("t1", if n % 2 == 0 { "a" } else { "b" })).collect();
    assert_eq!(levels(&shared), [0, 0, 1, 1, 2, 2, 2, 3]);
    let mut again = vec![of("t1", "a"); 9];
    again
        .push(json!({"type": "call", "tool": "TaskUpdate", "args": {"taskId": "t1", "status": "completed"}}));
    again.extend(vec![of("t1", "a"); 3]);
    assert_eq!(
        levels(&again)[7..],
        [3, 3, 0, 0, 0, 1],
        "completed, it starts afresh; force-done alone ends nothing"
    );
    again[9] = json!({"type": "end"});
    assert_eq!(levels(&again)[7..], [3, 3, 0, 0, 0, 1], "so it does with the session");
}

/// Indices count actions, whatever else is in the session, and each entry has a time.
#[test]
fn the_snapshot_counts_actions_and_has_times() {
    let home = tempfile::tempdir().unwrap();
    let steps: Vec<Value> = (0..8)
        .flat_map(|n| {
            let mut act = call("Read", "a.ts");
            act["id"] = json!(format!("c{n}"));
            [act, json!({"type": "result", "id": format!("c{n}"), "ok": true, "output": "x", "task": "t1"})]
        })
        .collect();
    let answers = stream(home.path(), &["-p", "behavioral"], &text(&steps));
    let update = &answers[14]["task_update"];
    let entries = update["metadata"]["loopDetails"]["bufferSnapshot"].as_array().unwrap();
    let indices: Vec<&Value> = entries.iter().map(|entry| &entry["stepIndex"]).collect();
    assert_eq!(indices, [3, 4, 5, 6, 7]);
    for entry in entries {
        assert!(entry["timestamp"].as_i64().is_some_and(|time| time > 1_700_000_000_000), "{entry}");
    }
}

fn task_files(home: &Path) -> usize {
    let folder = home.join(".local/state/deloop/behavioral");
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// A task ends when it is completed, when nothing happens in it for an hour, and with its session.
#[cfg(unix)]
#[test]
fn a_task_that_is_over_starts_afresh_and_its_files_go() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let act = |task: &str, minute: i64| {
        let time = 1_700_000_000_000 + minute * 60_000;
        let input = json!({"taskId": task, "toolName": "Read", "args": {"path": "a.ts"}, "timestamp": time, "sessionId": "s"});
        hook(home, &input).0["runLength"].as_u64().unwrap()
    };
    let runs: Vec<u64> = (1..=9).map(|n| act("t1", n)).collect();
    assert_eq!(runs, [1, 2, 3, 4, 5, 6, 7, 8, 9], "force-done ends nothing by itself");
    assert_eq!((act("t1", 9 + 59), act("t1", 68 + 60)), (10, 1), "idle for an hour");

    let done =
        json!({"taskId": "t1", "toolName": "TaskUpdate", "args": {"status": "completed"}, "sessionId": "s"});
    assert_eq!((act("t1", 130), task_files(home)), (2, 1));
    hook(home, &done);
    assert_eq!((task_files(home), act("t1", 131)), (0, 1), "completed");
    let other = json!({"taskId": "lead", "toolName": "TaskUpdate", "args": {"taskId": "t1", "status": "completed"}, "sessionId": "s"});
    hook(home, &other);
    assert_eq!((act("t1", 132), task_files(home)), (1, 2), "completed by another one");

    let folder = home.join(".local/state/deloop/behavioral");
    for file in std::fs::read_dir(&folder).unwrap() {
        std::fs::File::options()
            .write(true)
            .open(file.unwrap().path())
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH)
            .unwrap();
    }
    let elsewhere = json!({"taskId": "t9", "toolName": "Read", "args": {}});
    hook(home, &elsewhere);
    assert_eq!(task_files(home), 1, "files of idle tasks go, whichever task is worked on");

    for task in ["t1", "t2", "t3"] {
        act(task, 200);
    }
    assert_eq!(task_files(home), 4);
    let end = run(deloop(home).args(["hook", "behavioral", "session-end"]), br#"{"sessionId":"s"}"#);
    assert_eq!((end.status.code(), task_files(home)), (Some(0), 1), "{}", said(&end));
    assert_eq!(act("t2", 201), 1);
    let input = elsewhere.to_string();
    let mut command = deloop(home);
    command.args(["hook", "behavioral", "--task-idle", "0"]);
    assert_eq!(lines(&run(&mut command, input.as_bytes()).stdout)[0]["runLength"], 1, "configurable");
}
