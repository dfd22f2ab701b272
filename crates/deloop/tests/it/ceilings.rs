//! Ceilings: what a session, and a project per day, may use.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent_hooks::{Agent, denied};
use crate::binary::{deloop, run, said, stream};

/// Writes the user's own configuration.
pub(crate) fn own_config(home: &Path, text: &str) {
    let folder = if cfg!(windows) { home.join("deloop") } else { home.join(".config/deloop") };
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("deloop.toml"), text).unwrap();
}

pub(crate) fn prints(home: &Path, arguments: &[&str]) -> String {
    let output = run(deloop(home).args(arguments), b"");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The actions of `deloop stream` on these steps.
pub(crate) fn actions(home: &Path, arguments: &[&str], steps: &[Value]) -> Vec<String> {
    let text: String = steps.iter().map(|step| format!("{step}\n")).collect();
    let answers = stream(home, arguments, text.as_bytes());
    answers.iter().map(|answer| answer["action"].as_str().unwrap().to_owned()).collect()
}

fn usage(dollars: f64) -> Value {
    json!({"type": "usage", "input_tokens": 1, "output_tokens": 1, "cost_usd": dollars})
}

pub(crate) fn call(n: u32) -> Value {
    json!({"type": "call", "id": format!("c{n}"), "tool": "bash", "args": {"command": format!("cat file{n}")}})
}

/// A hook's event about a call of a session that works: no two calls are alike.
pub(crate) fn event(agent: &Agent, name: &str, n: u32, more: &Value) -> Value {
    let mut all = json!({
        "tool_name": "Bash", "tool_input": {"command": format!("cat file{n}")}, "tool_use_id": format!("c{n}"),
    });
    if name == "PostToolUse" {
        all["tool_response"] = json!(format!("text {n}"));
    }
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent.event(name, all)
}

/// What happens to each of these calls: `ok`, `warn`, `ask`, `deny`, `stop`, or `end` if the run is stopped at its result.
/// Calls that aren't refused run.
pub(crate) fn calls(agent: &Agent, numbers: std::ops::RangeInclusive<u32>, more: &Value) -> String {
    let mut seen = Vec::new();
    for n in numbers {
        let before = event(agent, "PreToolUse", n, more);
        let decided = before["hookSpecificOutput"]["permissionDecision"].as_str();
        let after = if decided.is_none() { event(agent, "PostToolUse", n, more) } else { Value::Null };
        seen.push(match decided {
            Some("ask") => "ask",
            Some(_) if before["continue"] == false => "stop",
            Some(_) => "deny",
            None if after["continue"] == false => "end",
            None if before["systemMessage"].is_string() || after["systemMessage"].is_string() => "warn",
            None => "ok",
        });
    }
    seen.join(" ")
}

#[test]
fn every_ceiling_is_on_by_default() {
    let home = tempfile::tempdir().unwrap();
    let stopped = |steps: &[Value]| actions(home.path(), &[], steps);
    assert_eq!(
        stopped(&[usage(239.0), usage(2.0), usage(58.0), usage(2.0), call(1)]),
        ["continue", "warn", "continue", "stop", "stop"]
    );
    let tokens = |n: u64| json!({"type": "usage", "model": "nobody-prices-this", "input_tokens": n, "output_tokens": 0});
    assert_eq!(stopped(&[tokens(55_999_999), tokens(14_000_000), tokens(1)]), ["continue", "warn", "stop"]);
    let reads = |n: u64| json!({"type": "usage", "model": "nobody-prices-this", "cache_read_tokens": n});
    assert_eq!(stopped(&[reads(559_999_990), reads(10), reads(140_000_000)]), ["continue", "warn", "stop"]);
    let subagent = |n: u32| json!({"type": "turn", "agent": format!("a{n}"), "text": format!("Part {n}.")});
    let subagents: Vec<Value> = (1..=200).map(subagent).collect();
    let seen = stopped(&subagents);
    assert_eq!((seen[158].as_str(), seen[159].as_str(), seen[199].as_str()), ("continue", "warn", "stop"));
    let at = |n: u32| {
        let mut step = call(n);
        step["ts"] = json!(i64::from(n) * 600_000);
        step
    };
    let minutes: Vec<Value> = (0..=144).map(at).collect();
    let seen = stopped(&minutes);
    assert_eq!((seen[116].as_str(), seen[117].as_str(), seen[144].as_str()), ("warn", "continue", "stop"));
    let turns: Vec<Value> = (0..=2000).map(call).collect();
    let seen = stopped(&turns);
    assert_eq!((seen[1600].as_str(), seen[1999].as_str(), seen[2000].as_str()), ("warn", "continue", "stop"));
}

/// The five documents have no ceilings.
#[test]
fn other_profiles_have_none() {
    let home = tempfile::tempdir().unwrap();
    for profile in ["signature", "turn-hash", "turn-similarity", "doom-loop", "behavioral"] {
        let seen = actions(home.path(), &["-p", profile], &[usage(9000.0), call(1), usage(9000.0), call(2)]);
        assert!(seen.iter().all(|action| action == "continue"), "{profile}: {seen:?}");
    }
}

#[test]
fn one_line_changes_a_ceiling_and_zero_turns_it_off() {
    let home = tempfile::tempdir().unwrap();
    let steps = [usage(0.9), usage(0.2), usage(400.0)];
    own_config(home.path(), "ceilings.usd = 1");
    assert_eq!(actions(home.path(), &[], &steps), ["warn", "stop", "stop"]);
    own_config(home.path(), "ceilings.usd = 0");
    assert_eq!(actions(home.path(), &[], &steps), ["continue"; 3]);
    own_config(home.path(), "[detectors.over-budget]\nusd = 100.0");
    assert_eq!(
        actions(home.path(), &[], &steps),
        ["continue", "continue", "stop"],
        "the detector's own takes precedence"
    );
    own_config(home.path(), "ceilings.usd = -1");
    let output = run(deloop(home.path()).arg("stream"), b"");
    assert!(said(&output).contains("`ceilings.usd` must be 0 (no limit) or more"), "{}", said(&output));
}

/// A person who writes raises a ceiling by half, each time that it was reached, and not before.
#[test]
fn a_persons_message_raises_a_ceiling_by_half() {
    let home = tempfile::tempdir().unwrap();
    own_config(home.path(), "ceilings.usd = 1");
    let person = |text: &str| json!({"type": "user", "origin": "human", "text": text});
    let steps = [
        person("Go."),
        usage(0.5),
        person("Not reached yet."),
        usage(0.55),
        call(1),
        json!({"type": "user", "origin": "harness", "text": "Continue."}),
        person("Yes, go on."),
        call(2),
        usage(0.2),
        person("Still below."),
        usage(0.3),
        person("And on."),
        call(3),
    ];
    let wanted = [
        "continue", "continue", "continue", "stop", "stop", "stop", "continue", "continue", "warn",
        "continue", "stop", "continue", "continue",
    ];
    assert_eq!(actions(home.path(), &[], &steps), wanted);
}

/// Neither hides the other: a loop near a ceiling is nudged twice and blocked, a ceiling stops a run that was nudged.
#[test]
fn loops_and_ceilings_are_judged_apart() {
    let home = tempfile::tempdir().unwrap();
    own_config(home.path(), "ceilings.usd = 1");
    let stuck = |n: u32| {
        [
            json!({"type": "call", "id": format!("c{n}"), "tool": "bash", "args": {"command": "make"}}),
            json!({"type": "result", "id": format!("c{n}"), "outcome": "error", "output": "no rule"}),
        ]
    };
    let mut steps = vec![usage(0.85)];
    steps.extend((1..=6).flat_map(stuck));
    let acted = |steps: &[Value]| -> Vec<String> {
        actions(home.path(), &[], steps).into_iter().filter(|action| action != "continue").collect()
    };
    assert_eq!(acted(&steps), ["warn", "nudge", "nudge", "block"]);
    let mut steps: Vec<Value> = (1..=5).flat_map(stuck).collect();
    steps.push(usage(1.0));
    assert_eq!(acted(&steps), ["nudge", "nudge", "stop"]);
    let mut steps = vec![usage(0.85)];
    steps.extend([
        json!({"type": "compact"}),
        call(1),
        json!({"type": "user", "text": "Hello.", "origin": "human"}),
        call(2),
    ]);
    assert_eq!(acted(&steps), ["warn"], "once, whatever comes in between");
}

/// Mode `nudge` doesn't loosen a ceiling; shadow only records.
#[test]
fn an_unattended_agent_is_stopped_by_its_hook() {
    let nobody = json!({});
    for mode in ["nudge", "enforce"] {
        let agent = Agent::new("claude-code", "default", mode);
        own_config(agent.home.path(), "ceilings.turns = 10");
        assert_eq!(calls(&agent, 1..=12, &nobody), "ok ok ok ok ok ok ok warn ok end stop stop", "{mode}");
        let log = prints(agent.home.path(), &["log", "--json"]);
        assert!(log.contains("OVER_BUDGET") && log.contains("10 of 10 turns used (100 %)"), "{log}");
        let prompt = agent.event("UserPromptSubmit", json!({"prompt": "Go on."}));
        assert!(prompt["systemMessage"].as_str().unwrap().contains("12 of 15 turns used (80 %)"), "{prompt}");
        assert_eq!(calls(&agent, 13..=16, &nobody), "ok ok end stop", "half more: {mode}");
    }
    let agent = Agent::new("claude-code", "default", "shadow");
    own_config(agent.home.path(), "ceilings.turns = 10");
    assert_eq!(calls(&agent, 1..=12, &nobody), ["ok"; 12].join(" "));
    assert!(prints(agent.home.path(), &["log"]).contains("shadow mode, not carried out"));
}

/// Every call is asked about until a person allows one.
#[test]
fn an_attended_agent_is_asked_about() {
    let agent = Agent::new("claude-code", "default", "nudge");
    own_config(agent.home.path(), "ceilings.turns = 10");
    let person = json!({"permission_mode": "default"});
    assert_eq!(calls(&agent, 1..=13, &person), "ok ok ok ok ok ok ok warn ok ok ask ask ask");
    let asked = event(&agent, "PreToolUse", 14, &person);
    let reason = asked["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("13 of 10 turns used") && reason.contains("raised by half"), "{reason}");
    event(&agent, "PostToolUse", 14, &person);
    assert_eq!(calls(&agent, 15..=17, &person), "warn ask ask", "14 and then 15 of 15");
}

/// An agent that can't ask refuses, and a message lifts it.
#[test]
fn an_agent_that_cannot_ask_is_refused() {
    let agent = Agent::new("codex", "default", "nudge");
    own_config(agent.home.path(), "ceilings.turns = 10");
    let person = json!({"permission_mode": "default"});
    assert_eq!(calls(&agent, 1..=12, &person), "ok ok ok ok ok ok ok warn ok ok deny deny");
    let refused = event(&agent, "PreToolUse", 13, &person);
    let reason = refused["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(
        reason.starts_with("[deloop] Blocked: ") && reason.contains("until a person writes to you"),
        "{reason}"
    );
    agent.event("UserPromptSubmit", json!({"prompt": "Go on.", "permission_mode": "default"}));
    assert_eq!(calls(&agent, 14..=14, &person), "ok");
}

/// What a subagent of Claude Code uses is in a file of its own, and counts once.
#[test]
fn subagents_spend_from_the_same_ceiling() {
    let agent = Agent::new("claude-code", "default", "nudge");
    own_config(agent.home.path(), "ceilings.usd = 10");
    let folder = agent.home.path().join("s1/subagents");
    std::fs::create_dir_all(&folder).unwrap();
    let transcript = agent.home.path().join("s1.jsonl");
    std::fs::write(&transcript, "").unwrap();
    let request = |n: u32| {
        let message = json!({"id": format!("m{n}"), "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": format!("Part {n}.")}], "usage": {"input_tokens": 1_000_000, "output_tokens": 0}});
        let record = json!({"type": "assistant", "uuid": format!("u{n}"), "parentUuid": null, "isSidechain": true, "sessionId": "s1",
            "requestId": format!("r{n}"), "message": message});
        format!("{record}\n")
    };
    let file = folder.join("agent-a1.jsonl");
    let sub = json!({"transcript_path": transcript, "agent_id": "a1"});
    std::fs::write(&file, request(1) + &request(2)).unwrap();
    assert_eq!(calls(&agent, 1..=2, &sub), "ok ok", "$6 of $10");
    std::fs::write(&file, request(1) + &request(2) + &request(3)).unwrap();
    assert_eq!(calls(&agent, 3..=3, &sub), "warn");
    std::fs::write(folder.join("agent-a2.jsonl"), request(4)).unwrap();
    assert_eq!(
        calls(&agent, 4..=4, &json!({"transcript_path": transcript, "agent_id": "a2"})),
        "stop",
        "$12 of $10"
    );
    let elsewhere =
        json!({"transcript_path": transcript, "agent_id": "../subagents/agent-a1", "session_id": "s2"});
    assert_eq!(calls(&agent, 1..=1, &elsewhere), "ok");
}

