//! Recovery after two ignored nudges: a fresh session, another model, or turns taken out of the conversation.

#![cfg(unix)]

use std::path::Path;

use serde_json::Value;

use crate::binary::{deloop, lines, run, said, stream};
use crate::run::{Ran, agent_with};
use crate::run_routing::ATTEMPT;

/// `other N` makes a call that the first attempt didn't make.
const OTHER: &str = r#"
other() { printf '{"session_id":"'$SESSION'","hook_event_name":"%s","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"ls '$1'"},"tool_use_id":"o'$1'"%s}' PreToolUse "" | "$BIN" hook claude-code > /dev/null
printf '{"session_id":"'$SESSION'","hook_event_name":"%s","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"ls '$1'"},"tool_use_id":"o'$1'"%s}' PostToolUse ',"tool_response":{"stdout":"file '$1'"}' | "$BIN" hook claude-code > /dev/null; }
"#;

fn recovered(options: &[&str], script: &str) -> Ran {
    let options: Vec<&str> =
        ["--recover", "fresh", "--json", "result.json"].iter().chain(options).copied().collect();
    agent_with(&options, &[], &format!("{OTHER}\n{ATTEMPT}\n{script}"))
}

fn result(home: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(home.join("result.json")).expect("the result")).unwrap()
}

/// The hand-off of the second attempt, as `deloop log` has it.
fn given(home: &Path) -> (Value, String) {
    let log = lines(&run(deloop(home).args(["log", "--json"]), b"").stdout);
    let row = log.into_iter().rev().find(|row| row["rung"] == "hand-off").expect("a hand-off");
    let text = run(deloop(home).arg("log"), b"").stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find(|line| line.contains(row["id"].as_str().unwrap())).unwrap().to_owned();
    (row, line)
}

#[test]
fn an_agent_that_ignores_two_nudges_starts_afresh_and_leaves_the_loop() {
    let script =
        "read task; echo \"again: $task\"; prompt 1 > reply-2; for n in 1 2 3 4 5; do other $n; done; exit 0";
    let ran = recovered(&["--handoff", "h.md"], script);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("again: a task"), "standard input is there again: {}", ran.stdout);
    for part in
        ["ended the agent, which ignored two messages: `make check`", "starting again in a new session"]
    {
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    let result = result(ran.home.path());
    assert_eq!(result["outcome"], "retried", "{result}");
    let attempts = result["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[0]["status"]), (2, &"NUDGES_IGNORED".into()), "{result}");
    assert_eq!((&attempts[0]["stopped"], &attempts[1]["stopped"]), (&true.into(), &false.into()), "{result}");
    let reply = std::fs::read_to_string(ran.home.path().join("reply-2")).unwrap();
    assert!(
        reply.contains("An earlier attempt at this task was stopped") && reply.contains("h.md"),
        "{reply}"
    );
    let handoff = std::fs::read_to_string(ran.home.path().join("h.md")).unwrap();
    assert!(handoff.starts_with("# deloop ended this attempt and starts another"), "{handoff}");
    let (row, line) = given(ran.home.path());
    assert_eq!((&row["outcome"], &row["attempt"]), (&"left".into(), &2.into()), "{row}");
    assert!(line.contains("left the loop"), "{line}");
}

/// A second session that does the same is recorded as such, and the ladder ends it: there is one recovery in a run.
#[test]
fn a_fresh_session_that_repeats_the_loop_is_stopped() {
    let ran = recovered(&[], "prompt 1 > reply-2; stuck 30; exit 0");
    assert_eq!(ran.code, Some(86), "{}", ran.stderr);
    let result = result(ran.home.path());
    let attempts = result["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[1]["status"]), (2, &"LOOP_DETECTED".into()), "{result}");
    let (row, line) = given(ran.home.path());
    assert_eq!(row["outcome"], "continued", "{row}");
    assert!(line.contains("continued the loop"), "{line}");
}

/// Without it, and for an agent that leaves after the second nudge, nothing is different.
#[test]
fn an_agent_that_heeds_a_nudge_is_not_started_again() {
    let ran = recovered(&[], "echo second");
    assert!(ran.stdout.contains("second"), "{}", ran.stderr);
    let script = format!("{OTHER}\nSESSION=s-run; stuck 5; for n in 1 2 3 4 5; do other $n; done; exit 3");
    let ran = agent_with(&["--recover", "fresh"], &[], &script);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""));
    let ran = agent_with(&["--recover", "new"], &[], "echo started");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("--recover takes fresh or model=NAME"), "{}", ran.stderr);
}

