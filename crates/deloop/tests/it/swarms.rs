//! Swarms of running sessions: named by the environment or the configuration, over many processes.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said, trusted_config};

fn environment<'a>(command: &'a mut Command, swarm: Option<&str>) -> &'a mut Command {
    match swarm {
        Some(name) => command.env("DELOOP_SWARM", name),
        None => command,
    }
}

/// One call of a session's hook, in a process of its own; returns what the agent was told.
fn hook(home: &Path, folder: &Path, swarm: Option<&str>, session: &str, more: &Value) -> String {
    let mut event = json!({
        "session_id": session, "cwd": "/tmp", "transcript_path": "", "hook_event_name": "PreToolUse",
        "permission_mode": "bypassPermissions", "tool_name": "Read", "tool_input": {"file_path": "plan.md"},
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut command = deloop(folder);
    command.env("HOME", home).args(["hook", "claude-code", "--profile", "doom-loop"]);
    let output = run(environment(&mut command, swarm), event.to_string().as_bytes());
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

/// The same read by `workers` sessions in turn, with other reads in between; how many of them were told of the swarm.
fn reads(home: &Path, folder: &Path, swarm: Option<&str>, workers: usize, times: usize) -> usize {
    let read = |n: usize| {
        let session = format!("w{}", n % workers);
        let id = |kind: &str| json!({"tool_use_id": format!("{kind}{n} {swarm:?}")});
        let told = hook(home, folder, swarm, &session, &id("a"));
        let mut other = id("b");
        other["tool_input"] = json!({"file_path": format!("{n}.rs")});
        hook(home, folder, None, &session, &other);
        told.contains("GLOBAL DOOM LOOP")
    };
    (0..times).filter(|n| read(*n)).count()
}

fn prints(home: &Path, arguments: &[&str]) -> String {
    let output = run(deloop(home).args(arguments), b"");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn shown(home: &Path, swarm: &str) -> Value {
    serde_json::from_str(&prints(home, &["swarm", "show", swarm, "--json"])).unwrap()
}

#[test]
fn the_environment_names_the_swarm_of_hooks() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert!(prints(home, &["swarm"]).starts_with("No swarms. Set DELOOP_SWARM"));
    assert_eq!(reads(home, home, Some("night\u{1b}[2Jly"), 3, 11), 2);
    assert_eq!(reads(home, home, Some("other"), 3, 3), 0, "another swarm has its own counts");

    let list = prints(home, &["swarm"]);
    assert!(
        list.contains("11 calls by 3 workers; most called: Read(plan.md) (11 calls by 3 workers)"),
        "{list}"
    );
    assert!(!list.contains('\u{1b}'), "{list}");
    let state = shown(home, "night\u{1b}[2Jly");
    let first = &state["fingerprints"][0];
    assert_eq!((&first["totalCalls"], &first["workers"]), (&json!(11), &json!(["w0", "w1", "w2"])));
    assert_eq!((&first["tool"], &first["call"]), (&json!("Read"), &json!("Read(plan.md)")));
    assert_eq!(first["fingerprint"].as_str().unwrap().len(), 16);
    let text = prints(home, &["swarm", "show", "other"]);
    assert_eq!(
        text,
        "Swarm other: 3 calls by 3 workers. It remembers 200 calls.\n  Read(plan.md) (3 calls by 3 workers): w0, w1, w2\n"
    );

    assert_eq!(prints(home, &["swarm", "clear", "other"]), "Cleared swarm other.\n");
    let gone = run(deloop(home).args(["swarm", "show", "other"]), b"");
    assert_eq!(gone.status.code(), Some(2));
    assert!(said(&gone).contains("no swarm `other`; `deloop swarm` lists the swarms"));
}

#[test]
fn many_processes_at_once_lose_no_call() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                for n in 0..5 {
                    let id = json!({"tool_use_id": format!("{n}"), "tool_input": {"file_path": "plan.md", "n": n}});
                    hook(home, home, Some("s"), &format!("w{worker}"), &id);
                }
            });
        }
    });
    let first = &shown(home, "s")["fingerprints"][0];
    assert_eq!((&first["totalCalls"], first["workers"].as_array().unwrap().len()), (&json!(20), 4));
}

