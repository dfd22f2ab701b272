//! `deloop hook AGENT`: one process per event, as the agents call it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::binary::{deloop, run, said, stop_clock};

/// A home of its own, and an agent that calls the hook in it.
pub(crate) struct Agent {
    pub(crate) home: tempfile::TempDir,
    name: &'static str,
    profile: &'static str,
    mode: &'static str,
    calls: u32,
    /// Whether the clock of the hook stands still.
    pub(crate) is_clock_stopped: bool,
}

impl Agent {
    pub(crate) fn new(name: &'static str, profile: &'static str, mode: &'static str) -> Self {
        Self { home: tempfile::tempdir().unwrap(), name, profile, mode, calls: 0, is_clock_stopped: false }
    }

    pub(crate) fn state(&self) -> PathBuf {
        if cfg!(windows) {
            self.home.path().join("deloop")
        } else {
            self.home.path().join(".local/state/deloop")
        }
    }

    /// Sends an event and gives back the reply; no reply is null.
    pub(crate) fn send(&self, event: &Value) -> Value {
        self.send_bytes(event.to_string().as_bytes())
    }

    /// Sends these bytes as an event.
    pub(crate) fn send_bytes(&self, event: &[u8]) -> Value {
        let mut command = deloop(self.home.path());
        command.args(["hook", self.name, "--profile", self.profile, "--mode", self.mode]);
        if self.is_clock_stopped {
            stop_clock(self.home.path(), &mut command);
        }
        let output = run(&mut command, event);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert_eq!(said(&output), "");
        if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).unwrap() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "a case reads better with its JSON in place")]
    pub(crate) fn event(&self, name: &str, more: Value) -> Value {
        let mut event = json!({
            "session_id": "s1", "cwd": "/tmp", "transcript_path": "", "hook_event_name": name,
            "permission_mode": "bypassPermissions",
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.send(&event)
    }

    /// A call that is about to be made, as Claude Code, Codex and Qwen Code say it.
    pub(crate) fn before(&mut self, command: &str) -> Value {
        self.calls += 1;
        let id = format!("c{}", self.calls);
        self.event(
            "PreToolUse",
            json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id}),
        )
    }

    #[expect(clippy::needless_pass_by_value, reason = "a case reads better with its JSON in place")]
    pub(crate) fn after(&self, event: &str, command: &str, more: Value) -> Value {
        let id = format!("c{}", self.calls);
        let mut all = json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.event(event, all)
    }

    pub(crate) fn query<T: rusqlite::types::FromSql>(&self, sql: &str) -> T {
        let database = rusqlite::Connection::open(self.state().join("deloop.db")).unwrap();
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.state().join("deloop.log")).unwrap_or_default()
    }
}

pub(crate) fn denied(reply: &Value) -> bool {
    reply["hookSpecificOutput"]["permissionDecision"] == "deny"
}

pub(crate) fn told(reply: &Value) -> bool {
    reply["hookSpecificOutput"]["additionalContext"]
        .as_str()
        .is_some_and(|t| t.contains("Bash") || t.contains("make check"))
}

#[test]
fn claude_code_is_told_and_then_refused() {
    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    let mut seen = Vec::new();
    for n in 1..=7 {
        let before = agent.before("make check");
        seen.push((told(&before), denied(&before)));
        if !denied(&before) {
            let failure = agent.after("PostToolUseFailure", "make check", json!({"error": "Exit code 2"}));
            assert!(failure.is_null() || n >= 3, "{failure}");
        }
        let call = json!({"tool_name": "Bash", "tool_input": {"command": "make check"}, "tool_use_id": format!("c{n}"), "tool_response": "x"});
        agent.event("PostToolBatch", json!({"tool_calls": [call]}));
    }
    let (f, t) = (false, true);
    assert_eq!(seen, [(f, f), (f, f), (t, f), (t, f), (t, f), (f, t), (f, t)]);
    assert_eq!(agent.query::<i64>("SELECT steps FROM sessions"), 14, "each call and each result once");
    assert_eq!(
        agent.query::<i64>(
            "SELECT count(*) FROM decisions WHERE action = 'block' AND delivered = 'PreToolUse'"
        ),
        2
    );
    assert_eq!(agent.query::<i64>("SELECT calls FROM hooks WHERE agent = 'claude-code'"), 19);
    assert_eq!(agent.log(), "");
}