/// A folder's own file can't raise a ceiling that the user set or turn it off, trusted or not.
#[test]
fn a_folder_cannot_raise_a_ceiling_that_the_user_set() {
    let agent = Agent::new("claude-code", "default", "nudge");
    own_config(agent.home.path(), "ceilings.turns = 4");
    let file = agent.home.path().join("deloop.toml");
    std::fs::write(&file, "ceilings.turns = 0\nceilings.day_turns = 0\n").unwrap();
    let seen = calls(&agent, 1..=5, &json!({}));
    assert!(seen.ends_with("end stop"), "{seen}");
    let output = run(deloop(agent.home.path()).args(["trust", "deloop.toml"]), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("ceilings.turns: 0 (yours: 4)"));
    assert_eq!(calls(&agent, 1..=5, &json!({"session_id": "s2"})), seen.replacen("warn", "ok", 1));
    // It can lower it, and one that the user didn't set is the project's to change.
    std::fs::write(&file, "ceilings.turns = 2\nceilings.subagents = 0\n").unwrap();
    let output = run(deloop(agent.home.path()).args(["trust", "deloop.toml"]), b"");
    assert!(String::from_utf8_lossy(&output.stdout).contains("ceilings.subagents: 200 → 0"));
    let seen = calls(&agent, 1..=3, &json!({"session_id": "s3"}));
    assert!(seen.ends_with("end stop"), "{seen}");
}