/// The model goes to the agent by its own flag, from the user's configuration; an agent whose flag isn't known keeps its own.
#[test]
fn another_model_takes_over() {
    for (name, arguments, second) in [
        ("claude", "-p task", "--model m2 -p task"),
        ("claude", "-p task --model m1", "-p task --model m2"),
        ("codex", "exec task", "exec -m m2 task"),
        ("opencode", "run task", "run -m m2 task"),
        ("my-agent", "-p task", "-p task"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let agent = home.path().join(name);
        let base = crate::run::AGENT;
        let script = format!("#!/bin/sh\n{base}\necho \"$@\" >> arguments\n{ATTEMPT}\nprompt 1 > reply-2\n");
        std::fs::write(&agent, script).unwrap();
        std::fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let config = home.path().join(".config/deloop");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("deloop.toml"), "[run]\nrecover = { model = \"m2\" }\n").unwrap();
        let mut command = deloop(home.path());
        command.env("PATH", "/usr/bin:/bin").env("BIN", env!("CARGO_BIN_EXE_deloop"));
        crate::binary::stop_clock(home.path(), &mut command);
        command
            .args(["run", "--grace", "0.4", "--json", "result.json", "--"])
            .arg(&agent)
            .args(arguments.split(' '));
        let output = run(&mut command, b"");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        let made = std::fs::read_to_string(home.path().join("arguments")).unwrap();
        assert_eq!(made, format!("{arguments}\n{second}\n"), "{}", said(&output));
        let model = &result(home.path())["attempts"][1]["model"];
        let known = name != "my-agent";
        assert_eq!(model, &if known { Value::from("m2") } else { Value::Null });
        let told = if known { "with model m2" } else { "doesn't know how to choose one here" };
        assert!(said(&output).contains(told), "{}", said(&output));
    }
}

/// A project can't choose the model, nor switch the stall limit off.
#[test]
fn only_the_user_configures_runs() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("deloop.toml"), "[run]\nrecover = \"fresh\"\n").unwrap();
    let output = run(deloop(home.path()).args(["trust", "deloop.toml"]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("only your own configuration can set `run`"), "{}", said(&output));
}

/// Seven failing calls, then four others.
fn steps() -> String {
    let mut text = String::new();
    for n in 0..7 {
        text += &format!(
            "{{\"type\":\"call\",\"id\":\"{n}\",\"tool\":\"bash\",\"args\":{{\"command\":\"make\"}}}}\n"
        );
        let result = if n < 5 { r#""ok":false,"output":"no rule""# } else { r#""outcome":"denied""# };
        text += &format!("{{\"type\":\"result\",\"id\":\"{n}\",{result}}}\n");
    }
    for n in 7..12 {
        text += &format!(
            "{{\"type\":\"call\",\"id\":\"{n}\",\"tool\":\"bash\",\"args\":{{\"command\":\"ls {n}\"}}}}\n"
        );
        text += &format!("{{\"type\":\"result\",\"id\":\"{n}\",\"ok\":true,\"output\":\"file {n}\"}}\n");
    }
    text
}

/// Only a host that asks for it, in mode enforce and with a profile that follows the rules of intervention, gets a rollback.
#[test]
fn a_rollback_is_for_hosts_that_can() {
    let home = tempfile::tempdir().unwrap();
    let rollbacks = |arguments: &[&str]| -> Vec<Value> {
        let answers = stream(home.path(), arguments, steps().as_bytes());
        answers
            .into_iter()
            .map(|answer| answer["rollback"].clone())
            .filter(|found| !found.is_null())
            .collect()
    };
    let found = rollbacks(&["--rollback"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["from_step"], &found[0]["to_step"]), (&0.into(), &9.into()), "{found:?}");
    assert_eq!(rollbacks(&["--rollback", "--attended"]).len(), 1, "the person is asked about the call");
    for arguments in [
        &[][..],
        &["--rollback", "--mode", "nudge"],
        &["--rollback", "--mode", "shadow"],
        &["--rollback", "--profile", "doom-loop"],
        &["--rollback", "--profile", "signature"],
    ] {
        assert_eq!(rollbacks(arguments), Vec::<Value>::new(), "{arguments:?}");
    }
    let plain = stream(home.path(), &[], steps().as_bytes());
    let mut folding = stream(home.path(), &["--rollback"], steps().as_bytes());
    for answer in &mut folding {
        answer.as_object_mut().unwrap().remove("rollback");
    }
    assert_eq!(plain, folding, "nothing else is different");
}

/// What came of a rollback is in the journal.
#[test]
fn the_log_shows_what_came_of_a_rollback() {
    let home = tempfile::tempdir().unwrap();
    stream(home.path(), &["--agent", "opencode", "--mode", "enforce", "--rollback"], steps().as_bytes());
    let log = lines(&run(deloop(home.path()).args(["log", "--json"]), b"").stdout);
    let row = log.iter().find(|row| row["rung"] == "block").expect("the block");
    assert_eq!(
        (&row["delivered"], &row["outcome"]),
        (&"stream, with a rollback".into(), &"continued".into()),
        "{row}"
    );

    let home = tempfile::tempdir().unwrap();
    let all = steps();
    let left: Vec<&str> = all.lines().filter(|line| !line.contains(r#""id":"6""#)).collect();
    stream(
        home.path(),
        &["--agent", "opencode", "--mode", "enforce", "--rollback"],
        left.join("\n").as_bytes(),
    );
    let log = lines(&run(deloop(home.path()).args(["log", "--json"]), b"").stdout);
    let row = log.iter().find(|row| row["rung"] == "block").expect("the block");
    assert_eq!(row["outcome"], "left", "{row}");
    let text = run(deloop(home.path()).arg("log"), b"").stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("[delivered at stream, with a rollback, left the loop]"), "{text}");
}
