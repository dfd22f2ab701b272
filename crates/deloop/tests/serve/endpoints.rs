//! Every endpoint, as docs/serve.md describes it.

use serde_json::{Value, json};

use super::client::{Client, Server, segment};
use crate::binary::deloop;

fn said(session: &str, text: &str) -> Value {
    json!({"type": "turn", "session": session, "text": text})
}

fn start(home: &tempfile::TempDir, profile: &str) -> (Server, Client) {
    let server = Server::start(home.path(), &["--profile", profile]);
    let client = server.client();
    (server, client)
}

#[test]
fn steps_are_answered_in_the_form_they_came_in() {
    let home = tempfile::tempdir().unwrap();
    let (_server, mut client) = start(&home, "turn-hash");
    assert_eq!(client.step(&said("one", "Again."))["action"], "continue");
    assert_eq!(client.step(&said("one", "Again."))["action"], "nudge");
    let answer = client.post("/v1/steps", "{\"type\":\"turn\",\"calls\":7}");
    assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/json")));
    assert!(!answer.error().is_empty());

    let batch = format!("[{}, {{\"type\":7}}, {}]", said("two", "Again."), said("two", "Again."));
    let answer = client.post("/v1/steps", &batch);
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let answers = answer.json();
    assert_eq!((&answers[0]["action"], &answers[2]["action"]), (&json!("continue"), &json!("nudge")));
    assert_eq!(answers[2]["step"], 1, "an item that isn't a step doesn't count");
    assert_eq!(answers[1]["index"], 1);
    assert!(answers[1]["error"].is_string() && answers.as_array().unwrap().len() == 3);
    assert_eq!(client.post("/v1/steps", " [ ] ").json(), json!([]));

    let lines = format!("{}\n\n  \nnot a step\n{}\r\n", said("three", "Again."), said("three", "Again."));
    let answers = client.lines(&lines);
    assert_eq!(answers.len(), 3, "blank lines get no answer: {answers:?}");
    assert_eq!((&answers[1]["index"], &answers[2]["action"]), (&json!(1), &json!("nudge")));
    assert!(client.lines("").is_empty());
}

#[test]
fn a_step_without_a_time_or_a_cost_gets_one() {
    let home = tempfile::tempdir().unwrap();
    let (_server, mut client) = start(&home, "default");
    let usage =
        json!({"type": "usage", "model": "claude-sonnet-5", "input_tokens": 1_000_000, "output_tokens": 0});
    client.step(&usage);
    let session = client.get("/v1/sessions/default").json();
    assert!(session["ledger"]["usd"].as_f64().unwrap() > 0.5, "{session}");
    let year = 365 * 24 * 3_600_000_i64;
    assert!(session["ledger"]["first"].as_i64().unwrap() > 55 * year, "{session}");
    client.step(&json!({"type": "turn", "session": "old", "text": "a", "ts": 5000}));
    assert_eq!(client.get("/v1/sessions/old").json()["ledger"]["first"], 5000);
    // A client whose clock is wrong doesn't make the sessions of others expire.
    client.step(&json!({"type": "turn", "session": "late", "text": "a", "ts": 100 * year}));
    assert_eq!(client.get("/v1/sessions/old").status, 200);
}

#[test]
fn sessions_are_listed_by_name_whatever_their_names_are() {
    let home = tempfile::tempdir().unwrap();
    let (_server, mut client) = start(&home, "turn-hash");
    let mut names = ["a/b", "..", "../../etc/passwd", "100%", "é 漢", "?after=x", "a", "%2e", "%00\u{0}\n"];
    for name in names {
        client.step(&said(name, "Hello."));
    }
    names.sort_unstable();
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/sessions?limit=2{after}")).json();
        found.extend(
            page["sessions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={}", segment(next));
    }
    assert_eq!(found, names);
    for name in names {
        let session = client.get(&format!("/v1/sessions/{}", segment(name))).json();
        assert_eq!((&session["session"], &session["steps"]), (&json!(name), &json!(1)));
    }
    assert_eq!(client.get("/v1/sessions/a/b").status, 404, "a slash in a name is written %2F");
    assert_eq!(client.get("/v1/sessions/%ff").status, 400);
    for query in ["limit=0", "limit=1001", "limit=x"] {
        let answer = client.get(&format!("/v1/sessions?{query}"));
        assert!(answer.status == 400 && answer.error().contains("`limit`"), "{answer:?}");
    }
    let long = "n".repeat(1000);
    client.step(&said(&long, "Hello."));
    assert_eq!(
        client.get(&format!("/v1/sessions/{long}")).json()["steps"],
        1,
        "long names are shortened alike"
    );
}