/// What was refused stays refused, and the run ends when it comes again: a refusal does not begin a new count.
#[test]
fn claude_code_is_refused_twice_and_then_ended() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    let mut seen = Vec::new();
    for _ in 1..=8 {
        let before = agent.before("make check");
        if !denied(&before) {
            agent.after("PostToolUseFailure", "make check", json!({"error": "Exit code 2\nno rule"}));
        }
        seen.push((denied(&before), before["continue"] == false));
    }
    let (f, t) = (false, true);
    assert_eq!(seen, [(f, f), (f, f), (f, f), (f, f), (f, f), (t, f), (t, f), (t, t)]);
}

/// Two calls in turn are one loop, whichever of them is refused.
#[test]
fn a_cycle_is_ended_like_a_single_call() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    let ended = (1..=20).find(|n| {
        let command = if n % 2 == 0 { "make check" } else { "make" };
        let before = agent.before(command);
        if !denied(&before) {
            agent.after(
                "PostToolUseFailure",
                command,
                json!({"error": format!("Exit code 2\nno rule for {command}")}),
            );
        }
        before["continue"] == false
    });
    assert!(ended.is_some_and(|n| n <= 16), "{ended:?}");
}

#[test]
fn the_default_mode_nudges_only() {
    let mut agent = Agent::new("claude-code", "doom-loop", "nudge");
    for n in 1..=8 {
        let before = agent.before("make check");
        assert_eq!((told(&before), denied(&before)), (n >= 3, false), "{n}: {before}");
    }
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM decisions WHERE would = 'block'"), 3);
    // Without `--mode` it is the same.
    let event =
        json!({"session_id": "s2", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}});
    for n in 1..=8 {
        let mut command = deloop(agent.home.path());
        let output = run(
            command.args(["hook", "claude-code", "--profile", "doom-loop"]),
            event.to_string().as_bytes(),
        );
        assert_eq!(output.stdout.is_empty(), n < 3);
        assert!(!String::from_utf8_lossy(&output.stdout).contains("deny"));
    }
}

/// deloop's own refusals are no evidence, and no news either: the ladder is climbed to its end.
#[test]
fn the_default_profile_tells_refuses_and_stops() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    let mut seen = String::new();
    for _ in 1..=8 {
        let before = agent.before("make check");
        seen.push(match (denied(&before), before["continue"] == false) {
            (true, true) => 'S',
            (true, false) => 'R',
            _ => {
                let after = agent.after("PostToolUseFailure", "make check", json!({"error": "Exit code 2"}));
                if told(&after) { 'n' } else { '.' }
            }
        });
    }
    assert_eq!(seen, "..n.nRRS");
}

/// Makes the same failing call until the run is ended; in how many calls.
pub(crate) fn until_stopped(agent: &mut Agent, more: &Value) -> Option<u32> {
    (1..=10).find(|n| {
        let mut call = json!({"tool_name": "Bash", "tool_input": {"command": "make check"}, "tool_use_id": format!("x{n}")});
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let before = agent.event("PreToolUse", call.clone());
        if !denied(&before) {
            call["error"] = "Exit code 2".into();
            agent.event("PostToolUseFailure", call);
        }
        before["continue"] == false
    })
}

#[test]
fn a_stop_of_the_run_stands_until_a_person_writes() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    assert_eq!(until_stopped(&mut agent, &json!({})), Some(8));
    let other = agent.before("pwd");
    assert_eq!((&other["continue"], denied(&other)), (&json!(false), true), "it stands for every call");
    assert!(agent.event("UserPromptSubmit", json!({"prompt": "Go on, differently"})).is_null());
    assert!(agent.before("date").is_null());
}

