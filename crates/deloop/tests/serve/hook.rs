//! `deloop hook AGENT --server URL`: a server decides, and this machine while it is away.

use std::path::Path;
use std::sync::Barrier;

use serde_json::{Value, json};

use super::client::Server;
use super::fake_server::{FakeServer, answer, decisions};
use crate::binary::{deloop, run, said};
use crate::wait::wait_for;

/// The longest deadline that a hook can have. A busy machine may need more than the usual one.
pub(super) const PATIENT: &str = "[server]\ntimeout_ms = 5000\n";

/// Claude Code in a home of its own, with these arguments for its hook.
pub(super) struct Guarded {
    pub(super) home: tempfile::TempDir,
    arguments: Vec<String>,
    calls: u32,
    /// Whether the environment names a proxy that nothing answers on.
    pub(super) has_proxy: bool,
}

impl Guarded {
    pub(super) fn new(arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self { home: tempfile::tempdir().unwrap(), arguments, calls: 0, has_proxy: true }.configured(PATIENT)
    }

    /// Replaces the user's own configuration.
    pub(super) fn configured(self, text: &str) -> Self {
        configure(self.home.path(), text);
        self
    }

    fn hook(&self, agent: &str, event: &Value) -> Value {
        let mut command = deloop(self.home.path());
        command.args(["hook", agent]).args(&self.arguments);
        for name in ["http_proxy", "https_proxy", "all_proxy"].iter().filter(|_| self.has_proxy) {
            // Whoever asks it fails.
            command.env(name, "http://127.0.0.1:9");
        }
        let output = run(&mut command, event.to_string().as_bytes());
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
        if output.stdout.is_empty() { Value::Null } else { serde_json::from_slice(&output.stdout).unwrap() }
    }

    pub(super) fn event(&self, name: &str, more: &Value) -> Value {
        let mut event = json!({"session_id": "s1", "cwd": "/tmp", "transcript_path": "", "hook_event_name": name,
            "permission_mode": "bypassPermissions", "tool_name": "Bash", "tool_input": {"command": "make check"},
            "tool_use_id": format!("c{}", self.calls)});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.hook("claude-code", &event)
    }

    /// Makes the same failing call again. Returns whether the agent was told, and whether the call was denied.
    pub(super) fn fail(&mut self) -> (bool, bool) {
        let (told, denied) = self.fail_at("make check");
        (told.is_some(), denied)
    }

    /// Makes this failing call. Returns what the agent was told before it, and whether the call was denied.
    fn fail_at(&mut self, command: &str) -> (Option<String>, bool) {
        self.calls += 1;
        let input = json!({"command": command});
        let before = self.event("PreToolUse", &json!({"tool_input": input}));
        self.stay_away();
        let denied = before["hookSpecificOutput"]["permissionDecision"] == "deny";
        if !denied {
            self.event("PostToolUseFailure", &json!({"tool_input": input, "error": "Exit code 2"}));
        }
        (before["hookSpecificOutput"]["additionalContext"].as_str().map(str::to_owned), denied)
    }

    /// If the server failed, makes that a recent failure for the rest of the test: a hook that runs seconds later, on a slow
    /// machine, would ask the server again.
    fn stay_away(&self) {
        let database = rusqlite::Connection::open(self.state().join("deloop.db")).unwrap();
        let later =
            "UPDATE hooks SET last_called_ms = last_called_ms + 3600000 WHERE agent = 'server: failed'";
        database.execute(later, []).unwrap();
    }

    fn state(&self) -> std::path::PathBuf {
        self.home.path().join(".local/state/deloop")
    }

    pub(super) fn count(&self, sql: &str) -> i64 {
        let database = rusqlite::Connection::open(self.state().join("deloop.db")).unwrap();
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.state().join("deloop.log")).unwrap_or_default()
    }

    pub(super) fn command(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = run(deloop(self.home.path()).args(words), b"");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output))
    }
}

fn configure(home: &Path, text: &str) {
    let folder = home.join(".config/deloop");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("deloop.toml"), text).unwrap();
}

fn start(home: &Path, profile: &str) -> (Server, String) {
    let server = Server::start(home, &["--profile", profile]);
    let url = format!("http://{}", server.address);
    (server, url)
}

