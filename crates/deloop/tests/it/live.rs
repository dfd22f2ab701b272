//! What people see of the hooks and say to them: log, explain, wrong, pause, allow.

use serde_json::{Value, json};

use crate::agent_hooks::{Agent, denied};
use crate::binary::{deloop, lines, run, said};

/// What a command prints; it must end well.
fn prints(agent: &Agent, arguments: &[&str]) -> String {
    let output = run(deloop(agent.home.path()).args(arguments), b"");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn fails(agent: &Agent, arguments: &[&str]) -> String {
    let output = run(deloop(agent.home.path()).args(arguments), b"");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    said(&output)
}

/// The same failing call, so many times: which of them were refused, and which results came with a nudge.
fn stuck(agent: &mut Agent, command: &str, times: usize) -> (usize, usize) {
    let (mut refused, mut nudged) = (0, 0);
    for _ in 0..times {
        let before = agent.before(command);
        if denied(&before) {
            refused += 1;
            continue;
        }
        let after = agent.after("PostToolUseFailure", command, json!({"error": "Exit code 2\nno rule"}));
        nudged += usize::from(after["hookSpecificOutput"]["additionalContext"].is_string());
    }
    (refused, nudged)
}

fn ids(agent: &Agent) -> Vec<String> {
    let log = prints(agent, &["log", "--json"]);
    lines(log.as_bytes()).iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_log_says_what_was_decided_and_explain_says_why() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    assert!(prints(&agent, &["log"]).contains("No decisions yet"));
    assert_eq!(stuck(&mut agent, "make check", 6), (1, 2));
    let log = prints(&agent, &["log"]);
    let rows: Vec<&str> = log.lines().collect();
    assert_eq!(rows.len(), 3, "{log}");
    assert!(
        rows[0].contains("claude-code") && rows[0].contains("  s1 ") && rows[0].contains("  nudge "),
        "{log}"
    );
    assert!(rows[0].contains("`make check`") && rows[0].contains("delivered at PostToolUseFailure"));
    assert!(
        rows[2].contains("  block ") && rows[2].contains("delivered at PreToolUse"),
        "newest last: {log}"
    );
    let ids = ids(&agent);
    assert!(rows[0].ends_with(&ids[0]));

    let told = prints(&agent, &["explain", &ids[2]]);
    for part in [
        "Findings\n  repeated-failure: `make check`",
        "rung 3 `block`",
        "Bash(make check): error, output #",
        "[deloop] Blocked",
        "delivered at PreToolUse",
        &format!("deloop wrong {} --was legit", ids[2]),
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(prints(&agent, &["explain", &ids[2][..8]]), told, "a prefix is enough");
    assert!(fails(&agent, &["explain", "d"]).contains("unknown detector `d`"));
    assert!(fails(&agent, &["explain", "dfffffffffff"]).contains("`deloop log` lists the decisions"));
    assert!(prints(&agent, &["explain", "no-progress"]).contains("## What it finds"), "detectors as before");

    assert_eq!(prints(&agent, &["log", "-n", "1"]).lines().count(), 1);
    assert!(prints(&agent, &["log", "--agent", "codex"]).contains("No decisions"));
    assert_eq!(prints(&agent, &["log", "--agent", "claude", "--session", "s", "--since", "2h"]), log);
    assert!(prints(&agent, &["log", "--session", "t"]).contains("No decisions"));
    assert!(fails(&agent, &["log", "--since", "noon"]).contains("30d"));
}

/// Where several detectors find something, what decided is named everywhere: on the wire, in the log and by `explain`.
#[test]
fn what_decided_is_named() {
    let home = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/claude-code/batch-replayed.jsonl");
    let steps = run(deloop(home.path()).args(["steps", file]), b"").stdout;
    let stream = ["stream", "--agent", "demo", "--mode", "enforce"];
    let decisions = lines(&run(deloop(home.path()).args(stream), &steps).stdout);
    let mut decided: Vec<&Value> = decisions.iter().filter(|d| d["id"].is_string()).collect();
    decided.dedup_by_key(|d| d["id"].as_str());
    assert!(decided.iter().any(|d| d["findings"].as_array().unwrap().len() > 1), "several findings");
    let rows = lines(&run(deloop(home.path()).args(["log", "--json", "-n", "1000"]), b"").stdout);
    for decision in &decided {
        let by = &decision["by"];
        let same = |f: &&Value| f["detector"] == by["detector"] && f["pattern"] == by["pattern"];
        let finding = decision["findings"].as_array().unwrap().iter().find(same);
        let finding = finding.unwrap_or_else(|| panic!("{decision} names no finding"));
        assert!(by["rule"].is_string() && finding["threshold"].is_number(), "{decision}");
        let row = rows.iter().find(|row| row["id"] == decision["id"]).unwrap();
        assert_eq!((&row["detector"], &row["summary"]), (&by["detector"], &finding["summary"]));
        let id = decision["id"].as_str().unwrap();
        let told = String::from_utf8(run(deloop(home.path()).args(["explain", id]), b"").stdout).unwrap();
        let [detector, rule] = ["detector", "rule"].map(|key| by[key].as_str().unwrap());
        let rule = format!("\nRule\n  {detector}.{rule} = {}: ", finding["threshold"]);
        assert!(told.contains(&rule) && told.contains(" *step "), "{rule:?} is missing in {told}");
    }
}

#[test]
fn a_log_cannot_act_on_the_terminal_and_shows_no_keys() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    let command = "curl -H 'x: \u{1b}[31m' --token hunter2hunter2 http://x";
    stuck(&mut agent, command, 6);
    let all = [prints(&agent, &["log"]), prints(&agent, &["explain", &ids(&agent)[0]])].concat();
    assert!(all.contains("curl") && !all.contains('\u{1b}') && !all.contains("hunter2"), "{all}");
    let trail: String = agent.query("SELECT group_concat(recent_calls) FROM decisions");
    assert!(trail.contains("curl") && !trail.contains("hunter2"), "{trail}");
}

/// `deloop wrong`: the pattern is left alone in that session, others are not, and the label can be measured.
#[test]
fn what_was_wrong_is_left_alone_and_becomes_a_label() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    assert_eq!(stuck(&mut agent, "make check", 4).1, 1);
    let id = ids(&agent).remove(0);
    let said = prints(&agent, &["wrong", &id[..7], "--note", "waits for a lock"]);
    assert!(said.contains("ignores this pattern"), "{said}");
    assert_eq!(stuck(&mut agent, "make check", 12), (0, 0), "left alone, to the end");
    let (refused, nudged) = stuck(&mut agent, "cat missing.txt", 12);
    assert!(refused > 0 && nudged >= 2, "another loop is not: {refused} {nudged}");
    assert!(prints(&agent, &["log", "-n", "100"]).contains("marked as wrong"));
    assert!(prints(&agent, &["explain", &id]).contains("You marked it as wrong."));

    let state = agent.state();
    let labels = std::fs::read_to_string(state.join("labels.jsonl")).unwrap();
    let label: Value = serde_json::from_str(labels.trim()).unwrap();
    assert_eq!((&label["label"], &label["why"]), (&json!("legit"), &json!("waits for a lock")));
    let kept = std::fs::read_to_string(state.join(label["path"].as_str().unwrap())).unwrap();
    assert!(kept.contains("Bash") && !kept.contains("make") && !kept.contains("no rule"), "{kept}");
    let folder = state.to_str().unwrap();
    let labels = state.join("labels.jsonl");
    let score = prints(&agent, &["eval", labels.to_str().unwrap(), "--corpus", folder, "--json"]);
    let score: Value = serde_json::from_str(&score).unwrap();
    assert_eq!(
        score["profiles"][0]["all"]["score"]["healthy_alarms"], 1,
        "the profile fires on it: that is the mistake"
    );

    prints(&agent, &["wrong", &id, "--was", "loop"]);
    let text = std::fs::read_to_string(&labels).unwrap();
    assert_eq!(text.lines().count(), 1, "one label a decision: {text}");
    assert!(text.contains(r#""label":"loop""#) && text.contains("onset_turn"));
    assert!(fails(&agent, &["wrong", "dffff"]).contains("deloop log"));
}

/// The transcript says more than deloop remembers; not a word of it is kept.
#[test]
fn a_label_comes_from_the_transcript_where_there_is_one() {
    let agent = Agent::new("claude-code", "default", "enforce");
    let path = agent.home.path().join("s1.jsonl");
    let fixture =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/src/agents/claude_code/fixtures/stuck.jsonl");
    let session = "5f0c1d2e";
    let text = std::fs::read_to_string(fixture).unwrap();
    std::fs::write(&path, &text).unwrap();
    for n in 0..4 {
        let call = json!({"session_id": session, "transcript_path": path, "tool_name": "Bash", "tool_use_id": format!("x{n}"),
            "tool_input": {"command": "ls"}, "error": "Exit code 1"});
        agent.event("PostToolUseFailure", call);
    }
    let id = ids(&agent).remove(0);
    assert!(prints(&agent, &["wrong", &id]).contains("from the transcript"));
    let kept = std::fs::read_to_string(agent.state().join(format!("sessions/{id}.jsonl"))).unwrap();
    let turns = kept.lines().filter(|l| l.contains(r#""type":"call""#) || l.contains(r#""type":"turn""#));
    assert_eq!(turns.count(), 8, "{kept}");
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|w| w.len() > 7).collect();
    let known = ["assistant", "Bash", "description", "file_path", "timestamp", "session", "command"];
    let read: Vec<_> =
        words.iter().filter(|w| kept.contains(**w) && !known.contains(w) && !w.contains("claude")).collect();
    assert!(read.is_empty(), "{read:?}");
}

#[test]
fn a_paused_session_is_watched_and_nothing_is_done() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    assert_eq!(stuck(&mut agent, "make check", 2), (0, 0));
    assert!(prints(&agent, &["pause", "--for", "2h", "s1"]).contains("Paused: session s1"));
    assert_eq!(stuck(&mut agent, "make check", 12), (0, 0));
    let log = prints(&agent, &["log"]);
    assert!(log.contains("(nudge)") && log.contains("paused, not carried out"), "{log}");
    assert!(log.lines().last().unwrap().starts_with("Paused: session s1, until "), "{log}");
    assert!(agent.query::<i64>("SELECT count(*) FROM decisions WHERE delivered IS NOT NULL") == 0);
    assert!(prints(&agent, &["resume"]).contains("Resumed."));
    // The ladder starts anew: no stop that was reached meanwhile falls on the agent at once.
    assert!(agent.before("date").is_null());
    let (refused, nudged) = stuck(&mut agent, "make check", 7);
    assert!(refused > 0 && nudged >= 2, "{refused} {nudged}");
    assert!(fails(&agent, &["pause", "--for", "soon"]).contains("30m"));
    assert!(fails(&agent, &["pause", "other"]).contains("no session `other`"));
    assert_eq!(prints(&agent, &["resume"]), "Nothing was paused.\n");
    prints(&agent, &["pause"]);
    assert_eq!(stuck(&mut agent, "make more", 9), (0, 0), "all sessions");
}

#[test]
fn allowed_calls_are_not_looked_at() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    assert!(prints(&agent, &["allow", "--list"]).contains("No calls are ignored."));
    prints(&agent, &["allow", "Bash npm run watch*"]);
    assert_eq!(prints(&agent, &["allow", "--list"]), "Bash npm run watch*\n");
    assert_eq!(stuck(&mut agent, "npm run watch --once", 9), (0, 0));
    let calls = json!([{"tool_name": "Bash", "tool_input": {"command": "npm run watch"}, "tool_use_id": "b", "tool_response": "x"}]);
    agent.event("PostToolBatch", json!({"tool_calls": calls}));
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM sessions"), 0, "no step was taken");
    let (refused, nudged) = stuck(&mut agent, "npm run build", 7);
    assert!(refused > 0 && nudged >= 2, "{refused} {nudged}");
    assert!(prints(&agent, &["log"]).contains("Ignored calls: 1 pattern."));
    prints(&agent, &["allow", "--remove", "Bash npm run watch*"]);
    let (refused, _) = stuck(&mut agent, "npm run watch --once", 9);
    assert!(refused > 0);
    assert!(fails(&agent, &["allow", "--remove", "Bash x"]).contains("deloop allow --list"));
    assert!(fails(&agent, &["allow", "Bash [x"]).contains("isn't a pattern"));
}

/// What the agent did after it was told.
#[test]
fn what_came_of_a_nudge_is_kept() {
    let outcome = |next: &dyn Fn(&mut Agent)| {
        let mut agent = Agent::new("claude-code", "default", "nudge");
        assert_eq!(stuck(&mut agent, "make check", 3).1, 1);
        next(&mut agent);
        let kept: Option<String> = agent.query("SELECT outcome FROM decisions ORDER BY step LIMIT 1");
        (agent, kept)
    };
    let work = |agent: &mut Agent, from: u32, to: u32| {
        for n in from..to {
            agent.before(&format!("cat file{n}"));
            agent.after(
                "PostToolUse",
                &format!("cat file{n}"),
                json!({"tool_response": format!("text {n}")}),
            );
        }
    };
    let (agent, left) = outcome(&|agent| work(agent, 0, 4));
    assert_eq!(left.as_deref(), Some("left"));
    assert!(prints(&agent, &["log"]).contains("delivered at PostToolUseFailure, left the loop"));
    let summary: Value = serde_json::from_str(&prints(&agent, &["log", "--summary", "--json"])).unwrap();
    assert_eq!(summary["nudges"]["delivered"], 1);

    assert_eq!(
        outcome(&|agent| assert_eq!(stuck(agent, "make check", 1).0, 0)).1.as_deref(),
        Some("continued")
    );
    let ended =
        outcome(&|agent| drop(agent.event("Stop", json!({"last_assistant_message": "I am blocked."}))));
    assert_eq!(ended.1.as_deref(), Some("ended"));
    let over = outcome(&|agent| drop(agent.event("SessionEnd", json!({"reason": "other"}))));
    assert_eq!(over.1.as_deref(), Some("ended"));
    let person =
        outcome(&|agent| drop(agent.event("UserPromptSubmit", json!({"prompt": "Try the other one"}))));
    assert_eq!(person.1.as_deref(), Some("unknown"));
    assert_eq!(outcome(&|agent| work(agent, 0, 2)).1, None, "too early to tell");
}

/// What the agent is told never names the ways to switch the guard off.
#[test]
fn the_agent_is_not_invited_to_disable_the_guard() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    stuck(&mut agent, "deloop pause --for 9d", 6);
    let said: String = agent.query("SELECT group_concat(message, ' ') FROM decisions");
    let said = said.replace("`deloop pause --for 9d`", "");
    assert!(said.contains("[deloop]"));
    for word in ["pause", "allow", "uninstall", "deloop wrong", "DELOOP", "resume", "disable", "switch"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
    assert!(
        agent.query::<i64>("SELECT count(*) FROM decisions WHERE action = 'block'") > 0,
        "a call like any other"
    );
}

/// What a plugin sends to `deloop stream --agent` is a live session like a hook's.
#[test]
fn a_plugin_can_be_paused_allowed_and_told_that_it_was_wrong() {
    let agent = Agent::new("opencode", "default", "enforce");
    let actions = |session: &str, laps: usize| -> Vec<String> {
        let lines: String = (0..laps)
            .map(|n| {
                let call = json!({"type": "call", "session": session, "id": format!("c{n}-{session}"), "tool": "bash",
                    "args": {"command": "make check"}});
                let result = json!({"type": "result", "session": session, "id": format!("c{n}-{session}"),
                    "outcome": "error", "output": "make: *** No rule"});
                format!("{call}\n{result}\n")
            })
            .collect();
        let mut command = deloop(agent.home.path());
        command.args(["stream", "--agent", "opencode", "--mode", "enforce"]);
        let output = run(&mut command, lines.as_bytes());
        let answers = crate::binary::lines(&output.stdout);
        answers.iter().map(|a| a["action"].as_str().unwrap().to_owned()).filter(|a| a != "continue").collect()
    };
    assert_eq!(actions("a", 8), ["nudge", "nudge", "block", "block", "stop", "stop"]);
    prints(&agent, &["pause", "--for", "1h"]);
    assert!(actions("b", 12).is_empty());
    prints(&agent, &["resume"]);
    prints(&agent, &["allow", "bash make*"]);
    assert!(actions("c", 12).is_empty());
    prints(&agent, &["allow", "--remove", "bash make*"]);
    assert_eq!(actions("d", 3), ["nudge"]);
    let id: String = agent.query("SELECT id FROM decisions WHERE session = 'd'");
    prints(&agent, &["wrong", &id]);
    assert!(actions("d", 12).is_empty());
}
