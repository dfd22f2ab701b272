//! What the hook reads from the transcript that the event names: what was said, what was used, once.

use std::io::Write;

use serde_json::{Value, json};

use crate::agent_hooks::Agent;
use crate::binary::{deloop, lines, run};
use crate::wait::wait_for;

/// A session whose agent writes its transcript while it runs.
struct Writer {
    agent: Agent,
    path: std::path::PathBuf,
    messages: u32,
}

impl Writer {
    fn new(profile: &'static str) -> Self {
        let agent = Agent::new("claude-code", profile, "enforce");
        let path = agent.home.path().join("s1.jsonl");
        std::fs::write(&path, "").unwrap();
        Self { agent, path, messages: 0 }
    }

    fn append(&self, text: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// One block of the current message, as Claude Code writes it: a record each, with the usage of the message.
    #[expect(clippy::needless_pass_by_value, reason = "a case reads better with its JSON in place")]
    fn block(&self, block: Value) -> String {
        let n = self.messages;
        let uuid =
            format!("u{n}-{}{}", block["type"].as_str().unwrap(), block["id"].as_str().unwrap_or_default());
        let message = json!({"id": format!("m{n}"), "role": "assistant", "model": "m", "content": [block],
            "usage": {"input_tokens": 10, "output_tokens": 5}});
        let record = json!({"type": "assistant", "uuid": uuid, "parentUuid": null, "isSidechain": false, "sessionId": "s1",
            "requestId": format!("r{n}"), "message": message});
        format!("{record}\n")
    }

    #[expect(clippy::needless_pass_by_value, reason = "a case reads better with its JSON in place")]
    fn event(&self, name: &str, more: Value) -> Value {
        let mut all = json!({"transcript_path": self.path});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.agent.event(name, all)
    }

    /// The model says something and makes a call.
    fn turn(&mut self, text: &str, command: &str) -> Value {
        self.messages += 1;
        let id = format!("t{}", self.messages);
        let input = json!({"command": command});
        self.append(&self.block(json!({"type": "text", "text": text})));
        self.append(&self.block(json!({"type": "tool_use", "id": id, "name": "Bash", "input": input})));
        let call = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": id});
        self.event("PreToolUse", call)
    }

    fn state(&self) -> Value {
        let text: String = self.agent.query("SELECT state FROM sessions");
        serde_json::from_str(&text).unwrap()
    }

    fn steps(&self) -> i64 {
        self.agent.query("SELECT steps FROM sessions")
    }
}

/// Turns that say nearly the same with different calls: only what was said shows that.
#[test]
fn what_was_said_counts() {
    let mut writer = Writer::new("turn-similarity");
    writer.event("UserPromptSubmit", json!({"prompt": "Fix it"}));
    let mut warned = Vec::new();
    for n in 0..7 {
        let reply =
            writer.turn("Let me look at the configuration file once more and see.", &format!("cat {n}"));
        warned.push(reply["continue"] == false);
    }
    assert_eq!(
        warned,
        [false, false, false, false, false, true, true],
        "the sixth such turn is the fifth similar one"
    );
    let kept = std::fs::read(writer.agent.state().join("deloop.db")).unwrap();
    let log = std::fs::read(writer.agent.state().join("deloop.db-wal")).unwrap();
    let kept = String::from_utf8_lossy(&kept).into_owned() + &String::from_utf8_lossy(&log);
    assert!(!kept.contains("configuration file"), "nothing of it is kept");
}

/// Claude Code calls its hook a moment before it writes the turn.
#[test]
fn words_that_come_a_moment_later_count() {
    let mut writer = Writer::new("turn-similarity");
    writer.agent.is_clock_stopped = true;
    let stopped = (1..=7).map(|n| {
        let (id, input) = (format!("t{n}"), json!({"command": format!("cat {n}")}));
        let record = |block: Value| {
            let message = json!({"id": format!("m{n}"), "role": "assistant", "content": [block]});
            json!({"type": "assistant", "uuid": format!("u{n}"), "sessionId": "s1", "message": message})
        };
        let words =
            record(json!({"type": "text", "text": "Let me look at the configuration file once more."}));
        let call = record(json!({"type": "tool_use", "id": id, "name": "Bash", "input": input}));
        let event = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": id});
        let waits = writer.agent.home.path().join("clock.seen");
        let _ = std::fs::remove_file(&waits);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                wait_for("the hook waits for the words", || waits.exists());
                writer.append(&format!("{words}\n{call}\n"));
            });
            writer.event("PreToolUse", event)["continue"] == false
        })
    });
    assert_eq!(stopped.collect::<Vec<_>>(), [false, false, false, false, false, true, true]);
}

