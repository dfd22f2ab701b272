//! `deloop hook behavioral`: one process per action, tasks remembered in between.

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said};

#[test]
fn escalates_over_many_processes() {
    let home = tempfile::tempdir().unwrap();
    let input = json!({"taskId": "t1", "toolName": "Read", "args": {"path": "a.ts"}}).to_string();
    let mut outputs: Vec<Value> = Vec::new();
    for _ in 0..8 {
        let mut command = deloop(home.path());
        let output = run(command.args(["hook", "behavioral", "--memory", "notes"]), input.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        outputs.extend(lines(&output.stdout));
    }
    let told: Vec<_> =
        outputs.iter().map(|o| (o["level"].as_u64().unwrap(), o["action"].as_str().unwrap())).collect();
    let expected = [
        (0, "continue"),
        (0, "continue"),
        (1, "replan"),
        (1, "replan"),
        (2, "explore"),
        (2, "explore"),
        (2, "explore"),
        (3, "force-done"),
    ];
    assert_eq!(told, expected);
    let runs: Vec<_> = outputs.iter().map(|o| (o["runLength"].as_u64(), o["similar"] == true)).collect();
    assert_eq!(runs[..3], [(Some(1), false), (Some(2), true), (Some(3), true)]);
    assert_eq!((&outputs[0]["score"], &outputs[1]["score"]), (&Value::Null, &json!(1.0)));
    assert_eq!(outputs[7]["taskUpdate"]["metadata"]["loopDetected"], true);
    let events = lines(&std::fs::read(home.path().join("notes/tool-events.jsonl")).unwrap());
    assert_eq!(events.len(), 6);
    assert_eq!(
        (&events[5]["event"], &events[5]["taskId"], &events[5]["runLength"]),
        (&json!("loop-detection"), &json!("t1"), &json!(8))
    );
    assert!(home.path().join("notes/learnings.md").exists());
}

#[test]
fn tasks_are_isolated_and_required() {
    let home = tempfile::tempdir().unwrap();
    for n in 0..6 {
        let input = json!({"taskId": format!("t{}", n % 3), "toolName": "Read", "args": {}}).to_string();
        let output = run(deloop(home.path()).args(["hook", "behavioral"]), input.as_bytes());
        assert_eq!(lines(&output.stdout)[0]["level"], 0);
    }
    for bad in [r#"{"toolName":"Read"}"#, r#"{"taskId":"","toolName":"Read"}"#, r#"{"taskId":"t"}"#, "x", ""]
    {
        let output = run(deloop(home.path()).args(["hook", "behavioral"]), bad.as_bytes());
        assert_eq!(output.status.code(), Some(2), "{bad}");
        assert!(output.stdout.is_empty() && !said(&output).is_empty(), "{bad}");
    }
}

/// The hooks of parallel calls wait for each other: no action is lost.
#[test]
fn parallel_hooks_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let input = json!({"taskId": "t", "toolName": "Read", "args": {}}).to_string();
    let most = std::thread::scope(|scope| {
        let start = || {
            scope.spawn(|| {
                let output = run(deloop(home.path()).args(["hook", "behavioral"]), input.as_bytes());
                lines(&output.stdout)[0]["runLength"].as_u64().unwrap()
            })
        };
        let threads: Vec<_> = std::iter::repeat_with(start).take(12).collect();
        threads.into_iter().map(|t| t.join().unwrap()).max()
    });
    assert_eq!(most, Some(12));
}
