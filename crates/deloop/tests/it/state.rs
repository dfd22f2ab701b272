//! What deloop knows of a session and of a swarm: in a stream, and with `deloop state`.

use deloop::{Action, Guard, Millis, Profile, Step};
use serde_json::{Value, json};

use crate::agent_hooks::Agent;
use crate::binary::{deloop, lines, run, said, stream};

fn call(n: u64) -> Value {
    json!({"type": "call", "session": "s1", "tool": "bash", "args": {"command": "make"}, "ts": n * 1000})
}

fn input(steps: &[Value]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}

#[test]
fn a_state_step_is_answered_with_the_loop_detection_state_and_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let ask = json!({"type": "state", "session": "s1"});
    let mut steps = vec![ask.clone()];
    for n in 1..=4 {
        steps.extend([call(n), ask.clone()]);
    }
    let other = json!({"type": "call", "session": "s1", "tool": "read", "args": {"path": "a"}, "ts": 9000});
    steps.extend([other, ask.clone(), json!({"type": "end", "session": "s1"}), ask.clone(), call(10), ask]);
    let answers = stream(home.path(), &["-p", "doom-loop"], input(&steps).as_bytes());
    assert_eq!(answers.len(), steps.len(), "every line gets an answer");
    let states: Vec<&Value> =
        answers.iter().step_by(2).map(|answer| &answer["loop_detection_state"]).collect();
    let state = |looping: bool, tool: &str, count: u64, warned: u64| {
        json!({"doomLoopDetected": looping, "lastTool": tool, "consecutiveCount": count, "threshold": 3,
            "fuzzyThreshold": 4, "lastWarningTime": warned})
    };
    let mut fresh = state(false, "", 0, 0);
    fresh["lastTool"] = Value::Null;
    assert_eq!(states[0], &fresh);
    assert_eq!(states[1], &state(false, "bash", 1, 0));
    assert_eq!(states[2], &state(false, "bash", 2, 0));
    assert_eq!(states[3], &state(true, "bash", 3, 3000));
    assert_eq!(states[4], &state(true, "bash", 4, 4000));
    assert_eq!(states[5], &state(false, "read", 1, 4000), "the last warning is remembered");
    assert_eq!(states[6], &fresh, "`end` clears it");
    assert_eq!(states[7], &state(false, "bash", 1, 0), "and the thresholds stay");
    assert_eq!(
        (&answers[8]["action"], &answers[8]["step"]),
        (&json!("continue"), &json!(4)),
        "it is no step"
    );
}

#[test]
fn the_thresholds_are_those_of_the_profile_and_shadow_mode_warns_nobody() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("own.toml");
    let text = "profile = \"doom-loop\"\nmode = \"shadow\"\n[detectors.repeated-call]\nat = 5\n[detectors.repeated-target]\nat = 2\n";
    std::fs::write(&config, text).unwrap();
    let steps = [call(1), call(2), call(3), json!({"type": "state", "session": "s1", "agent": null})];
    let answers = stream(home.path(), &["--config", config.to_str().unwrap()], input(&steps).as_bytes());
    let state = json!({"doomLoopDetected": true, "lastTool": "bash", "consecutiveCount": 3, "threshold": 5,
        "fuzzyThreshold": 2, "lastWarningTime": 0});
    assert_eq!(answers[3]["loop_detection_state"], state);
    let answers = stream(home.path(), &["-p", "default"], input(&steps).as_bytes());
    assert_eq!(answers[3]["loop_detection_state"], Value::Null, "`default` counts no calls in a row");
}

fn state(agent: &Agent, arguments: &[&str]) -> String {
    let output = run(deloop(agent.home.path()).arg("state").args(arguments), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command_shows_a_running_session() {
    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    let missing = run(deloop(agent.home.path()).args(["state", "s1"]), b"");
    assert_eq!(missing.status.code(), Some(2));
    assert!(said(&missing).contains("no session `s1`"));
    for _ in 0..4 {
        agent.before("make");
    }
    let subagent =
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "x1", "agent_id": "rev"});
    agent.event("PreToolUse", subagent);

    let text = state(&agent, &["s", "-p", "doom-loop"]);
    for line in [
        "Session s1:\n  Last tool: Bash\n  Calls in a row: 4, a loop (thresholds: 3 identical calls, 4 calls with the same target)\n  Last warning: 20",
        "  Ladder: repeated-call is at rung 2 of 3 (nudge, \"warning\")\n",
        "Session s1, subagent rev:\n  Last tool: Bash\n  Calls in a row: 1, not a loop",
        "  Last warning: never\n  Ladder: no rung reached\n  Stopped: no\n",
    ] {
        assert!(text.contains(line), "{line}\n\n{text}");
    }
    let json = lines(state(&agent, &["s1", "-p", "doom-loop", "--json"]).as_bytes());
    assert_eq!(json.len(), 2);
    assert_eq!((&json[0]["doomLoopDetected"], &json[0]["consecutiveCount"]), (&json!(true), &json!(4)));
    assert!(json[0]["lastWarningTime"].as_i64().unwrap() > 1_700_000_000_000);
    assert_eq!(json[0]["ladders"][0]["action"], "nudge");
    let one = lines(state(&agent, &["s1", "-p", "doom-loop", "--json", "--agent", "rev"]).as_bytes());
    assert_eq!((one.len(), &one[0]["agent"]), (1, &json!("rev")));

    let text = state(&agent, &["s1"]);
    assert!(text.contains("profile `default` doesn't count them"), "{text}");
}

