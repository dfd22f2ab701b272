//! Failures that earlier sessions of a project, or other subagents of a session, met before.

use std::path::Path;

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said, stream};

fn acts(answers: &[Value]) -> Vec<(usize, &str)> {
    let acts = answers.iter().enumerate().filter(|(_, answer)| answer["action"] != "continue");
    acts.map(|(n, answer)| (n, answer["action"].as_str().unwrap())).collect()
}

fn answers(arguments: &[&str], steps: &[Value]) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let input: String = steps.iter().map(|step| format!("{step}\n")).collect();
    let answers = stream(home.path(), arguments, input.as_bytes());
    assert_eq!(answers.len(), steps.len());
    answers
}

/// A call of a session that fails with this output.
fn fails(who: &Value, id: &str, command: &str, output: &str) -> Vec<Value> {
    let mut call = json!({"type": "call", "id": id, "tool": "bash", "args": {"command": command}});
    let mut result = json!({"type": "result", "id": id, "ok": output.is_empty(), "output": output});
    for step in [&mut call, &mut result] {
        step.as_object_mut().unwrap().extend(who.as_object().unwrap().clone());
    }
    vec![call, result]
}

fn sessions(count: usize, project: impl Fn(usize) -> String, output: impl Fn(usize) -> String) -> Vec<Value> {
    let mut steps = Vec::new();
    for n in 1..=count {
        let ts = format!("2026-11-{n:02}T10:00:00Z");
        let who = json!({"session": format!("s{n}"), "project": project(n), "ts": ts});
        for id in ["1", "2"] {
            steps.extend(fails(&who, id, "make", &output(n)));
        }
    }
    steps
}

/// Steps of a group of four: the first call and its result, then the second.
fn ended(first: usize) -> Vec<(usize, &'static str)> {
    let mut expected = vec![(first + 3, "nudge"), (first + 7, "nudge")];
    for group in [first + 8, first + 12] {
        expected.extend([(group + 1, "nudge"), (group + 2, "block")]);
    }
    for group in (first + 16..first + 36).step_by(4) {
        expected.extend([(group + 1, "nudge"), (group + 2, "stop"), (group + 3, "stop")]);
    }
    expected
}

#[test]
fn the_same_failure_in_twelve_sessions_is_nudged_refused_and_ended() {
    let steps = sessions(12, |_| "p".to_owned(), |_| "ld: cannot find -lssl".to_owned());
    let answers = answers(&[], &steps);
    assert_eq!(acts(&answers), ended(12));
    let message = answers[15]["message"].as_str().unwrap();
    assert!(
        message.contains("`make` failed here twice, the same way as in 3 earlier sessions of this project, since 2026-11-01"),
        "{message}"
    );
}

#[test]
fn the_same_failure_in_twelve_subagents_is_nudged_refused_and_ended() {
    for project in [Value::Null, json!("p")] {
        let mut steps = Vec::new();
        for n in 1..=12 {
            let who = json!({"session": "s1", "agent": format!("a{n}"), "project": project});
            steps.extend(fails(&who, "1", "make", "ld: cannot find -lssl"));
            steps.extend(fails(&who, "2", "make", "ld: cannot find -lssl"));
        }
        let answers = answers(&[], &steps);
        assert_eq!(acts(&answers), ended(12), "{project}");
        let message = answers[15]["message"].as_str().unwrap();
        assert!(message.contains("the same way as for 3 other agents of this session"), "{message}");
    }
}

/// A run that gets other things done isn't ended because of one call that never works.
#[test]
fn a_call_beside_other_work_is_only_refused() {
    let mut steps = sessions(10, |_| "p".to_owned(), |_| "ld: cannot find -lssl".to_owned());
    let who = json!({"session": "other", "project": "p", "ts": "2026-11-11T10:00:00Z"});
    let begun = steps.len();
    steps.extend(fails(&who, "0", "cat Makefile", ""));
    for id in ["1", "2"] {
        steps.extend(fails(&who, id, "make", "ld: cannot find -lssl"));
    }
    let answers = answers(&[], &steps);
    assert_eq!(acts(&answers[begun..]), [(3, "nudge"), (4, "block")]);
}

