//! What `--events` writes, beside the decisions.

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, trusted_config};

fn events(profile: &str, steps: &[Value], config: &str) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    trusted_config(home.path(), "deloop.toml", config);
    let input: String = steps.iter().map(|s| format!("{s}\n")).collect();
    run(deloop(home.path()).args(["stream", "-p", profile, "--events", "e.jsonl"]), input.as_bytes());
    lines(&std::fs::read(home.path().join("e.jsonl")).unwrap())
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|e| e["event"].as_str().unwrap()).collect()
}

/// Once per level and episode, however often a rung is reported.
#[test]
fn each_level_of_an_episode_is_told_once() {
    let call = json!({"type": "call", "tool": "ls", "args": {}, "task": "t1"});
    let other = json!({"type": "call", "tool": "pwd", "args": {}});
    let mut steps = vec![call.clone(); 8];
    steps.push(other);
    steps.extend(vec![call; 3]);
    let events = events("doom-loop", &steps, "");
    assert_eq!(
        names(&events),
        [
            "loop_detected",
            "nudge",
            "loop_detected",
            "nudge",
            "loop_detected",
            "block",
            "loop_detected",
            "nudge"
        ]
    );
    let steps: Vec<_> = events.iter().map(|e| e["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [2, 2, 3, 3, 5, 5, 11, 11]);
    assert_eq!((&events[5]["calls"], &events[5]["task"]), (&json!(["#0"]), &json!("t1")));
}

#[test]
fn a_termination_is_told_with_its_reason() {
    let turn = json!({"type": "turn", "text": "I need more information", "ts": "2026-01-01T00:00:00Z"});
    let told = events("turn-similarity", &vec![turn; 6], "");
    assert_eq!(names(&told), ["loop_detected", "alert", "loop_detected", "session.terminated", "alert"]);
    assert_eq!(told[3]["status"], "TERMINATED");
    assert!(told[3]["reason"].as_str().unwrap().contains("5 consecutive similar turns (>0.85 similarity)"));
}

#[test]
fn costs_and_budgets_are_told() {
    let usage =
        json!({"type": "usage", "model": "m", "input_tokens": 100, "output_tokens": 50, "cost_usd": 0.5});
    let told = events("turn-similarity", &[usage.clone(), usage], "[detectors.over-budget]\nusd = 1.2");
    assert_eq!(names(&told), ["cost.attributed", "cost.attributed", "budget.warning", "alert"]);
    assert_eq!(
        (&told[1]["total_usd"], &told[1]["tokens"], &told[1]["model"]),
        (&json!(1.0), &json!(150), &json!("m"))
    );
    assert!(told[2]["reason"].as_str().unwrap().contains("83 %"));
}

/// Tokens from and for the cache are part of a request and of the total, and a model has a price where the agent
/// names none: a budget in dollars sees it.
#[test]
fn totals_add_up_and_live_prices_count() {
    let usage = json!({"type": "usage", "model": "claude-sonnet-4-5", "input_tokens": 200_000, "output_tokens": 40,
        "cache_read_tokens": 800, "cache_write_tokens": 200});
    let told = events("turn-similarity", &[usage.clone(), usage], "[detectors.over-budget]\nusd = 1.2");
    assert_eq!((&told[0]["tokens"], &told[0]["total_tokens"]), (&json!(201_040), &json!(201_040)));
    assert_eq!(told[1]["total_tokens"], json!(402_080));
    let (one, both) = (told[0]["cost_usd"].as_f64().unwrap(), told[1]["total_usd"].as_f64().unwrap());
    assert!((0.6..0.62).contains(&one) && (both - 2.0 * one).abs() < 1e-9, "{one} {both}");
    assert!(names(&told).contains(&"budget.warning"), "{:?}", names(&told));
}

/// Whoever started a session is named in its events, once a step says so.
#[test]
fn events_name_the_controller() {
    let turn = |text: &str| json!({"type": "turn", "text": text, "controller": "boss"});
    let told = events("turn-hash", &[turn("Again."), json!({"type": "turn", "text": "Again."})], "");
    assert!(!told.is_empty() && told.iter().all(|event| event["controller"] == "boss"), "{told:?}");
}

#[test]
fn a_forced_end_updates_the_task_and_is_noted() {
    let home = tempfile::tempdir().unwrap();
    trusted_config(home.path(), "deloop.toml", "[memory]\nfolder = \"notes\"");
    let call =
        json!({"type": "call", "tool": "Read", "args": {"path": "/a/B.ts"}, "task": "t1"}).to_string() + "\n";
    let output = run(
        deloop(home.path()).args(["stream", "-p", "behavioral", "--events", "e"]),
        call.repeat(10).as_bytes(),
    );
    let answers = lines(&output.stdout);
    let update = &answers[7]["task_update"];
    assert_eq!(update["status"], "completed");
    assert_eq!(update["metadata"]["loopDetails"]["runLength"], 8);
    assert_eq!(update["metadata"]["loopDetails"]["lastAction"], r#"{"path":"b.ts"}"#);
    assert_eq!(update["metadata"]["loopDetails"]["bufferSnapshot"].as_array().unwrap().len(), 5);
    assert_eq!(
        (&update["metadata"]["partial"], &update["metadata"]["loopDetected"]),
        (&json!(true), &json!(true))
    );
    assert!(names(&lines(&std::fs::read(home.path().join("e")).unwrap())).contains(&"task.update"));
    let learnings = std::fs::read_to_string(home.path().join("notes/learnings.md")).unwrap();
    assert!(
        learnings.contains("- Task t1: Read looped 8 times. Final normalized args: {\"path\":\"b.ts\"}."),
        "{learnings}"
    );
    let issues = std::fs::read_to_string(home.path().join("notes/issues.md")).unwrap();
    assert!(issues.contains("force-done fired 3 times"), "{issues}");
}

/// Findings that decide nothing are told once, without an alert, and never take the place of the counter's.
#[test]
fn findings_without_a_ladder_are_told_and_decide_nothing() {
    let words = ["alpha", "beta", "gamma", "delta", "eta", "theta", "iota", "kappa", "mu", "nu", "xi", "pi"];
    let call =
        |tool: &str, word: &str| json!({"type": "call", "tool": tool, "args": {"q": word}, "task": "t1"});
    let steps: Vec<Value> = words.iter().map(|word| call("grep", word)).collect();
    let told = events("behavioral", &steps, "");
    assert_eq!(names(&told), ["loop_detected"]);
    assert_eq!((&told[0]["finding"]["detector"], &told[0]["level"]), (&json!("stalled-task"), &json!(0)));

    let mut steps: Vec<Value> = words[..3].iter().map(|word| call("grep", word)).collect();
    steps.extend(vec![call("read", "same"); 8]);
    let told = events("behavioral", &steps, "");
    let last: Vec<&Value> = told.iter().filter(|e| e["step"] == 10).collect();
    let kinds = ["loop_detected", "session.terminated", "alert", "task.update"];
    assert_eq!(last.iter().map(|e| e["event"].as_str().unwrap()).collect::<Vec<_>>(), kinds);
    assert!(last.iter().all(|e| e["finding"]["detector"] == "similar-call"), "{last:?}");
    let home = tempfile::tempdir().unwrap();
    let input: String = steps.iter().map(|s| format!("{s}\n")).collect();
    let answers = crate::binary::stream(home.path(), &["-p", "behavioral"], input.as_bytes());
    let found = &answers[10]["findings"];
    assert_eq!(
        (&found[0]["detector"], &found[1]["detector"]),
        (&json!("similar-call"), &json!("stalled-task"))
    );
    let summary = answers[10]["task_update"]["metadata"]["summary"].as_str().unwrap();
    assert!(summary.contains("8 similar calls of `read`"), "{summary}");
}