#[test]
fn the_command_shows_rungs_and_stops_of_other_profiles() {
    let mut agent = Agent::new("claude-code", "signature", "enforce");
    agent.before("make");
    agent.before("make");
    let text = state(&agent, &["s1", "-p", "signature"]);
    assert!(text.contains("Ladder: call-cycle is at rung 1 of 3") && text.contains("Stopped: no"), "{text}");
    agent.before("make");
    agent.before("make");
    let text = state(&agent, &["s1", "-p", "signature"]);
    assert!(text.contains("Ladder: call-cycle is at rung 3 of 3 (stop"), "{text}");
    assert!(text.contains("Stopped: deloop stopped the"), "{text}");
}

#[test]
fn reset_clears_the_state_and_keeps_the_thresholds() {
    let guard = Guard::new(Profile::named("doom-loop").unwrap());
    let call = |second: i64| Step::call("s1", "bash", json!({"command": "make"})).at(Millis(second * 1000));
    for second in 1..=4 {
        guard.observe(&call(second));
    }
    let session = "s1".into();
    let before = guard.loop_detection_state(&session, None).unwrap();
    assert_eq!(
        (before.doom_loop_detected, before.consecutive_count, before.last_warning_time),
        (true, 4, 4000)
    );

    // A checkpoint keeps it.
    let json = serde_json::to_string(&guard.checkpoint(&session).unwrap()).unwrap();
    let other = Guard::new(Profile::named("doom-loop").unwrap());
    other.restore(&session, serde_json::from_str(&json).unwrap()).unwrap();
    assert_eq!(other.loop_detection_state(&session, None).as_ref(), Some(&before));

    guard.reset(&session);
    let fresh = guard.loop_detection_state(&session, None).unwrap();
    assert_eq!(
        (fresh.last_tool, fresh.consecutive_count, fresh.threshold, fresh.fuzzy_threshold),
        (None, 0, 3, 4)
    );
    guard.observe(&call(9));
    let after = guard.loop_detection_state(&session, None).unwrap();
    assert_eq!((after.doom_loop_detected, after.consecutive_count, after.last_warning_time), (false, 1, 0));
    assert_eq!((after.threshold, after.fuzzy_threshold), (3, 4));
    let nobody = guard.loop_detection_state(&session, Some("nobody")).unwrap();
    assert_eq!((nobody.last_tool, nobody.consecutive_count), (None, 0));
}

/// Five hundred workers that each do something else, and one after the other the same dead end.
#[test]
fn a_swarm_of_five_hundred_is_told_and_its_state_survives_a_checkpoint() {
    let guard = Guard::new(Profile::named("doom-loop").unwrap());
    let step = |n: usize| {
        let path = if n.is_multiple_of(450) { "plan.md".to_owned() } else { format!("{n}.rs") };
        let session = format!("w{}", n % 500);
        Step::call(session.as_str(), "read", json!({ "path": path })).in_swarm("s")
    };
    let told: Vec<usize> = (0..=4500).filter(|n| guard.observe(&step(*n)).action == Action::Nudge).collect();
    assert_eq!(told, [4050, 4500], "the tenth and the eleventh, 450 calls apart");
    let state = guard.swarm_state("s").unwrap();
    assert_eq!((state.workers, state.window, state.calls), (500, 5000, 4501));
    let first = &state.fingerprints[0];
    assert_eq!((first.total_calls, first.worker_count), (11, 10));
    assert!(first.workers.contains(&"w450".to_owned()), "{:?}", first.workers);

    let json = serde_json::to_string(&guard.checkpoint_swarm("s", |_| false).unwrap()).unwrap();
    let other = Guard::new(Profile::named("doom-loop").unwrap());
    other.restore_swarm("s", serde_json::from_str(&json).unwrap()).unwrap();
    assert_eq!(other.swarm_state("s"), Some(state));

    guard.observe(&Step::swarm_end("w0", "s"));
    assert_eq!(guard.swarm_state("s"), None);
}

/// Seven calls in one process and four in the next are eleven.
#[test]
fn a_swarm_goes_on_in_the_next_process_with_a_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("check.json");
    let arguments = ["-p", "doom-loop", "--checkpoint", file.to_str().unwrap()];
    let step = |n: u64| json!({"type": "call", "session": format!("w{n}"), "swarm": "s", "tool": "read", "args": {"path": "a"}});
    stream(home.path(), &arguments, input(&(0..7).map(step).collect::<Vec<_>>()).as_bytes());
    let answers = stream(home.path(), &arguments, input(&(7..11).map(step).collect::<Vec<_>>()).as_bytes());
    let actions: Vec<&Value> = answers.iter().map(|answer| &answer["action"]).collect();
    assert_eq!(actions, ["continue", "continue", "nudge", "nudge"]);
}