#[test]
fn honest_failures_are_left_alone() {
    // Another output in every session, another project, and a probe once per session.
    let names = ["ab", "cd", "ef", "gh", "ij", "kl", "mn", "op", "qr", "st", "uv", "wx"];
    let differs = sessions(12, |_| "p".to_owned(), |n| format!("FAIL {}: expected true", names[n - 1]));
    assert_eq!(acts(&answers(&[], &differs)), []);
    let projects = sessions(12, |n| format!("p{n}"), |_| "ld: cannot find -lssl".to_owned());
    assert_eq!(acts(&answers(&[], &projects)), []);
    let probes: Vec<Value> = (0..12)
        .flat_map(|n| {
            fails(&json!({"session": format!("s{n}"), "project": "p"}), "1", "uv --version", "uv: not found")
        })
        .collect();
    assert_eq!(acts(&answers(&[], &probes)), []);
    // A success, a change in between, and two weeks.
    let known = || sessions(6, |_| "p".to_owned(), |_| "ld: cannot find -lssl".to_owned());
    let then = |steps: Vec<Value>| {
        let mut all = known();
        let begun = all.len();
        all.extend(steps);
        let answers = answers(&[], &all);
        acts(&answers[begun..]).len()
    };
    let who = |ts: &str| json!({"session": "late", "project": "p", "ts": ts});
    let twice = |ts: &str| {
        [
            fails(&who(ts), "1", "make", "ld: cannot find -lssl"),
            fails(&who(ts), "2", "make", "ld: cannot find -lssl"),
        ]
        .concat()
    };
    assert_eq!(then(twice("2026-11-07T10:00:00Z")), 2, "the failure is known");
    let fixed = fails(&json!({"session": "fix", "project": "p"}), "1", "make", "");
    assert_eq!(then([fixed, twice("2026-11-07T10:00:00Z")].concat()), 0, "a success");
    assert_eq!(then(twice("2026-11-21T10:00:00Z")), 0, "two weeks later");
    let mut changed = fails(&who("2026-11-07T10:00:00Z"), "1", "make", "ld: cannot find -lssl");
    changed.extend(fails(&who("2026-11-07T10:00:01Z"), "2", "apt-get install libssl-dev", ""));
    changed.extend(fails(&who("2026-11-07T10:00:02Z"), "3", "make", "ld: cannot find -lssl"));
    assert_eq!(
        then(changed),
        1,
        "the first failure is reported, and the next attempt after a change isn't refused"
    );
}

/// One call of a hook; returns its reply.
fn hook(home: &Path, folder: &Path, session: &str, event: &str, id: &str, more: &Value) -> Value {
    let mut all = json!({"session_id": session, "cwd": folder, "transcript_path": "", "hook_event_name": event,
        "permission_mode": "bypassPermissions", "tool_name": "Bash", "tool_input": {"command": "make check"},
        "tool_use_id": id});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut command = deloop(home);
    command.args(["hook", "claude-code", "--profile", "default", "--mode", "enforce"]);
    let output = run(&mut command, all.to_string().as_bytes());
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
    if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).unwrap() }
}

/// Two attempts of a session, as its hook sees them: what came of the second one.
fn two_attempts(home: &Path, folder: &Path, session: &str) -> &'static str {
    let mut told = false;
    for id in ["1", "2"] {
        let before = hook(home, folder, session, "PreToolUse", id, &json!({}));
        if before["continue"] == false {
            return "ended";
        }
        if before["hookSpecificOutput"]["permissionDecision"] == "deny" {
            return "refused";
        }
        let error = json!({"error": "Exit code 2\nld: cannot find -lssl"});
        let after = hook(home, folder, session, "PostToolUseFailure", id, &error);
        let context = after["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
        told |= context.contains("earlier sessions of this project, since 20");
    }
    if told { "nudged" } else { "silent" }
}

#[test]
fn twelve_sessions_through_the_hook_and_the_commands_that_show_and_clear_it() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let folder = home.join("repository");
    std::fs::create_dir_all(folder.join(".git")).unwrap();
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let seen: Vec<&str> = (1..=12)
        .map(|n| {
            let folder = if n % 2 == 0 { folder.clone() } else { folder.join("src") };
            two_attempts(home, &folder, &format!("s{n}"))
        })
        .collect();
    let mut expected = vec!["silent"; 3];
    expected.extend(["nudged"; 2]);
    expected.extend(["refused"; 2]);
    expected.extend(["ended"; 5]);
    assert_eq!(seen, expected);
    assert_eq!(two_attempts(home, home, "elsewhere"), "silent", "another folder is another project");

    let prints = |arguments: &[&str]| {
        let output = run(deloop(home).args(arguments), b"");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let state = prints(&["state", "s3"]);
    assert!(
        state.contains(
            "Known failures of the project: 1 (the most frequent one: 12 sessions, 12 agents, since 20"
        ),
        "{state}"
    );
    let log = prints(&["log", "--json", "--session", "s6"]);
    let id = lines(log.as_bytes())[1]["id"].as_str().unwrap().to_owned();
    let told = prints(&["explain", &id]);
    assert!(
        told.contains("known-failure: `make check` failed here, the same way as in 5 earlier sessions"),
        "{told}"
    );

    for n in 5..=12 {
        prints(&["purge", &format!("s{n}")]);
    }
    assert_eq!(two_attempts(home, &folder, "s13"), "silent");
    let purged = prints(&["purge", "--yes"]);
    assert!(purged.contains("2 projects with known failures"), "{purged}");
    assert_eq!(prints(&["purge", "--yes"]).lines().count(), 1, "nothing is left");
}

/// A person who calls the decision wrong clears it for all sessions of the project.
#[test]
fn a_failure_that_a_person_calls_wrong_is_forgotten() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let seen: Vec<&str> = (1..=6).map(|n| two_attempts(home, home, &format!("s{n}"))).collect();
    assert_eq!(seen[5], "refused");
    let log = run(deloop(home).args(["log", "--json", "--session", "s6"]), b"");
    let id = lines(&log.stdout)[1]["id"].as_str().unwrap().to_owned();
    let wrong = run(deloop(home).args(["wrong", &id, "--was", "legit"]), b"");
    assert_eq!(wrong.status.code(), Some(0), "{}", said(&wrong));
    // It takes effect with the session's next event.
    hook(home, home, "s6", "PreToolUse", "3", &json!({}));
    assert_eq!(two_attempts(home, home, "s7"), "silent");
}