/// The document's session is over: only a person who intervenes in deloop itself lifts the stop.
#[test]
fn a_stop_of_the_session_stands_until_it_is_lifted() {
    let mut agent = Agent::new("claude-code", "signature", "enforce");
    let stopped: Vec<bool> = (1..=6).map(|_| agent.before("ls")["continue"] == false).collect();
    assert_eq!(stopped, [false, false, false, true, true, true]);
    let prompt = agent.event("UserPromptSubmit", json!({"prompt": "Go on, differently"}));
    assert_eq!((&prompt["continue"], &prompt["decision"]), (&json!(false), &json!("block")), "{prompt}");
    assert!(prompt["reason"].as_str().unwrap().contains("was repeated after two warnings"), "{prompt}");
    assert_eq!(agent.before("date")["continue"], false);
    let paused = |on: &str| run(deloop(agent.home.path()).args([on, "s1"]), b"");
    assert_eq!(paused("pause").status.code(), Some(0));
    let event = json!({"tool_name": "Bash", "tool_input": {"command": "id"}, "tool_use_id": "p1"});
    assert!(agent.event("PreToolUse", event).is_null());
    assert_eq!(paused("resume").status.code(), Some(0));
    assert!(agent.before("whoami").is_null());
}

/// The stop of one subagent is not the stop of its session.
#[test]
fn subagents_are_agents_of_their_session() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    assert_eq!(until_stopped(&mut agent, &json!({"agent_id": "a1"})), Some(8));
    assert!(agent.before("ls").is_null());
    assert_eq!(
        agent.query::<i64>("SELECT count(*) FROM decisions WHERE subagent = 'a1' AND action = 'stop'"),
        1
    );
}

/// Codex cannot be stopped: every later call is refused, and nothing is said that it does not know.
#[test]
fn codex_is_refused_every_later_call() {
    let mut agent = Agent::new("codex", "signature", "enforce");
    let replies: Vec<Value> = (1..=6).map(|_| agent.before("ls")).collect();
    assert_eq!(replies.iter().map(denied).collect::<Vec<_>>(), [false, false, false, true, true, true]);
    assert!(replies.iter().all(|r| r.get("continue").is_none() && r.get("stopReason").is_none()));
    assert!(denied(&agent.before("pwd")));
    let prompt = agent.event("UserPromptSubmit", json!({"prompt": "Go on, differently"}));
    let keys: Vec<&String> = prompt.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["continue", "stopReason", "systemMessage"], "a session that is over takes no prompt");
}

/// Qwen Code can only be stopped before its next request to the model; what it sends there is not a person's text.
#[test]
fn qwen_code_is_stopped_before_its_next_request() {
    let mut agent = Agent::new("qwen-code", "signature", "enforce");
    let ask = |agent: &Agent| agent.event("UserPromptSubmit", json!({"prompt": "", "prompt_id": "p0"}));
    assert!(
        agent.event("UserPromptSubmit", json!({"prompt": "List the files", "prompt_id": "p0"})).is_null()
    );
    for n in 1..=4 {
        let before = agent.before("ls");
        assert_eq!(denied(&before), n == 4, "{before}");
        assert!(!told(&before), "it would be ignored");
        if n < 4 {
            let after = agent.after("PostToolUse", "ls", json!({"tool_response": "a"}));
            assert_eq!(after["hookSpecificOutput"]["additionalContext"].is_string(), n > 1, "{after}");
            assert!(ask(&agent).is_null());
        }
    }
    assert_eq!(ask(&agent)["continue"], false);
}

/// Gemini CLI ignores a message before a call: it comes with the result, and once.
#[test]
fn gemini_cli_is_told_with_the_result() {
    let agent = Agent::new("gemini-cli", "doom-loop", "enforce");
    let event = |name: &str, response: Option<Value>| {
        let mut event = json!({"session_id": "g", "hook_event_name": name, "tool_name": "Bash", "tool_input": {"command": "ls"}});
        if let Some(response) = response {
            event["tool_response"] = response;
        }
        agent.send(&event)
    };
    for n in 1..=6 {
        let before = event("BeforeTool", None);
        if n == 6 {
            assert_eq!(before["decision"], "deny");
            break;
        }
        assert!(before.is_null(), "{before}");
        let after = event(
            "AfterTool",
            Some(json!({"llmContent": "Output: a\nProcess Group PGID: 7", "returnDisplay": "a"})),
        );
        assert_eq!(after["hookSpecificOutput"]["additionalContext"].is_string(), n >= 3, "{after}");
    }
    assert_eq!(
        agent.query::<i64>(
            "SELECT count(*) FROM decisions WHERE action = 'nudge' AND delivered = 'AfterTool'"
        ),
        3
    );
}

