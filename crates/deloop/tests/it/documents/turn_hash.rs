//! The turn-hash document: its settings, and the nudge in the conversation before the next turn, in every live path.

use std::path::Path;
use std::process::Command;

use deloop_formats::hooks::{HOOK_AGENTS, hook_agent};
use serde_json::{Value, json};

use super::{text, user_config};
use crate::binary::{deloop, lines, run, said, stream};

const DEFAULT: &str = "You are in a repetitive loop. Try a different approach.";
/// The document's own example.
const EXAMPLE: &str = "agent:
  recursionLimit: 1000
  autoContinueLimit: 1000
  nodeTimeout: 600000
  turnHashWindow: 20
  turnBufferMax: 64
  loopMsg: \"You are in a repetitive loop. Try a different approach.\"
  loopLimit: 5
";

fn turns(words: &[&str]) -> Vec<Value> {
    words.iter().map(|text| json!({"type": "turn", "text": text})).collect()
}

/// The answers to these steps with this YAML and this environment.
fn answers(yaml: &str, environment: &[(&str, &str)], steps: &[Value]) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("config.yaml"), yaml).unwrap();
    let mut command = deloop(home.path());
    command.args(["stream", "-p", "turn-hash", "--config", "config.yaml"]);
    let output = run(command.envs(environment.iter().copied()), &text(steps));
    assert_eq!(said(&output), "", "{yaml}");
    lines(&output.stdout)
}

fn nudges(answers: &[Value]) -> usize {
    answers.iter().filter(|answer| answer["action"] == "nudge").count()
}

fn found(answers: &[Value]) -> usize {
    answers.iter().filter(|answer| answer["findings"] != json!([])).count()
}

/// Keys of the other program that owns the file are no mistake, and an empty block has defaults.
#[test]
fn the_documents_yaml_works_as_it_stands() {
    for yaml in [EXAMPLE, "", "agent: {}\n", "agent:\n  recursionLimit: 7\n"] {
        let answers = answers(yaml, &[], &turns(&["again"; 8]));
        assert_eq!((nudges(&answers), found(&answers)), (5, 7), "found after the limit as well: {yaml}");
        for answer in &answers[1..6] {
            assert_eq!((&answer["message"], &answer["role"]), (&json!(DEFAULT), &json!("user")), "{yaml}");
        }
        let mut far: Vec<String> = (0..19).map(|n| format!("turn {n}")).collect();
        far.push("turn 0".to_owned());
        let far: Vec<Value> = far.iter().map(|text| json!({"type": "turn", "text": text})).collect();
        assert_eq!(nudges(&self::answers(yaml, &[], &far)), 1, "19 turns back");
    }
}

/// `agent.loopMsg` is AGENT_LOOP_MSG, and so on: each variable wins over its key.
#[test]
fn each_key_has_a_variable_that_wins() {
    let again = turns(&["again"; 9]);
    let apart = turns(&["a", "b", "a"]);
    let call = |n: u32| json!({"tool": "ls", "args": {"path": n}});
    let calls: Vec<Value> =
        (0..2).map(|n| json!({"type": "turn", "text": "Look.", "calls": [call(n)]})).collect();
    for (key, variable, value, other, steps, expected) in [
        ("loopLimit", "AGENT_LOOP_LIMIT", "2", "3", &again, [2, 3]),
        ("turnHashWindow", "AGENT_TURN_HASH_WINDOW", "1", "2", &apart, [0, 1]),
        ("turnBufferMax", "AGENT_TURN_BUFFER_MAX", "1", "2", &calls, [1, 0]),
    ] {
        let yaml = format!("agent:\n  {key}: {value}\n");
        let counts = [&[][..], &[(variable, other)]].map(|env| nudges(&answers(&yaml, env, steps)));
        assert_eq!(counts, expected, "{key}");
        assert_eq!(nudges(&answers("", &[(variable, value)], steps)), expected[0], "{variable} alone");
    }
    let yaml = "agent:\n  loopMsg: from the file\n";
    let message = |env: &[(&str, &str)]| answers(yaml, env, &again)[1]["message"].clone();
    assert_eq!(message(&[]), "from the file");
    assert_eq!(message(&[("AGENT_LOOP_MSG", "from the environment")]), "from the environment");
    // The container key is dropped: what remains is no variable of deloop's.
    assert_eq!(message(&[("LOOP_MSG", "x"), ("AGENT_AGENT_LOOP_MSG", "x")]), "from the file");
}