#[test]
fn usage_is_counted_once_and_turns_are_not_counted_twice() {
    let mut writer = Writer::new("default");
    writer.event("UserPromptSubmit", json!({"prompt": "Fix it"}));
    for n in 0..3 {
        writer.turn("Let me look.", &format!("cat {n}"));
        let call = json!({"tool_name": "Bash", "tool_input": {"command": format!("cat {n}")}, "tool_use_id": format!("t{}", n + 1), "tool_response": "x"});
        writer.event("PostToolUse", call.clone());
        writer.event("PostToolBatch", json!({"tool_calls": [call]}));
    }
    // The prompt; and three times usage, call and result.
    assert_eq!(writer.steps(), 1 + 3 * 3);
    let state = writer.state();
    assert_eq!(state["agents"][0]["history"]["turns"], 3, "a turn with text and a call is one turn");
    assert_eq!(state["ledger"]["tokens"], 45, "three times 10 + 5");
}

/// A message of the model and the result of its call, as Claude Code writes them for a server that gives all messages one id.
fn message_of_one_id(n: u32, text: &str, request: Option<&str>) -> String {
    let record = |kind: &str, uuid: String, message: Value| {
        let mut record = json!({"type": kind, "uuid": uuid, "parentUuid": null, "isSidechain": false, "sessionId": "s1",
            "message": message});
        if let Some(request) = request {
            record["requestId"] = request.into();
        }
        format!("{record}\n")
    };
    let block = |block: Value| {
        json!({"id": "msg_1", "role": "assistant", "model": "m", "content": [block],
            "usage": {"input_tokens": 10, "output_tokens": 5}})
    };
    let input = json!({"command": format!("cat {n}")});
    let call = json!({"type": "tool_use", "id": format!("t{n}"), "name": "Bash", "input": input});
    record("assistant", format!("a{n}"), block(json!({"type": "text", "text": text})))
        + &record("assistant", format!("b{n}"), block(call))
}

fn result_of(n: u32) -> String {
    let result =
        json!({"type": "tool_result", "tool_use_id": format!("t{n}"), "content": format!("file {n}")});
    let record = json!({"type": "user", "uuid": format!("u{n}"), "sessionId": "s1",
        "message": {"role": "user", "content": [result]}});
    format!("{record}\n")
}

/// Seven messages of one id with a call each, and which of the calls the hook stopped.
fn seven_messages_of_one_id(profile: &'static str) -> (Writer, Vec<bool>) {
    let writer = Writer::new(profile);
    writer.event("UserPromptSubmit", json!({"prompt": "Fix it"}));
    let stopped = (1..=7).map(|n| {
        let text = "Let me look at the configuration file once more and see.";
        writer.append(&message_of_one_id(n, text, None));
        let input = json!({"command": format!("cat {n}")});
        let call = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": format!("t{n}")});
        let is_stopped = writer.event("PreToolUse", call)["continue"] == false;
        writer.append(&result_of(n));
        is_stopped
    });
    let stopped = stopped.collect();
    (writer, stopped)
}

#[test]
fn one_id_for_all_messages_hides_nothing_from_the_hook() {
    let (_, stopped) = seven_messages_of_one_id("turn-similarity");
    assert_eq!(stopped, [false, false, false, false, false, true, true]);
    let (writer, _) = seven_messages_of_one_id("default");
    let state = writer.state();
    assert_eq!(state["ledger"]["tokens"], 105, "seven times 10 + 5");
    assert_eq!(state["agents"][0]["history"]["turns"], 7);
}

/// The usage and the turns that the command reads from a transcript.
fn read(writer: &Writer) -> (usize, usize) {
    let steps = run(deloop(writer.agent.home.path()).arg("steps").arg(&writer.path), b"");
    let of = |kinds: &[&str]| {
        lines(&steps.stdout).iter().filter(|step| kinds.contains(&step["type"].as_str().unwrap())).count()
    };
    (of(&["usage"]), of(&["turn", "call"]))
}

#[test]
fn one_id_for_all_messages_hides_nothing_from_a_scan() {
    let writer = Writer::new("default");
    for n in 1..=5 {
        writer.append(&message_of_one_id(n, "Let me look.", None));
        writer.append(&result_of(n));
    }
    assert_eq!(read(&writer), (5, 5));
    let output = run(deloop(writer.agent.home.path()).args(["scan", "--json"]).arg(&writer.path), b"");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = report.to_string();
    assert!(text.contains(":50") && text.contains(":25"), "five times 10 and 5 tokens: {text}");
}

/// Claude Code writes each block of a message as soon as it is complete, and a result between two of them.
#[test]
fn a_message_in_parts_counts_once() {
    let writer = Writer::new("default");
    writer.append(&message_of_one_id(1, "Let me look.", Some("req_1")));
    writer.append(&result_of(1));
    writer.append(&message_of_one_id(2, "And there.", Some("req_1")));
    writer.append(&result_of(2));
    assert_eq!(read(&writer), (1, 1));
}