pub(super) const TOLD: [(bool, bool); 5] =
    [(false, false), (false, false), (true, false), (true, false), (true, false)];
const DENIED: (bool, bool) = (false, true);

/// The server's profile and the stricter one of the two modes apply, and nothing is decided here.
#[test]
fn the_server_decides_and_this_machine_carries_it_out() {
    let home = tempfile::tempdir().unwrap();
    let (server, url) = start(home.path(), "doom-loop");
    let mut agent = Guarded::new(&["--profile", "turn-similarity", "--mode", "shadow", "--server", &url]);
    let seen: Vec<(bool, bool)> = (0..7).map(|_| agent.fail()).collect();
    assert_eq!((&seen[..5], &seen[5..]), (&TOLD[..], &[DENIED, DENIED][..]));
    let mut client = server.client();
    assert_eq!(client.get("/v1/sessions").json()["sessions"], json!(["s1"]));
    let session = client.get("/v1/sessions/s1").json();
    assert_eq!(
        session["steps"], 13,
        "each call and result once; the last refusal goes with the next request"
    );
    assert_eq!(agent.count("SELECT count(*) FROM sessions"), 0, "the engine here has no history");
    let blocks = "SELECT count(*) FROM decisions WHERE action = 'block' AND delivered = 'PreToolUse'";
    assert_eq!(agent.count(blocks), 2, "`deloop log` shows the server's decisions");
    assert_eq!(agent.log(), "");
    let (code, said) = agent.command(&["status"]);
    assert!(code == Some(0) && !said.contains("Server:"), "{said}");
}

#[test]
fn a_sender_can_make_the_mode_stricter_but_not_weaker() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &["--profile", "turn-hash", "--mode", "nudge"]);
    let mut client = server.client();
    let mut last = |session: &str, query: &str| {
        let step = json!({"type": "turn", "session": session, "text": "Again."});
        let answer = client.post(&format!("/v1/steps?{query}"), &json!([step, step]).to_string());
        let named = (answer.status == 200 && query.contains("mode")).then_some("nudge");
        assert_eq!(answer.header("deloop-mode"), named, "the answer to a mode is a mode: {query}");
        (answer.status, answer.json()[1]["action"].clone())
    };
    assert_eq!(last("s1", "mode=shadow&attended=true"), (200, json!("nudge")));
    assert_eq!(last("s2", "mode=enforce&project=a"), (200, json!("nudge")));
    assert_eq!(last("s4", "attended=true"), (200, json!("nudge")));
    assert_eq!(last("s3", "mode=dance").0, 400);
    assert_eq!(last("s3", "attended=maybe").0, 400);
    assert_eq!(last("s3", "mode=nudge&mode=shadow").0, 400);
}