/// A maximum of none is none, wherever it is set.
#[test]
fn a_limit_of_zero_sends_nothing() {
    let again = turns(&["again"; 4]);
    for (yaml, environment, expected) in [
        ("agent:\n  loopLimit: 0\n", None, 0),
        (EXAMPLE, Some("0"), 0),
        ("agent:\n  loopLimit: 0\n", Some("2"), 2),
    ] {
        let environment: Vec<(&str, &str)> =
            environment.map(|limit| ("AGENT_LOOP_LIMIT", limit)).into_iter().collect();
        let answers = answers(yaml, &environment, &again);
        assert_eq!((nudges(&answers), found(&answers)), (expected, 3), "{yaml} {environment:?}");
    }
}

#[test]
fn a_message_that_looks_like_something_else_stays_text() {
    let again = turns(&["again"; 2]);
    for words in ["42", "007", "1.50", "1e3", "true", "null", "{count}", "[]", "a: b # c"] {
        let told = answers("", &[("AGENT_LOOP_MSG", words)], &again)[1]["message"].clone();
        assert_eq!(told, words, "environment");
        let yaml = format!("agent:\n  loopMsg: {}\n", json!(words));
        assert_eq!(answers(&yaml, &[], &again)[1]["message"], words, "quoted");
    }
    for words in ["42", "007", "1.50", "1e3", "0x1F", "-0", "yes", "true", "2026-01-01", "a b"] {
        let yaml = format!("agent:\n  loopMsg: {words}\n  loopLimit: 5\n");
        assert_eq!(answers(&yaml, &[], &again)[1]["message"], words, "without quotes");
    }
}

/// What is empty counts as omitted: a nudge always says something.
#[test]
fn an_empty_setting_is_an_omitted_one() {
    let again = turns(&["again"; 9]);
    for yaml in ["agent:\n", "agent:\n  loopMsg:\n", "agent:\n  loopMsg: ''\n", "agent:\n  loopMsg: null\n"] {
        for environment in [&[][..], &[("AGENT_LOOP_MSG", ""), ("AGENT_LOOP_LIMIT", "")]] {
            let answers = answers(yaml, environment, &again);
            assert_eq!((&answers[1]["message"], nudges(&answers)), (&json!(DEFAULT), 5), "{yaml}");
        }
    }
}

/// Flag over environment over project over user over profile, key by key.
#[test]
fn the_nearest_source_of_a_setting_wins() {
    let user = "profile: turn-hash\nagent:\n  loopMsg: user\n  loopLimit: 1\n";
    let project = "agent:\n  loopMsg: project\n";
    let variable = Some(("AGENT_LOOP_MSG", "environment"));
    for (user, project, variable, flags, message, times) in [
        (None, None, None, &["-p", "turn-hash"][..], DEFAULT, 5),
        (Some(user), None, None, &[], "user", 1),
        (Some(user), Some(project), None, &[], "[deloop, from this project's deloop.yaml] project", 1),
        (Some(user), Some(project), variable, &[], "environment", 1),
        (Some(user), Some(project), variable, &["--config", "named.yaml"], "environment", 2),
        (Some(user), Some(project), None, &["--config", "named.yaml"], "named", 2),
        (Some("profile: doom-loop\n"), None, variable, &["-p", "turn-hash"], "environment", 5),
    ] {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        std::fs::write(
            home.join("named.yaml"),
            "profile: turn-hash\nagent:\n  loopMsg: named\n  loopLimit: 2\n",
        )
        .unwrap();
        if let Some(text) = user {
            user_config(home, "deloop.yaml", text);
        }
        if let Some(text) = project {
            crate::binary::trusted_config(home, "deloop.yaml", text);
        }
        let mut command = deloop(home);
        let output = run(command.arg("stream").args(flags).envs(variable), &text(&turns(&["again"; 9])));
        let answers = lines(&output.stdout);
        assert_eq!((&answers[1]["message"], nudges(&answers)), (&json!(message), times), "{flags:?}");
    }
}