#[test]
fn a_stopped_session_stays_stopped_until_it_is_reset() {
    let home = tempfile::tempdir().unwrap();
    let (server, mut client) = start(&home, "turn-similarity");
    let text = "I will read the configuration file and look for the broken setting.";
    let actions: Vec<Value> = (0..7).map(|_| client.step(&said("s1", text))["action"].clone()).collect();
    assert_eq!(actions[5..], ["stop", "stop"], "{actions:?}");
    let session = client.get("/v1/sessions/s1").json();
    assert_eq!(
        (&session["ended"]["action"], &session["agents"][0]["stop"]["action"]),
        (&json!("stop"), &json!("stop"))
    );
    assert_eq!(session["loop_detection_state"], Value::Null, "this profile has none");
    assert_eq!(client.post("/v1/sessions/s1/reset", "").json(), json!({"session": "s1", "existed": true}));
    assert_eq!(client.post("/v1/sessions/s1/reset", "").json(), json!({"session": "s1", "existed": false}));
    assert_eq!(client.step(&said("s1", text))["action"], "continue");
    assert_eq!(client.get("/v1/sessions/s1").json()["ended"], Value::Null);

    let ended = client.post("/v1/sessions/s1/end", "").json();
    assert_eq!(
        (&ended["session"], &ended["action"], &ended["step"]),
        (&json!("s1"), &json!("continue"), &json!(1))
    );
    let gone = client.get("/v1/sessions/s1");
    assert!(gone.status == 404 && gone.error().contains("session"), "{gone:?}");
    drop(client);
    drop(server);
}

#[test]
fn a_session_shows_what_its_detectors_know() {
    let home = tempfile::tempdir().unwrap();
    let (_server, mut client) = start(&home, "doom-loop");
    let call = json!({"type": "call", "session": "s1", "controller": "boss", "tool": "bash", "args": {"command": "make"}});
    for _ in 0..3 {
        client.step(&call);
    }
    let session = client.get("/v1/sessions/s1").json();
    assert_eq!((&session["steps"], &session["controller"]), (&json!(3), &json!("boss")));
    let state = &session["loop_detection_state"];
    assert_eq!((&state["doomLoopDetected"], &state["consecutiveCount"]), (&json!(true), &json!(3)));
    let agent = &session["agents"][0];
    assert_eq!((&agent["last_tool"], &agent["agent"]), (&json!("bash"), &Value::Null));
    assert_eq!(agent["reached"][0]["level"], 1, "{agent}");
}

#[test]
fn a_checkpoint_moves_a_session_to_another_server() {
    let (home, other_home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_server, mut client) = start(&home, "turn-hash");
    let (_other_server, mut other) = start(&other_home, "turn-hash");
    client.step(&said("s 1", "Again."));
    let checkpoint = client.get("/v1/sessions/s%201/checkpoint");
    assert_eq!(checkpoint.status, 200);
    let path = "/v1/sessions/s%201/checkpoint";
    let restored = other.send("PUT", path, &[], &checkpoint.body).unwrap();
    assert_eq!((restored.status, restored.json()), (200, json!({"session": "s 1", "restored": true})));
    assert_eq!(other.step(&said("s 1", "Again."))["action"], "nudge");
    let wrong = other.send("PUT", path, &[], b"{\"version\":1}").unwrap();
    assert!(wrong.status == 400 && wrong.error().contains("not a checkpoint"), "{wrong:?}");
    let mut later = checkpoint.json();
    later["version"] = json!(99);
    let wrong = other.send("PUT", path, &[], later.to_string().as_bytes()).unwrap();
    assert!(wrong.status == 400 && wrong.error().contains("version 99"), "{wrong:?}");
    assert_eq!(other.get(path).status, 200, "a bad checkpoint changes nothing");
    assert_eq!(other.get("/v1/sessions/none/checkpoint").status, 404);
}