#[test]
fn install_says_which_ceilings_are_on() {
    let home = tempfile::tempdir().unwrap();
    let printed = prints(home.path(), &["install", "claude-code"]);
    for part in [
        "Ceilings per session: $300, 70,000,000 tokens, 2,000 turns, 200 subagents, 1,440 active minutes\n",
        "Ceilings per project and day: $1,000, 150,000,000 tokens, 10,000 turns, 1,000 subagents, 6,000 active minutes\n",
        "To change one: `ceilings.usd = 50` at the top of ~/.config/deloop/deloop.toml (0 turns it off",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    own_config(home.path(), "ceilings.usd = 50\nceilings.day_subagents = 0");
    let printed = prints(home.path(), &["install", "claude-code"]);
    assert!(
        printed.contains("session: $50, ") && printed.contains("10,000 turns, 6,000 active"),
        "{printed}"
    );
    let printed = prints(home.path(), &["install", "claude-code", "--profile", "signature"]);
    assert!(
        printed.contains("Ceilings per session: none\nCeilings per project and day: none")
            || printed.contains("none are set in profile signature"),
        "{printed}"
    );
}

/// `deloop run` ends with its own exit code, and no message of a program raises the day's ceiling.
#[cfg(unix)]
#[test]
fn a_run_ends_at_its_ceiling() {
    let home = tempfile::tempdir().unwrap();
    own_config(home.path(), "ceilings.turns = 2");
    let agent =
        "for n in 1 2 3 4 5; do reply=$(say PreToolUse $n); case $reply in *'\"deny\"'*) exit 0;; esac; done";
    let output = run(&mut crate::run::command(home.path(), &[], agent), b"");
    assert_eq!(output.status.code(), Some(86), "{}", said(&output));
    assert!(said(&output).contains("stopped the run: 2 of 2 turns used (100 %)"), "{}", said(&output));

    let again =
        run(crate::run::command(home.path(), &["--on-stop", "retry"], agent).env("SESSION", "s3"), b"");
    assert_eq!(again.status.code(), Some(86), "{}", said(&again));
    assert!(said(&again).contains("not starting another attempt: a ceiling was reached"), "{}", said(&again));

    own_config(home.path(), "ceilings.day_turns = 3");
    let agent = "cd $HOME; for n in 1 2 3 4 5; do say UserPromptSubmit $n ',\"prompt\":\"Go on.\",\"cwd\":\"'$HOME'\"'; \
                 say PreToolUse $n ',\"cwd\":\"'$HOME'\"'; done";
    let output = run(crate::run::command(home.path(), &[], agent).env("SESSION", "s2"), b"");
    assert_eq!(output.status.code(), Some(86), "{}", said(&output));
    assert!(said(&output).contains("3 of 3 turns used by this project today (100 %)"), "{}", said(&output));
    let database = rusqlite::Connection::open(home.path().join(".local/state/deloop/deloop.db")).unwrap();
    let raises: i64 = database.query_row("SELECT max(raises) FROM day_usage", [], |row| row.get(0)).unwrap();
    assert_eq!(raises, 0);
}

/// A refused call isn't counted as evidence of anything.
#[test]
fn a_ceiling_is_no_loop() {
    let agent = Agent::new("claude-code", "default", "enforce");
    own_config(agent.home.path(), "ceilings.turns = 2");
    assert_eq!(calls(&agent, 1..=3, &json!({})), "ok end stop");
    assert!(denied(&event(&agent, "PreToolUse", 3, &json!({}))));
    let weekly: Value =
        serde_json::from_str(&prints(agent.home.path(), &["log", "--weekly", "--json"])).unwrap();
    let loops = weekly["groups"][0]["loops"].as_array().unwrap();
    assert!(loops.iter().all(|count| count == 0), "{weekly}");
}