/// A line that is only half written is read when it is whole; a message in two parts is one.
#[test]
fn half_a_line_waits() {
    let mut writer = Writer::new("default");
    writer.event("UserPromptSubmit", json!({"prompt": "Fix it"}));
    writer.messages = 1;
    let line = writer.block(json!({"type": "text", "text": "Half a line."}));
    writer.append(&line[..40]);
    let call = |id: &str| json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": id});
    writer.event("PreToolUse", call("a"));
    assert_eq!(writer.steps(), 2, "the prompt and the call");
    writer.append(&line[40..]);
    writer.event("PreToolUse", call("b"));
    assert_eq!(writer.steps(), 4, "and now the usage and another call");
    writer.append(&writer.block(json!({"type": "tool_use", "id": "c", "name": "Bash", "input": {}})));
    writer.event("PreToolUse", call("c"));
    assert_eq!(writer.steps(), 5, "the same message has no usage of its own");
}

/// What was there before, and what is more than a hook reads, is skipped; what is no file is left alone.
#[test]
fn a_long_or_odd_transcript_costs_nothing() {
    let mut writer = Writer::new("default");
    let old: String = (0..400)
        .map(|n| {
            writer.messages = 1000 + n;
            writer.block(json!({"type": "text", "text": "old"}))
        })
        .collect();
    writer.append(&old);
    writer.event("UserPromptSubmit", json!({"prompt": "Fix it"}));
    assert_eq!(writer.steps(), 1);
    writer.append(&format!("{}\n", "x".repeat(3 << 20)));
    writer.turn("Let me look.", "ls");
    assert_eq!(writer.steps(), 3, "prompt, usage and call");
    for path in ["/dev/zero", "/nowhere/x.jsonl", "", "."] {
        writer.event("PreToolUse", json!({"transcript_path": path, "tool_name": "Bash", "tool_input": {}}));
    }
    assert_eq!(writer.steps(), 7);
    assert_eq!(writer.agent.log(), "");
}

/// The transcripts of the other agents, as they are written.
#[test]
fn every_agent_with_a_transcript_is_heard() {
    let fixture = |folder: &str| {
        let path =
            format!("{}/../formats/src/agents/{folder}/fixtures/stuck.jsonl", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    let cases = [
        ("codex", "codex", "PreToolUse"),
        ("gemini-cli", "gemini_cli", "BeforeTool"),
        ("qwen-code", "qwen_code", "PreToolUse"),
        ("copilot-cli", "copilot_cli", "PreToolUse"),
    ];
    for (name, folder, event) in cases {
        let agent = Agent::new(name, "default", "nudge");
        let path = agent.home.path().join("t.jsonl");
        std::fs::write(&path, fixture(folder)).unwrap();
        let call = json!({"transcript_path": path, "tool_name": "x", "tool_input": {}});
        agent.event(event, call);
        let state: String = agent.query("SELECT state FROM sessions");
        let state: Value = serde_json::from_str(&state).unwrap();
        assert_eq!(state["agents"][0]["history"]["turns"], 1, "{name}");
        assert!(state["ledger"]["tokens"].as_u64().unwrap_or(0) > 0, "{name}: {}", state["ledger"]);
    }
}

/// Claude Code calls the hook for each of several parallel calls; the transcript shows that they are one turn.
#[test]
fn parallel_calls_are_one_turn() {
    let mut writer = Writer::new("default");
    writer.event("UserPromptSubmit", json!({"prompt": "Fix it"}));
    let mut told = Vec::new();
    for turn in 1..=3 {
        writer.messages += 1;
        let calls: Vec<Value> = (0..4)
            .map(|n| json!({"type": "tool_use", "id": format!("t{turn}-{n}"), "name": "Bash", "input": {"command": "make check"}}))
            .collect();
        for call in &calls {
            writer.append(&writer.block(call.clone()));
        }
        let mut replies = Vec::new();
        for call in &calls {
            let call = json!({"tool_name": "Bash", "tool_input": call["input"], "tool_use_id": call["id"]});
            replies.push(writer.event("PreToolUse", call));
        }
        for call in &calls {
            let failed = json!({"tool_name": "Bash", "tool_input": call["input"], "tool_use_id": call["id"],
                "error": "Exit code 2\nmake: *** No rule"});
            replies.push(writer.event("PostToolUseFailure", failed));
        }
        told.push(replies.iter().filter(|reply| !reply.is_null()).count());
    }
    assert_eq!(told, [0, 0, 1], "12 calls in 3 turns are told of once, in the third turn");
}