#[test]
fn a_swarm_shows_its_counts_and_workers() {
    let home = tempfile::tempdir().unwrap();
    let (_server, mut client) = start(&home, "doom-loop");
    let mut last = Value::Null;
    for n in 0..10 {
        let worker = format!("w{}", n % 2);
        last = client.step(
            &json!({"type": "call", "session": worker, "swarm": "fix/it", "tool": "read", "args": {"path": "plan.md"}, "id": format!("c{n}")}),
        );
        client.step(&json!({"type": "call", "session": worker, "tool": "edit", "args": {"n": n}}));
    }
    assert_eq!(last["findings"][0]["detector"], "swarm-repeat", "{last}");
    assert_eq!(client.get("/v1/swarms").json(), json!({"swarms": ["fix/it"]}));
    let swarm = client.get("/v1/swarms/fix%2Fit").json();
    assert_eq!((&swarm["calls"], &swarm["workers"]), (&json!(10), &json!(2)));
    assert_eq!(swarm["fingerprints"][0]["totalCalls"], 10, "{swarm}");
    assert_eq!(swarm["fingerprints"][0]["workers"], json!(["w0", "w1"]), "{swarm}");
    let cleared =
        |client: &mut Client| client.send("DELETE", "/v1/swarms/fix%2Fit", &[], b"").unwrap().json();
    assert_eq!(cleared(&mut client), json!({"swarm": "fix/it", "existed": true}));
    assert_eq!(cleared(&mut client), json!({"swarm": "fix/it", "existed": false}));
    assert_eq!(client.get("/v1/swarms/fix%2Fit").status, 404);
}

#[test]
fn metrics_count_what_happened() {
    let home = tempfile::tempdir().unwrap();
    let (_server, mut client) = start(&home, "turn-hash");
    assert_eq!(client.get("/healthz").json(), json!({"status": "ok"}));
    for n in 0..3 {
        client.step(&said(&format!("s{}", n % 2), "Again."));
    }
    client.lines("broken\n");
    client.get("/no/such/path");
    let metrics = client.get("/metrics");
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4"));
    let text = metrics.text();
    for row in [
        "deloop_steps_total 3",
        "deloop_decisions_total{action=\"continue\"} 2",
        "deloop_decisions_total{action=\"nudge\"} 1",
        "deloop_malformed_steps_total 1",
        "deloop_request_errors_total{class=\"4xx\"} 1",
        "deloop_request_seconds_bucket{le=\"+Inf\"} 6",
        "deloop_request_seconds_count 6",
        "deloop_sessions 2",
    ] {
        assert!(text.lines().any(|line| line == row), "{row}: {text}");
    }
}

#[test]
fn wrong_paths_and_methods_are_errors_in_json() {
    let home = tempfile::tempdir().unwrap();
    let (_server, mut client) = start(&home, "default");
    for (method, path, status) in [
        ("GET", "/", 404),
        ("GET", "/v1/sessions/a/../../swarms", 404),
        ("GET", "/v1/steps", 405),
        ("PATCH", "/v1/sessions/s1", 405),
        ("POST", "/healthz", 405),
    ] {
        let answer = client.send(method, path, &[], b"").unwrap();
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.error().contains("docs/serve.md"), "{answer:?}");
    }
}

/// The server has a database of its own, with the decisions in its journal, and `DELOOP=off` silences it.
#[test]
fn state_and_switch_are_the_servers_own() {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("broker");
    let server = Server::start(home.path(), &["--profile", "turn-hash", "--state", state.to_str().unwrap()]);
    let mut client = server.client();
    client.step(&said("s1", "Again."));
    client.step(&said("s1", "Again."));
    assert!(state.join("server.db").exists());
    assert!(!state.join("deloop.db").exists());
    drop(client);
    drop(server);
    let mut command = deloop(home.path());
    command.env("DELOOP", "off");
    let server = Server::start_with(command, &["--profile", "turn-hash", "--state", state.to_str().unwrap()]);
    let decision = server.client().step(&said("s1", "Again."));
    assert_eq!((&decision["action"], &decision["findings"]), (&json!("continue"), &json!([])), "{decision}");
}