/// The document leaves the role open: a user message, unless the harness can only place another.
#[test]
fn the_nudge_is_a_user_message_unless_the_harness_says_otherwise() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, role) in [(&[][..], "user"), (&["--deliver", "system"], "system")] {
        let arguments: Vec<&str> = ["-p", "turn-hash"].into_iter().chain(arguments.iter().copied()).collect();
        let answers = stream(home.path(), &arguments, &text(&turns(&["again", "again"])));
        assert_eq!((&answers[1]["role"], &answers[1]["message"]), (&json!(role), &json!(DEFAULT)));
    }
}

/// No repetition context: the words are the same whatever repeated, and however often.
#[test]
fn the_nudge_says_nothing_of_what_repeated() {
    let call = json!({"type": "turn", "text": "Look.", "calls": [{"tool": "ls", "args": {"path": "/etc"}}]});
    for answer in &answers("", &[], &vec![call; 6])[1..] {
        assert_eq!(answer["message"], DEFAULT);
    }
}

/// Where a hook's reply puts text that the model reads.
fn told(reply: &Value) -> Option<&str> {
    let places = ["/hookSpecificOutput/additionalContext", "/additionalContext", "/additional_context"];
    places.iter().find_map(|place| reply.pointer(place)).and_then(Value::as_str)
}

fn send(home: &Path, agent: &str, event: &Value) -> Value {
    let mut command = deloop(home);
    command.args(["hook", agent, "--profile", "turn-hash"]).env("AGENT_LOOP_MSG", "{try} another way");
    let output = run(&mut command, event.to_string().as_bytes());
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{agent}");
    if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).unwrap() }
}

/// One lap is a turn with one call, up to the moment at which the agent asks the model again: whichever event of the
/// lap carries the nudge, the model has it in its next request.
#[test]
fn every_agent_is_told_before_its_next_request() {
    let expected = [
        ("claude-code", "PreToolUse"),
        ("codex", "PreToolUse"),
        ("gemini-cli", "AfterTool"),
        ("copilot-cli", "PreToolUse"),
        ("qwen-code", "PostToolUseFailure"),
        ("cursor", "postToolUse"),
    ];
    assert_eq!(HOOK_AGENTS.len(), expected.len());
    for (name, carrier) in expected {
        let agent = hook_agent(name).unwrap();
        let home = tempfile::tempdir().unwrap();
        let mut seen: Vec<(u32, String)> = Vec::new();
        for lap in 1..=7 {
            for event in agent.rehearsal("s1", lap) {
                if let Some(words) = told(&send(home.path(), name, &event)) {
                    assert_eq!(words, "{try} another way", "{name}");
                    seen.push((lap, event["hook_event_name"].as_str().unwrap_or_default().to_owned()));
                }
            }
        }
        let five: Vec<(u32, String)> = (2..=6).map(|lap| (lap, carrier.to_owned())).collect();
        assert_eq!(seen, five, "{name}: once in each lap that repeats, five times");
    }
}

/// A turn without calls ends the agent's work: its next turn begins with a prompt, which carries the nudge.
#[test]
fn a_turn_without_calls_is_told_with_the_next_prompt() {
    for (name, prompt, end) in [
        ("claude-code", "UserPromptSubmit", "Stop"),
        ("codex", "UserPromptSubmit", "Stop"),
        ("gemini-cli", "BeforeAgent", "AfterAgent"),
        ("qwen-code", "UserPromptSubmit", "Stop"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let mut seen = Vec::new();
        for lap in 1..=4 {
            let asked = json!({"session_id": "s1", "hook_event_name": prompt, "prompt": format!("Step {lap}"),
                "prompt_id": format!("p{lap}")});
            let said = json!({"session_id": "s1", "hook_event_name": end, "prompt_response": "I am done.",
                "last_assistant_message": "I am done."});
            seen.push(told(&send(home.path(), name, &asked)).map(str::to_owned));
            assert_eq!(told(&send(home.path(), name, &said)), None, "{name}: too late for this turn");
        }
        let words = Some("{try} another way".to_owned());
        assert_eq!(seen, [None, None, words.clone(), words], "{name}");
    }
}

/// Copilot CLI's prompts carry nothing: there the nudge waits for the next call.
#[test]
fn copilot_is_told_with_the_next_call() {
    let home = tempfile::tempdir().unwrap();
    let event = |name: &str, more: Value| {
        let mut event = json!({"session_id": "s1", "hook_event_name": name});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        told(&send(home.path(), "copilot-cli", &event)).map(str::to_owned)
    };
    for _ in 0..2 {
        assert_eq!(event("UserPromptSubmit", json!({"prompt": "Go on"})), None);
        assert_eq!(event("Stop", json!({"last_assistant_message": "I am done."})), None);
    }
    assert_eq!(event("UserPromptSubmit", json!({"prompt": "Go on"})), None);
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}});
    assert_eq!(event("PreToolUse", call.clone()).as_deref(), Some("{try} another way"));
    assert_eq!(event("PostToolUse", call), None, "once");
}