/// What the opencode plugin starts, one process per window.
#[test]
fn the_environment_names_the_swarm_of_a_plugin() {
    let home = tempfile::tempdir().unwrap();
    let mut told = 0;
    for worker in 0..4 {
        let steps: String = (0..3)
            .flat_map(|n| {
                let step = |id: &str, tool: &str, path: &str| json!({"type": "call", "session": format!("w{worker}"), "id": format!("{id}{n}"), "tool": tool, "args": {"path": path}});
                [step("a", "read", "plan.md"), step("b", "read", &format!("{n}.rs"))].map(|s| format!("{s}\n"))
            })
            .collect();
        let mut command = deloop(home.path());
        command.args(["stream", "--agent", "opencode", "-p", "doom-loop"]).env("DELOOP_SWARM", "w");
        let output = run(&mut command, format!("{steps}{{\"type\":\"state\",\"swarm\":\"w\"}}\n").as_bytes());
        let answers = lines(&output.stdout);
        told +=
            answers.iter().filter(|a| a["message"].as_str().is_some_and(|m| m.contains("GLOBAL"))).count();
        let state = &answers.last().unwrap()["swarm_state"];
        assert_eq!((&state["workers"], &state["calls"]), (&json!(worker + 1), &json!(6 * (worker + 1))));
    }
    assert_eq!(told, 3, "the tenth, eleventh and twelfth call");
    let end = run(
        deloop(home.path()).args(["stream", "--agent", "opencode"]),
        b"{\"type\":\"swarm_end\",\"swarm\":\"w\"}\n",
    );
    assert_eq!(lines(&end.stdout)[0]["action"], "continue");
    assert!(prints(home.path(), &["swarm"]).starts_with("No swarms."));
}

#[test]
fn a_configuration_names_a_swarm_and_the_environment_wins() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    std::fs::create_dir_all(home.join(".config/deloop")).unwrap();
    std::fs::write(home.join(".config/deloop/deloop.toml"), "[swarm]\nname = \"mine\"\n").unwrap();
    hook(home, home, None, "a", &json!({}));
    hook(home, home, Some("env"), "a", &json!({}));
    let list = prints(home, &["swarm"]);
    assert!(
        list.contains("env: 1 call by 1 worker;") && list.contains("mine: 1 call by 1 worker;"),
        "{list}"
    );
}

#[test]
fn a_project_names_swarms_of_its_own_only() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for project in ["one", "two"] {
        let folder = home.join(project);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("deloop.toml"), "[swarm]\nname = \"shared\"\n").unwrap();
        let trust = run(deloop(&folder).arg("trust").env("HOME", home), b"");
        assert_eq!(trust.status.code(), Some(0), "{}", said(&trust));
        hook(home, &folder, None, project, &json!({}));
    }
    hook(home, home, Some("shared"), "a", &json!({}));
    let list = prints(home, &["swarm"]);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split(": 1 call").next()).collect();
    assert_eq!(names.len(), 3, "{list}");
    for (name, folder) in names.iter().filter(|name| name.starts_with("project:")).zip(["one", "two"]) {
        assert!(
            name.ends_with("/shared") && (name.contains("/one/") || name.contains("/two/")),
            "{folder} {name}"
        );
    }
    assert!(names.contains(&"shared"));
}

#[test]
fn subagents_of_a_session_form_a_swarm_until_the_session_ends() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    trusted_config(home, "deloop.toml", "[swarm]\nsubagents = true\n");
    let mut told = 0;
    for n in 0..11 {
        let by = json!({"agent_id": format!("sub{}", n % 3), "tool_use_id": format!("a{n}")});
        let reply = hook(home, home, None, "s1", &by);
        told += usize::from(reply.contains("GLOBAL DOOM LOOP"));
        let mut other = by.clone();
        other["tool_use_id"] = json!(format!("b{n}"));
        other["tool_input"] = json!({"file_path": format!("{n}.rs")});
        hook(home, home, None, "s1", &other);
    }
    hook(home, home, None, "s1", &json!({"tool_use_id": "main"}));
    assert_eq!(told, 2);
    let first = &shown(home, "session:s1")["fingerprints"][0];
    assert_eq!(
        (&first["totalCalls"], &first["workers"]),
        (&json!(11), &json!(["s1/sub0", "s1/sub1", "s1/sub2"])),
        "the main agent is no subagent"
    );
    hook(home, home, None, "s1", &json!({"hook_event_name": "SessionEnd"}));
    assert!(prints(home, &["swarm"]).starts_with("No swarms."));

    hook(home, home, None, "s2", &json!({"agent_id": "sub", "tool_use_id": "c"}));
    hook(home, home, Some("named"), "s2", &json!({"tool_use_id": "d"}));
    prints(home, &["purge", "s2"]);
    let list = prints(home, &["swarm"]);
    assert!(list.starts_with("named: ") && list.lines().count() == 1, "{list}");
    let purge = prints(home, &["purge", "--yes"]);
    assert!(purge.contains("  1 swarm\n"), "{purge}");
    assert!(prints(home, &["swarm"]).starts_with("No swarms."));
}

#[test]
fn a_mistake_in_the_block_is_named() {
    let home = tempfile::tempdir().unwrap();
    for (text, why) in [
        ("[swarm]\nnames = \"x\"\n", "did you mean `name`"),
        ("[swarm]\nname = 3\n", "`swarm.name`: expected a text, found 3"),
    ] {
        let config = home.path().join("own.toml");
        std::fs::write(&config, text).unwrap();
        let output = run(deloop(home.path()).args(["config", "--config"]).arg(&config), b"");
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(why), "{}", said(&output));
    }
}