/// A standing stop, an event without a step, and a person's word about it.
#[test]
fn a_stop_of_the_server_stands_until_it_is_lifted() {
    let home = tempfile::tempdir().unwrap();
    let (server, url) = start(home.path(), "default");
    let mut agent = Guarded::new(&["--server", &url]);
    let mut stopped = 0;
    for _ in 0..8 {
        agent.fail();
        let batch = agent.event("PostToolBatch", &json!({"tool_calls": []}));
        stopped += u32::from(batch["continue"] == false);
    }
    assert_eq!(stopped, 1, "the event after the stop ends the run");
    let stop = |server: &Server| server.client().get("/v1/sessions/s1").json()["agents"][0]["stop"].clone();
    assert_eq!(stop(&server)["action"], "stop");
    let (code, said) = agent.command(&["pause", "s1", "--for", "1h"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(agent.event("PostToolBatch", &json!({"tool_calls": []})), Value::Null);
    let (code, said) = agent.command(&["resume", "s1"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(agent.fail(), (false, false));
    assert_eq!(stop(&server), Value::Null, "the server learns that a person intervened");
}

/// `deloop wrong` about a decision of the server: only its pattern is left alone, and the next loop is told from the start.
#[test]
fn what_was_wrong_about_a_decision_of_the_server_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let (_server, url) = start(home.path(), "doom-loop");
    let mut agent = Guarded::new(&["--server", &url]);
    let told = |agent: &mut Guarded, command: &str| -> Vec<String> {
        (0..4).filter_map(|_| agent.fail_at(command).0).collect()
    };
    assert_eq!(told(&mut agent, "make check").len(), 2);
    let (_, log) = agent.command(&["log", "--json"]);
    let id = log.lines().next().and_then(|row| row.split("\"id\":\"").nth(1)?.split('"').next()).unwrap();
    let (code, said) = agent.command(&["wrong", id]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(told(&mut agent, "make check"), [""; 0], "left alone");
    let next = told(&mut agent, "cargo test");
    assert_eq!(next.len(), 2, "another loop isn't");
    assert!(next[0].contains("3 times") && !next[0].contains("second"), "{next:?}");
}

#[test]
fn while_the_server_is_away_this_machine_decides() {
    let home = tempfile::tempdir().unwrap();
    let (server, url) = start(home.path(), "doom-loop");
    let mut agent = Guarded::new(&["--profile", "doom-loop", "--mode", "nudge", "--server", &url]);
    agent.fail();
    drop(server);
    let seen: Vec<(bool, bool)> = (0..7).map(|_| agent.fail()).collect();
    assert_eq!(seen[..5], TOLD, "the history here begins when the server is gone");
    assert_eq!(seen[5..], [DENIED, DENIED], "the server's mode was the stricter one");
    let log = agent.log();
    assert!(log.contains("the server didn't decide") && log.contains("decided on this machine"), "{log}");
    let (_, said) = agent.command(&["status"]);
    assert!(said.contains("Server: 12 events were decided on this machine"), "{said}");
}

/// Only the first event waits for a server that never answers, and not longer than the deadline.
#[test]
fn a_server_that_hangs_costs_one_deadline() {
    let server = FakeServer::always(Vec::new());
    let usual = "";
    let mut agent = Guarded::new(&["--profile", "doom-loop", "--server", &server.url]).configured(usual);
    let mut is_told = || {
        agent.calls += 1;
        let told = agent.event("PreToolUse", &json!({}));
        agent.stay_away();
        told["hookSpecificOutput"]["additionalContext"].is_string()
    };
    assert_eq!(
        [is_told(), is_told(), is_told()],
        [false, false, true],
        "decided here, while the server hangs"
    );
    assert_eq!(server.requests(), 1, "the others didn't wait for it");
    let log = agent.log();
    assert!(log.contains("timeout") && log.lines().count() == 1, "{log}");
}

/// Hooks of many agents share a database. One that waits for the server doesn't lock it.
#[test]
fn hooks_wait_for_the_server_side_by_side() {
    // If the machine is so slow that the first one gives up before the last one is there, all of them try again.
    wait_for("eight hooks wait for the server at the same time", || {
        let all = Barrier::new(8);
        let server = FakeServer::start(Box::new(move |_, steps| {
            all.wait();
            decisions(steps, &json!({}))
        }));
        let agent = Guarded::new(&["--server", &server.url]);
        std::thread::scope(|scope| {
            for n in 0..8 {
                let agent = &agent;
                scope.spawn(move || agent.event("PreToolUse", &json!({"session_id": format!("s{n}")})));
            }
        });
        server.requests() == 8 && agent.log().is_empty()
    });
}

#[test]
fn a_server_that_answers_nonsense_decides_nothing() {
    let target = FakeServer::always(Vec::new());
    let redirect = format!("location: {}/v1/steps\r\n", target.url);
    let huge = format!("[{}]", "1,".repeat(5 << 20) + "1");
    for (bad, said) in [
        (answer("200 OK", "", b"<html>hello</html>"), "one decision per step"),
        (answer("200 OK", "", b"[{}]"), "one decision per step"),
        (answer("200 OK", "", b"[]"), "one decision per step"),
        (answer("200 OK", "", huge.as_bytes()), "can't be read"),
        (answer("500 Oops", "", b"{\"error\":\"\\u001b[31mred\"}"), "status 500: [31mred"),
        (answer("401 Unauthorized", "", b""), "status 401"),
        (
            answer("403 Forbidden", "", b"{\"error\":\"this key can't send steps\"}"),
            "this key can't send steps",
        ),
        (answer("307 Temporary Redirect", &redirect, b""), "status 307"),
        (b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), "the server didn't decide"),
    ] {
        let server = FakeServer::always(bad);
        let mut agent = Guarded::new(&["--profile", "doom-loop", "--server", &server.url]);
        let seen: Vec<(bool, bool)> = (0..3).map(|_| agent.fail()).collect();
        assert_eq!(seen, TOLD[..3], "{said}");
        assert_eq!(server.requests(), 1, "it isn't asked again for a while: {said}");
        let log = agent.log();
        assert!(log.contains(said) && log.lines().count() == 1, "{said}: {log}");
    }
    assert_eq!(target.requests(), 0, "a redirect isn't followed");
}

/// A nudge that no detector made, at an event that can't carry it: the next one does.
#[test]
fn a_message_from_an_operator_reaches_the_agent() {
    let message = "Please look at the failing migration first.";
    let server = FakeServer::start(Box::new(move |number, steps| match number {
        0 => decisions(
            steps,
            &json!({"action": "nudge", "level": 1, "id": "m1", "message": message, "role": "user"}),
        ),
        _ => decisions(steps, &json!({})),
    }));
    let agent = Guarded::new(&["--server", &server.url]);
    let event = |name: &str| {
        json!({"session_id": "s1", "cwd": "/tmp", "hook_event_name": name, "timestamp": "2026-11-01T00:00:00Z",
            "tool_name": "run_shell_command", "tool_input": {"command": "ls"},
            "tool_response": {"llmContent": "a.txt"}})
    };
    assert_eq!(agent.hook("gemini-cli", &event("BeforeTool")), Value::Null);
    let after = agent.hook("gemini-cli", &event("AfterTool"));
    let context = after["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert!(context.contains(message), "{after}");
    assert!(!after.to_string().contains("repeats itself"), "a person isn't told of a loop: {after}");
    assert_eq!(agent.count("SELECT count(*) FROM decisions WHERE id = 'm1' AND delivered = 'AfterTool'"), 1);
    let next = agent.hook("gemini-cli", &event("BeforeTool"));
    assert_eq!(next, Value::Null, "it is given once");
}

#[test]
fn the_users_configuration_names_the_server_and_its_key() {
    let server = FakeServer::start(Box::new(|_, steps| decisions(steps, &json!({}))));
    let settings = format!(
        "mode = \"nudge\"\n{PATIENT}url = \"{}\"\nkey_file = \"~/key\"\nproject = \"web shop\"\n",
        server.url
    );
    let mut agent = Guarded::new(&[]).configured(&settings);
    std::fs::write(agent.home.path().join("key"), "dk_secret\n").unwrap();
    agent.fail();
    let received = server.received.lock().unwrap().clone();
    assert_eq!(received.len(), 2);
    let (head, steps) = &received[0];
    let line = head.lines().next().unwrap();
    assert!(line.starts_with("POST /v1/steps?"), "{line}");
    for part in ["mode=nudge", "attended=false", "project=web%20shop"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(head.contains("authorization: Bearer dk_secret"), "{head}");
    assert_eq!((&steps[0]["session"], &steps[0]["type"]), (&json!("s1"), &json!("call")), "{steps}");
    assert!(received[1].1.to_string().contains("Exit code 2"), "outputs are sent as they are");

    // A server named elsewhere doesn't get the key.
    let other = FakeServer::start(Box::new(|_, steps| decisions(steps, &json!({}))));
    agent.arguments = vec!["--server".to_owned(), other.url.clone()];
    agent.fail();
    assert!(!other.received.lock().unwrap()[0].0.contains("dk_secret"));
    assert_eq!(server.requests(), 2);

    // A mistake leaves the agent guarded.
    std::fs::remove_file(agent.home.path().join("key")).unwrap();
    agent.arguments = vec!["--profile".to_owned(), "doom-loop".to_owned()];
    let seen: Vec<(bool, bool)> = (0..3).map(|_| agent.fail()).collect();
    assert_eq!((seen[2], server.requests()), ((true, false), 2));
    assert!(agent.log().contains("`server.key_file`"), "{}", agent.log());
}

/// Whoever wrote a repository can't have its sessions sent anywhere, and without a server nothing is sent.
#[test]
fn a_folder_cant_name_a_server() {
    let server = FakeServer::always(Vec::new());
    let mut agent = Guarded::new(&["--profile", "doom-loop"]);
    std::fs::write(
        agent.home.path().join("deloop.toml"),
        format!("mode = \"enforce\"\n[server]\nurl = \"{}\"\n", server.url),
    )
    .unwrap();
    let (code, said) = agent.command(&["trust", "deloop.toml"]);
    assert!(code == Some(2) && said.contains("only your own configuration can set `server`"), "{said}");
    let seen: Vec<(bool, bool)> = (0..3).map(|_| agent.fail()).collect();
    assert_eq!(seen, TOLD[..3]);
    assert_eq!(server.requests(), 0);
    let (code, said) = agent.command(&["stream", "--server", "http://example.com"]);
    assert!(code == Some(2) && said.contains("Use https"), "{said}");
}

#[test]
fn install_doctor_and_run_know_the_server() {
    let home = tempfile::tempdir().unwrap();
    let (server, url) = start(home.path(), "default");
    let agent = Guarded::new(&[]);
    let (code, said) = agent.command(&["install", "claude-code", "--server", "http://deloop.example.com"]);
    assert!(code == Some(2) && said.contains("Use https"), "{said}");
    let (code, said) = agent.command(&["install", "claude-code", "--server", &url]);
    assert!(code == Some(0) && said.contains(&format!("hook claude-code --server {url}")), "{said}");
    let (_, said) = agent.command(&["doctor"]);
    assert!(said.contains(&format!("ok    server: {url} decides (deloop ")), "{said}");
    assert!(said.contains("ok    a stuck agent gets a message"), "{said}");
    assert_eq!(server.client().get("/v1/sessions").json()["sessions"], json!([]), "a rehearsal stays here");

    // An agent that never stops by itself.
    let script = "n=0; while [ $n -lt 40 ]; do n=$((n+1)); \
        printf '{\"session_id\":\"s9\",\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"make\"},\"tool_use_id\":\"c%s\"}' $n | $D hook codex >/dev/null; \
        printf '{\"session_id\":\"s9\",\"hook_event_name\":\"PostToolUse\",\"tool_name\":\"Bash\",\"tool_input\":{\"command\":\"make\"},\"tool_use_id\":\"c%s\",\"tool_response\":\"make: *** failed\\\\nProcess exited with code 2\"}' $n | $D hook codex >/dev/null; \
        done; sleep 60";
    let mut command = deloop(agent.home.path());
    command.args(["run", "--grace", "0.3", "--server", &url, "--", "/bin/sh", "-c", script]);
    command.env("D", env!("CARGO_BIN_EXE_deloop")).env("PATH", "/usr/bin:/bin");
    let output = run(&mut command, b"");
    assert_eq!(output.status.code(), Some(86), "{}", crate::binary::said(&output));
    let session = server.client().get("/v1/sessions/s9").json();
    assert_eq!(session["agents"][0]["stop"]["action"], "stop", "{session}");
    drop(server);
    let (_, said) = agent.command(&["doctor"]);
    assert!(said.contains("WRONG server:") && said.contains("deloop decides on this machine"), "{said}");
}

#[test]
fn a_stream_can_report_to_a_server() {
    let home = tempfile::tempdir().unwrap();
    configure(home.path(), PATIENT);
    let (server, url) = start(home.path(), "turn-hash");
    let said = |text: &str| format!("{{\"type\":\"turn\",\"session\":\"s1\",\"text\":\"{text}\"}}\n");
    let input = said("Again.").repeat(2);
    let stream = |arguments: &[&str]| {
        let output = run(deloop(home.path()).arg("stream").args(arguments), input.as_bytes());
        let actions = crate::binary::lines(&output.stdout);
        let actions: Vec<Value> = actions.iter().map(|decision| decision["action"].clone()).collect();
        (actions, crate::binary::said(&output))
    };
    let nudged = vec![json!("continue"), json!("nudge")];
    assert_eq!(stream(&["--server", &url]).0, nudged, "the server's profile applies");
    assert_eq!(server.client().get("/v1/sessions/s1").json()["steps"], 2);
    let agent = stream(&["--agent", "opencode", "--server", &url]);
    assert_eq!(agent.0, [json!("nudge"), json!("nudge")], "the session goes on there");
    drop(server);
    let (actions, said) = stream(&["--server", &url, "--profile", "turn-hash"]);
    assert_eq!(actions, nudged, "decided here");
    assert!(said.contains("Decisions are made on this machine"), "{said}");
}