/// Copilot CLI is ended by its permission request, which comes in another dialect than its other events.
#[test]
fn copilot_cli_is_ended_by_its_permission_request() {
    let agent = Agent::new("copilot-cli", "signature", "enforce");
    let before = || agent.event("PreToolUse", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}}));
    let ask = json!({"hookName": "permissionRequest", "sessionId": "s1", "toolName": "bash", "toolInput": {"command": "ls"}});
    for n in 1..=4 {
        assert_eq!(before()["additionalContext"].is_string(), n == 2 || n == 3);
        let asked = agent.send(&ask);
        assert_eq!((asked["behavior"] == "deny", asked["interrupt"] == true), (n == 4, n == 4), "{asked}");
    }
    assert_eq!(before()["permissionDecision"], "deny", "it has not ended: refuse");
}

/// A stop that ends a task stands for no later step, but for the call that it is about.
#[test]
fn copilot_cli_is_ended_by_a_stop_that_does_not_stand() {
    let agent = Agent::new("copilot-cli", "behavioral", "enforce");
    let ask = json!({"hookName": "permissionRequest", "sessionId": "s1", "toolName": "bash", "toolInput": {"command": "ls"}});
    let interrupted = (1..=8).map(|_| {
        agent.event("PreToolUse", json!({"tool_name": "Bash", "tool_input": {"command": "ls"}}));
        agent.send(&ask)["interrupt"] == true
    });
    assert_eq!(interrupted.filter(|ended| *ended).count(), 1, "the eighth");
}

/// An end that is decided when a result comes is carried out at the permission request of the next call.
#[test]
fn copilot_cli_is_ended_after_a_result_too() {
    let agent = Agent::new("copilot-cli", "default", "enforce");
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "make"}});
    let ask = json!({"hookName": "permissionRequest", "sessionId": "s1", "toolName": "bash", "toolInput": {"command": "make"}});
    let mut after = call.clone();
    let failed = "error: no target\n<shellId: 0 completed with exit code 2>";
    after["tool_result"] = json!({"result_type": "success", "text_result_for_llm": failed});
    let ended = (1..=20).find(|_| {
        if agent.event("PreToolUse", call.clone())["permissionDecision"] == "deny" {
            return false;
        }
        let ended = agent.send(&ask)["interrupt"] == true;
        if !ended {
            agent.event("PostToolUse", after.clone());
        }
        ended
    });
    assert!(ended.is_some_and(|n| n < 15), "{ended:?}");
}

#[test]
fn whatever_is_sent_the_agent_goes_on() {
    let agent = Agent::new("claude-code", "doom-loop", "enforce");
    for agent_name in ["claude-code", "codex", "gemini-cli", "copilot-cli", "qwen-code", "cursor"] {
        for bytes in [&b""[..], b"nonsense", b"[1]", b"{}", b"\xff\xfe", br#"{"session_id":7}"#] {
            let output = run(deloop(agent.home.path()).args(["hook", agent_name]), bytes);
            assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(0), 0, 0));
        }
        assert!(agent.log().contains(&format!(" {agent_name}: the event ")), "{}", agent.log());
    }
}

fn one_call(agent: &mut Agent) -> Value {
    (0..6).map(|_| agent.before("make check")).last().unwrap()
}

#[test]
fn a_broken_database_or_configuration_never_stops_the_agent() {
    // No folder can be made where a file is.
    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    std::fs::create_dir_all(agent.state().parent().unwrap()).unwrap();
    std::fs::write(agent.state(), "in the way").unwrap();
    assert!(one_call(&mut agent).is_null());

    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    std::fs::create_dir_all(agent.state()).unwrap();
    std::fs::write(
        agent.state().join("deloop.db"),
        "not a database, but long enough to be read as one".repeat(99),
    )
    .unwrap();
    assert!(denied(&one_call(&mut agent)), "a fresh one was started");
    assert!(agent.state().join("deloop.db.corrupt-1").exists());

    let mut agent = Agent::new("claude-code", "no-such-profile", "enforce");
    one_call(&mut agent);
    assert!(agent.log().contains("unknown profile `no-such-profile`"), "{}", agent.log());

    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    std::fs::write(agent.home.path().join("deloop.toml"), "mode = ").unwrap();
    assert!(denied(&one_call(&mut agent)), "nobody trusted it");
    assert!(agent.log().contains("deloop.toml"), "{}", agent.log());
}

