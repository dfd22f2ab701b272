//! Whose sessions are whose: one key can't speak for the session of another.

use serde_json::{Value, json};

use super::client::{Server, add_key};
use super::stops::turn;
use crate::binary::{deloop, run};
use crate::redis_server::RedisServer;

/// One step of each kind.
pub(super) fn steps(session: &str) -> Vec<Value> {
    let mut steps = vec![
        json!({"type": "turn", "text": "Hello."}),
        json!({"type": "call", "id": "c1", "tool": "read", "args": {"path": "a.txt"}}),
        json!({"type": "result", "id": "c1", "ok": true, "output": "done"}),
        json!({"type": "user", "text": "Please do something else now."}),
        json!({"type": "user", "origin": "harness", "text": "Continue."}),
        json!({"type": "user", "origin": "notice", "text": "It is done."}),
        json!({"type": "user", "origin": "schedule", "text": "Look again."}),
        json!({"type": "usage", "model": "m1", "input_tokens": 10, "cost_usd": 0.01}),
        json!({"type": "chunk", "text": "a"}),
        json!({"type": "compact"}),
        json!({"type": "delivery", "step": 1, "ok": false}),
        json!({"type": "embedding", "step": 0, "embedding": [1.0, 0.0]}),
        json!({"type": "intervention"}),
        json!({"type": "swarm_end", "swarm": "w1"}),
        json!({"type": "state"}),
        json!({"type": "end"}),
    ];
    steps.iter_mut().for_each(|step| step["session"] = json!(session));
    steps
}

/// Checks that only the owner of `s1` and its friend can write to it.
fn check(server: &Server, reader: &str, keys: [&str; 3]) {
    let mut reader = server.client_with(reader);
    let [mut owner, mut other, mut friend] = keys.map(|key| server.client_with(key));
    owner.step(&turn("s1"));
    let before = reader.get("/v1/sessions/s1/checkpoint").json();
    for step in steps("s1") {
        let refused = other.post("/v1/steps", &step.to_string());
        assert_eq!(refused.status, 403, "{step}: {refused:?}");
        assert!(refused.error().contains("deloop keys add NAME --group GROUP"), "{refused:?}");
    }
    // The other items of a batch are answered.
    let batch = json!([turn("s1"), turn("s2"), {"type": "end", "session": "s1"}]);
    let answer = other.post("/v1/steps", &batch.to_string());
    let items = answer.json();
    assert_eq!((answer.status, &items[1]["action"]), (200, &json!("continue")), "{items}");
    for index in [0, 2] {
        assert_eq!(items[index]["index"], index, "{items}");
        assert!(items[index]["error"].as_str().unwrap().contains("belongs to another key"), "{items}");
    }
    assert_eq!(reader.get("/v1/sessions/s1/checkpoint").json(), before, "nothing was merged");
    assert_eq!(friend.step(&turn("s1"))["step"], 1, "keys of one group share their sessions");
}

#[test]
fn a_session_belongs_to_the_key_that_opened_it_and_to_its_group() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let owner = add_key(home, &["ci", "--scope", "ingest"]);
    let other = add_key(home, &["other", "--scope", "ingest,attend,read,operate"]);
    let friend = add_key(home, &["ci-2", "--scope", "ingest", "--group", "ci"]);
    let admin = add_key(home, &["admin", "--scope", "admin"]);
    let reader = add_key(home, &["reader", "--scope", "read"]);
    let server = Server::start(home, &[]);
    check(&server, &reader, [&owner, &other, &friend]);
    // Admin keys may write to all sessions, and they stay their owner's.
    assert_eq!(server.client_with(&admin).step(&turn("s1"))["action"], "continue");
    assert_eq!(server.client_with(&owner).step(&turn("s1"))["action"], "continue");
    // Whoever may operate may reset all sessions of the project. Then the first key that writes takes it.
    let mut operator = server.client_with(&other);
    assert_eq!(operator.post("/v1/sessions/s1/reset", "").status, 200);
    assert_eq!(operator.step(&turn("s1"))["step"], 0);
    assert_eq!(server.client_with(&owner).post("/v1/steps", &turn("s1").to_string()).status, 403);
}

#[test]
#[ignore = "needs redis-server"]
fn a_session_in_redis_belongs_to_the_key_that_opened_it() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let keys = [("ci", "ci"), ("other", "other"), ("ci-2", "ci")]
        .map(|(name, group)| add_key(home, &[name, "--scope", "ingest", "--group", group]));
    let reader = add_key(home, &["reader", "--scope", "read"]);
    let start = || Server::start(home, &["--store", &redis.url(), "--store-timeout", "10000"]);
    check(&start(), &reader, [&keys[0], &keys[1], &keys[2]]);
    let server = start();
    assert_eq!(server.client_with(&keys[1]).post("/v1/steps", &turn("s1").to_string()).status, 403);
}

#[test]
fn a_key_that_is_added_again_keeps_its_sessions() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let state = home.join("state");
    let at = ["--state", state.to_str().unwrap()];
    // Before there were keys, sessions belonged to nobody.
    let server = Server::start(home, &at);
    server.client().step(&turn("old"));
    drop(server);
    let add = |name: &str| add_key(home, &[name, "--scope", "ingest", at[0], at[1]]);
    let (ci, other) = (add("ci"), add("other"));
    let server = Server::start(home, &at);
    assert_eq!(server.client_with(&ci).step(&turn("old"))["step"], 1, "the first key that writes takes it");
    let refused = |server: &Server, key: &str| {
        server.client_with(key).post("/v1/steps", &turn("old").to_string()).status == 403
    };
    assert!(refused(&server, &other));
    drop(server);
    run(deloop(home).args(["keys", "revoke", "ci", at[0], at[1]]), b"");
    let rotated = add("ci");
    let server = Server::start(home, &at);
    assert!(refused(&server, &other));
    assert_eq!(server.client_with(&rotated).step(&turn("old"))["step"], 2);
}

/// A notice about a worker goes to the session in charge, which may belong to somebody else.
#[test]
fn a_session_of_another_key_gets_no_notices() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let [lead, own, other] = [("lead", "team"), ("own", "team"), ("other", "other")]
        .map(|(name, group)| add_key(home, &[name, "--scope", "ingest", "--group", group]));
    let server = Server::start(home, &["--profile", "turn-similarity"]);
    let worker = |key: &str, session: &str| {
        let step = json!({"type": "turn", "session": session, "controller": "lead",
            "text": "I will read the configuration file and look for the broken setting."});
        let mut client = server.client_with(key);
        let actions: Vec<Value> = (0..6).map(|_| client.step(&step)["action"].clone()).collect();
        assert_eq!(actions[5], "stop", "the worker is judged all the same: {actions:?}");
    };
    let mut lead = server.client_with(&lead);
    lead.step(&turn("lead"));
    worker(&other, "foreign");
    let mut notices =
        |text: &str| lead.step(&json!({"type": "turn", "session": "lead", "text": text}))["notices"].clone();
    assert_eq!(notices("Which worker is next?"), Value::Null);
    worker(&own, "friendly");
    let told = notices("Now something else.");
    assert_eq!(told[0]["session"], "friendly", "{told}");
}
