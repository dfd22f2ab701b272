//! `deloop purge`, on a state folder that has everything in it.

use std::path::Path;

use serde_json::json;

use crate::agent_hooks::Agent;
use crate::binary::{deloop, run, said};

/// Everything under a folder, by its path inside it.
fn files(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            files(root, &entry, found);
        } else {
            found.push(entry.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
        }
    }
    found.sort();
}

fn purge(agent: &Agent, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = run(deloop(agent.home.path()).arg("purge").args(arguments), b"y\n");
    (output.status.code(), String::from_utf8(output.stdout.clone()).unwrap(), said(&output))
}

/// Gets stuck in the session `s1` and labels a decision as wrong; the decision.
fn stuck_and_labelled(agent: &mut Agent) -> String {
    for _ in 0..5 {
        agent.before("make check");
        agent.after("PostToolUse", "make check", json!({"tool_response": {"stderr": "no rule"}}));
    }
    let id: String = agent.query("SELECT id FROM decisions");
    let output = run(deloop(agent.home.path()).args(["wrong", &id]), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    id
}

#[test]
fn everything_is_deleted_only_after_confirmation() {
    let mut agent = Agent::new("claude-code", "doom-loop", "nudge");
    let id = stuck_and_labelled(&mut agent);
    let state = agent.state();
    std::fs::create_dir_all(state.join("behavioral")).unwrap();
    for name in [
        "deloop.log",
        "deloop.log.1",
        "deloop.db.corrupt-1",
        "handoff-r1.md",
        "behavioral/1.json",
        "tool-events.jsonl",
    ] {
        std::fs::write(state.join(name), "session data").unwrap();
    }
    std::fs::write(state.join("trusted.json"), "kept").unwrap();
    let (code, listed, why) = purge(&agent, &[]);
    assert_eq!(code, Some(2), "{listed}");
    assert!(why.contains("nothing was deleted") && why.contains("--yes"), "{why}");
    for line in
        ["1 session\n", "decisions\n", "1 labelled session\n", "1 damaged database\n", "2 log files\n"]
    {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    assert!(state.join(format!("sessions/{id}.jsonl")).exists());

    let (code, _, why) = purge(&agent, &["--yes"]);
    assert_eq!((code, why.as_str()), (Some(0), ""));
    let mut left = Vec::new();
    files(&state, &state, &mut left);
    left.retain(|name| !name.starts_with("deloop.db"));
    assert_eq!(left, ["trusted.json"]);
    assert!(!state.join("deloop.db.corrupt-1").exists());
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM sessions"), 0);
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM decisions"), 0);
    assert!(purge(&agent, &[]).1.contains("There is no session data"));
}

#[test]
fn a_session_goes_with_its_labels() {
    let mut agent = Agent::new("claude-code", "doom-loop", "nudge");
    let id = stuck_and_labelled(&mut agent);
    let labels = agent.state().join("labels.jsonl");
    let other = "{\"path\":\"sessions/dother.jsonl\",\"label\":\"legit\",\"decision\":\"dother\"}\n";
    let both = format!("{}{other}", std::fs::read_to_string(&labels).unwrap());
    std::fs::write(&labels, both).unwrap();
    assert_eq!(purge(&agent, &["s"]).0, Some(2), "only a whole name");
    assert_eq!(purge(&agent, &["s1"]).0, Some(0));
    assert_eq!(std::fs::read_to_string(&labels).unwrap(), other);
    assert!(!agent.state().join(format!("sessions/{id}.jsonl")).exists());
}

/// Another process that reads the database keeps the deleted bytes in it.
#[test]
fn a_purge_while_another_process_reads_says_what_is_left() {
    let mut agent = Agent::new("claude-code", "doom-loop", "nudge");
    stuck_and_labelled(&mut agent);
    let reader = rusqlite::Connection::open(agent.state().join("deloop.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM decisions;").unwrap();
    let (code, listed, why) = purge(&agent, &["--yes"]);
    assert_eq!(code, Some(2), "{listed}");
    assert!(why.contains("its bytes stay in") && why.contains("run `deloop purge` again"), "{why}");
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM decisions"), 0, "the rows are gone");
    let holds = || {
        ["deloop.db", "deloop.db-wal"].iter().any(|name| {
            let bytes = std::fs::read(agent.state().join(name)).unwrap_or_default();
            bytes.windows(10).any(|part| part == b"make check")
        })
    };
    assert!(holds());
    drop(reader);
    let (code, _, why) = purge(&agent, &["--yes"]);
    assert_eq!((code, why.as_str()), (Some(0), ""));
    assert!(!holds());
}
