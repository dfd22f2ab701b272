//! Who a message is from, and whose a subagent's calls are: as files and hooks show it, and what follows from it.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent_hooks::{Agent, denied, until_stopped};
use crate::binary::{deloop, lines, run, said};
use crate::scan::scan;

const NOTICE: &str =
    "<task-notification>\n<task-id>b1</task-id>\n<event>job 3 done</event>\n</task-notification>";

/// A record of Claude Code's transcript of the session `s1`.
fn record(n: u32, more: &Value) -> Value {
    let mut record = json!({
        "parentUuid": null, "isSidechain": false, "sessionId": "s1", "cwd": "/home/dev/shop", "version": "2.1.81",
        "uuid": format!("00000000-0000-4000-8000-{n:012}"),
        "timestamp": format!("2026-03-01T10:{:02}:{:02}.000Z", n / 60, n % 60),
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

#[expect(clippy::needless_pass_by_value, reason = "a case reads better with its JSON in place")]
fn user(n: u32, content: Value) -> Value {
    record(n, &json!({"type": "user", "message": {"role": "user", "content": content}}))
}

fn call(n: u32, tool: &str, input: &Value) -> Value {
    let usage = json!({"input_tokens": 100 + n, "output_tokens": 5});
    let block = json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": tool, "input": input});
    let message = json!({"id": format!("msg_{n}"), "role": "assistant", "model": "claude-haiku-4-5",
        "content": [block], "usage": usage});
    record(n, &json!({"type": "assistant", "message": message, "requestId": format!("req_{n}")}))
}

fn result(n: u32, of: u32, output: &str) -> Value {
    let id = format!("toolu_{of}");
    user(n, json!([{"type": "tool_result", "tool_use_id": id, "is_error": true, "content": output}]))
}

/// What the subagent `a1` does: the same failing call, 6 times.
fn of_subagent() -> Vec<Value> {
    let mut all = vec![user(10, json!("Run the tests."))];
    for n in 0..6 {
        all.push(call(11 + 2 * n, "Bash", &json!({"command": "cargo test"})));
        all.push(result(12 + 2 * n, 11 + 2 * n, "Exit code 101\nerror: cannot find value `total`"));
    }
    all
}

/// A session whose file repeats the subagent's messages, as versions up to 2.1.84 wrote it.
fn session() -> Vec<Value> {
    let mut all = vec![user(1, json!("Fix it.")), call(2, "Task", &json!({"prompt": "Run the tests."}))];
    for (n, message) in (100..).zip(of_subagent()) {
        let data = json!({"message": message, "type": "agent_progress", "prompt": "", "agentId": "a1"});
        all.push(record(n, &json!({"type": "progress", "data": data, "parentToolUseID": "toolu_2"})));
    }
    all.push(record(
        120,
        &json!({"type": "progress", "data": {"type": "hook_progress", "hookEvent": "Stop"}}),
    ));
    all.push(result(121, 2, "The tests fail."));
    all
}

fn write(path: &Path, records: &[Value]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_subagent_without_a_file_is_read_from_its_sessions() {
    let home = tempfile::tempdir().unwrap();
    write(&home.path().join("p/s1.jsonl"), &session());
    let report = scan(home.path(), &["p"]);
    assert_eq!((&report["sessions"][0]["calls"], &report["totals"]["turns"]), (&json!(7), &json!(7)));
    assert_eq!((&report["loops"][0]["agent"], &report["loops"][0]["count"]), (&json!("a1"), &json!(6)));
    let output = run(deloop(home.path()).args(["steps", "p/s1.jsonl"]), b"");
    let steps = lines(&output.stdout);
    let calls: Vec<_> = steps.iter().filter(|step| step["type"] == "call").collect();
    assert_eq!(
        (&calls[0]["tool"], &calls[0]["agent"]),
        (&json!("Task"), &Value::Null),
        "it started the subagent"
    );
    assert!(calls[1..].iter().all(|call| call["agent"] == "a1"), "{calls:?}");
}

#[test]
fn a_subagent_with_a_file_is_read_once() {
    for own in ["p/s1/subagents/agent-a1.jsonl", "p/agent-a1.jsonl"] {
        let home = tempfile::tempdir().unwrap();
        write(&home.path().join("p/s1.jsonl"), &session());
        let mut file = of_subagent();
        for record in &mut file {
            record["isSidechain"] = true.into();
            record["agentId"] = "a1".into();
        }
        write(&home.path().join(own), &file);
        let report = scan(home.path(), &["p"]);
        let totals = &report["totals"];
        assert_eq!((&totals["sessions"], &totals["turns"]), (&json!(1), &json!(7)), "{own}");
        let loops = report["loops"].as_array().unwrap();
        assert_eq!((loops.len(), &loops[0]["agent"]), (1, &json!("a1")), "{own}");
        assert!(loops[0]["file"].as_str().unwrap().ends_with("agent-a1.jsonl"), "{own}");
    }
    // Older versions have the subagent's records in the session's file, with the same uuids.
    let home = tempfile::tempdir().unwrap();
    let mut both = session();
    both.extend(of_subagent().into_iter().map(|mut record| {
        record["isSidechain"] = true.into();
        record["agentId"] = "a1".into();
        record
    }));
    write(&home.path().join("p/s1.jsonl"), &both);
    assert_eq!(scan(home.path(), &["p"])["totals"]["turns"], 7);
}

#[test]
fn notices_and_schedules_are_no_requests_of_a_person() {
    let home = tempfile::tempdir().unwrap();
    let more = |n, text: &str, more: Value| {
        let mut record = user(n, json!(text));
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    };
    let records = [
        user(1, json!("Watch the jobs.")),
        more(2, NOTICE, json!({"origin": {"kind": "task-notification"}, "promptSource": "system"})),
        more(3, "Check CI.", json!({"isMeta": true, "promptSource": "system", "scheduledTaskId": "1f"})),
        user(4, json!(format!("{NOTICE}\nWhat is this?"))),
    ];
    write(&home.path().join("s1.jsonl"), &records);
    let output = run(deloop(home.path()).args(["steps", "s1.jsonl"]), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let origins: Vec<Value> = lines(&output.stdout).iter().map(|step| step["origin"].clone()).collect();
    assert_eq!(origins, ["human", "notice", "schedule", "harness"]);
}

#[test]
fn neither_news_nor_a_timer_lifts_a_stop() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    let wake_up = json!({"tool_name": "ScheduleWakeup", "tool_use_id": "w1",
        "tool_input": {"delaySeconds": 90, "prompt": "Check CI."}});
    agent.event("PreToolUse", wake_up);
    assert!(until_stopped(&mut agent, &json!({})).is_some());
    for prompt in [NOTICE, "Check CI."] {
        agent.event("UserPromptSubmit", json!({"prompt": prompt}));
        let call = agent.before("pwd");
        assert_eq!((&call["continue"], denied(&call)), (&json!(false), true), "{prompt}");
    }
    assert!(agent.event("UserPromptSubmit", json!({"prompt": "Go on, differently."})).is_null());
    assert!(agent.before("date").is_null());
}