/// Another process that holds the database for longer than the hook waits.
#[test]
fn a_locked_database_never_stops_the_agent() {
    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    agent.before("make check");
    let other = rusqlite::Connection::open(agent.state().join("deloop.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(agent.before("make check").is_null());
    assert!(agent.log().contains("locked"), "{}", agent.log());
}

/// Another process that replaces the damaged database and never ends.
#[test]
fn a_damaged_database_with_a_held_lock_never_stops_the_agent() {
    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    agent.before("make check");
    std::fs::write(agent.state().join("deloop.db"), "no database at all").unwrap();
    std::fs::remove_file(agent.state().join("deloop.db-wal")).unwrap();
    let lock = std::fs::File::create(agent.state().join("deloop.db.lock")).unwrap();
    lock.lock().unwrap();
    assert!(agent.before("make check").is_null());
    assert!(agent.log().contains("another process is doing it"), "{}", agent.log());
    drop(lock);
    agent.before("make check");
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM sessions"), 1, "a fresh one was started");
}

#[test]
fn those_who_want_it_fail_closed() {
    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    crate::binary::trusted_config(agent.home.path(), "deloop.toml", "fail = \"closed\"");
    std::fs::create_dir_all(agent.state().join("deloop.db")).unwrap();
    let reply = agent.before("make check");
    assert!(denied(&reply) && reply["continue"] == false, "{reply}");
}

#[test]
fn deloop_off_does_nothing_at_all() {
    let agent = Agent::new("claude-code", "doom-loop", "enforce");
    let mut command = deloop(agent.home.path());
    let output = run(command.args(["hook", "claude-code"]).env("DELOOP", "off"), b"nonsense");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(!agent.state().exists());
}

/// Fifty hooks at once: each waits for the others, and no step is lost.
#[test]
fn parallel_hooks_lose_nothing() {
    let agent = Agent::new("claude-code", "doom-loop", "enforce");
    let replies: Vec<Value> = std::thread::scope(|scope| {
        let agent = &agent;
        let start = |n: u32| {
            scope.spawn(move || {
                let more = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": format!("p{n}")});
                agent.event("PreToolUse", more)
            })
        };
        let threads: Vec<_> = (0..50).map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(agent.log(), "");
    let count = |f: &dyn Fn(&Value) -> bool| replies.iter().filter(|r| f(r)).count();
    assert_eq!((count(&|r| r.is_null()), count(&told), count(&denied)), (2, 3, 45));
    // Fifty calls, and forty-five refusals.
    assert_eq!(agent.query::<i64>("SELECT steps FROM sessions"), 95);
    assert_eq!(agent.query::<i64>("SELECT calls FROM hooks"), 50);
}

fn files(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|f| String::from_utf8_lossy(&std::fs::read(f.unwrap().path()).unwrap()).into_owned()).collect()
}

#[test]
fn arguments_and_outputs_are_not_kept_and_purge_forgets() {
    let mut agent = Agent::new("claude-code", "default", "enforce");
    let command = format!("deploy {} --token SECRET-ARG", "x".repeat(100));
    for _ in 0..5 {
        agent.before(&command);
        agent.after("PostToolUse", &command, json!({"tool_response": {"stdout": "SECRET-OUT"}}));
    }
    agent.event("UserPromptSubmit", json!({"prompt": "SECRET-PROMPT"}));
    agent.event("Stop", json!({"last_assistant_message": "SECRET-TEXT"}));
    let kept = files(&agent.state());
    assert!(kept.contains("s1") && !kept.contains("SECRET"));
    let output = run(deloop(agent.home.path()).args(["purge", "s1"]), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM sessions"), 0);
    let again = run(deloop(agent.home.path()).args(["purge", "s1"]), b"");
    assert!(said(&again).contains("no stored session is named `s1`"));
}

#[test]
fn a_session_that_is_resumed_goes_on_where_it_ended() {
    let mut agent = Agent::new("claude-code", "doom-loop", "enforce");
    one_call(&mut agent);
    let before: i64 = agent.query("SELECT count(*) FROM decisions");
    agent.event("SessionEnd", json!({"reason": "other"}));
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM sessions"), 1);
    agent.event("SessionStart", json!({"source": "resume"}));
    assert!(!agent.before("make check").is_null(), "the same call is refused as it was");
    assert!(
        agent.query::<i64>("SELECT count(*) FROM decisions") > before,
        "decisions have names of their own"
    );
}