/// opencode's plugin appends the nudge to the result of the call, which the model reads next. Without node there is
/// nothing to run it.
#[test]
fn the_opencode_plugin_tells_with_the_result() {
    if Command::new("node").arg("--version").output().is_err() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    user_config(home, "deloop.toml", "profile = \"turn-hash\"");
    std::fs::write(home.join("plugin.mjs"), include_str!("../../../../../plugins/opencode/deloop.js"))
        .unwrap();
    std::fs::write(
        home.join("agent.mjs"),
        r#"import { Deloop } from "./plugin.mjs"
const client = { session: { abort: async () => {} }, tui: { showToast: async () => {} } }
const plugin = await Deloop({ client })
for (let n = 0; n < 7; n++) {
  const call = { tool: "bash", sessionID: "s1", callID: `c${n}` }
  await plugin["tool.execute.before"](call, { args: { command: "ls" } })
  const result = { output: "a.txt", metadata: { exit: 0 } }
  await plugin["tool.execute.after"](call, result)
  console.log(JSON.stringify(result.output))
}
process.exit(0)
"#,
    )
    .unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_deloop")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([program.to_owned()].into_iter().chain(std::env::split_paths(&path)));
    let mut node = Command::new("node");
    node.arg("agent.mjs").current_dir(home).env("HOME", home).env("PATH", path.unwrap());
    node.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME").env_remove("DELOOP");
    let output = run(&mut node, b"");
    let results: Vec<Value> = lines(&output.stdout);
    let nudged = json!(format!("a.txt\n\n{DEFAULT}"));
    let plain = json!("a.txt");
    let expected = [&plain, &nudged, &nudged, &nudged, &nudged, &nudged, &plain];
    assert_eq!(results.iter().collect::<Vec<_>>(), expected, "{}", said(&output));
}

/// The document's callback is called for every duplicate, also after the last nudge, and its TUI shows the same words each
/// time.
#[test]
fn every_duplicate_is_an_event_and_a_line_for_the_person() {
    let home = tempfile::tempdir().unwrap();
    let words = ["a", "a", "a", "a", "a", "a", "b", "b"];
    let arguments = ["stream", "-p", "turn-hash", "--events", "e.jsonl"];
    let answers = lines(&run(deloop(home.path()).args(arguments), &text(&turns(&words))).stdout);
    for (n, answer) in answers.iter().enumerate() {
        let shown = if n == 0 || n == 6 { Value::Null } else { json!("You're looping.") };
        assert_eq!(answer["user_message"], shown, "{n}: {answer}");
    }
    let events = lines(&std::fs::read(home.path().join("e.jsonl")).unwrap());
    let seen: Vec<(u64, &str)> = events
        .iter()
        .map(|event| (event["step"].as_u64().unwrap(), event["event"].as_str().unwrap()))
        .collect();
    let mut expected: Vec<(u64, &str)> =
        (1..=5).flat_map(|step| [(step, "loop_detected"), (step, "nudge")]).collect();
    expected.push((7, "loop_detected"));
    assert_eq!(seen, expected);
    let shadow = ["-p", "turn-hash", "--mode", "shadow"];
    let answers = stream(home.path(), &shadow, &text(&turns(&words)));
    assert!(answers.iter().all(|answer| answer["user_message"].is_null()), "{answers:?}");
}
