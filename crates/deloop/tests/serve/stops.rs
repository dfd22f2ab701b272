//! What lifts a stop, with which key, and what the audit log says about it.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Client, HttpAnswer, Server, add_key};
use crate::binary::{deloop, lines, run, said};
use crate::redis_server::RedisServer;

/// Repeats a call that fails until its agent is stopped.
pub(super) fn stop(client: &mut Client, session: &str, agent: Option<&str>) {
    let call = |n: u32| {
        let call = json!({"type": "call", "session": session, "agent": agent, "id": n, "tool": "bash", "args": {"command": "npm test"}});
        let result = json!({"type": "result", "session": session, "agent": agent, "id": n, "ok": false, "output": "1 failed"});
        [call, result]
    };
    let steps: Vec<Value> = (0..40).flat_map(call).collect();
    let decided = client.post("/v1/steps", &json!(steps).to_string()).json();
    assert_eq!(decided[79]["action"], "stop", "{}", decided[79]);
}

pub(super) fn turn(session: &str) -> Value {
    json!({"type": "turn", "session": session, "text": "Next."})
}

/// The action about the next turn of a session.
pub(super) fn next(client: &mut Client, session: &str) -> Value {
    client.step(&turn(session))["action"].clone()
}

/// Steps that lift a stop if the key may speak for a person, and what the audit log calls them.
pub(super) const LIFTING: [(&str, &str); 3] = [
    (r#"{"type": "user", "text": "Please do something else now."}"#, "message"),
    (r#"{"type": "intervention"}"#, "intervention"),
    (r#"{"type": "end"}"#, "end"),
];

/// A step, in this session.
pub(super) fn of_session(step: &str, session: &str) -> Value {
    let mut step: Value = serde_json::from_str(step).unwrap();
    step["session"] = json!(session);
    step
}

/// Who lifted the stops of a session, and how.
fn lifts(home: &Path, session: &str) -> Vec<(String, String)> {
    let query = ["audit", "query", "--json", "--action", "session.lift", "--session", session];
    let output = run(deloop(home).args(query), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines(&output.stdout)
        .iter()
        .map(|record| (text(&record["actor"]), text(&record["detail"]["by"])))
        .collect()
}

#[test]
fn a_key_that_only_ingests_lifts_no_stop() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let ci = add_key(home, &["ci", "--scope", "ingest"]);
    let reader = add_key(home, &["grafana", "--scope", "read"]);
    let server = Server::start(home, &[]);
    let mut client = server.client_with(&ci);
    for (step, how) in LIFTING {
        stop(&mut client, how, None);
        let answer = client.step(&of_session(step, how));
        assert_eq!(answer["action"], "stop", "{how}: {answer}");
        assert_eq!(next(&mut client, how), "stop", "{how}");
        let known = server.client_with(&reader).get(&format!("/v1/sessions/{how}"));
        assert_eq!(known.status, 200, "{how}: it isn't forgotten");
        assert_eq!(lifts(home, how), []);
    }
    stop(&mut client, "crowd", Some("worker"));
    for n in 0..70 {
        client.step(
            &json!({"type": "turn", "session": "crowd", "agent": format!("invented-{n}"), "text": "Hello."}),
        );
    }
    let mut worker = turn("crowd");
    worker["agent"] = json!("worker");
    assert_eq!(client.step(&worker)["action"], "stop");
    // What wasn't stopped ends and starts over as ever.
    client.step(&turn("healthy"));
    client.step(&of_session(LIFTING[2].0, "healthy"));
    assert_eq!(server.client_with(&reader).get("/v1/sessions/healthy").status, 404);
}

#[test]
fn every_lift_of_a_stop_is_recorded_with_who_and_how() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let alice = add_key(home, &["alice", "--scope", "ingest,attend"]);
    let ops = add_key(home, &["ops", "--scope", "operate,read"]);
    let server = Server::start(home, &[]);
    let (mut client, mut operator) = (server.client_with(&alice), server.client_with(&ops));
    let is = |who: &str, how: &str| vec![(who.to_owned(), how.to_owned())];
    for (step, how) in LIFTING {
        stop(&mut client, how, None);
        client.step(&of_session(step, how));
        assert_eq!(next(&mut client, how), "continue", "{how}");
        client.step(&of_session(step, how));
        assert_eq!(lifts(home, how), is("alice", how), "once: there was one stop");
    }
    client.step(&turn("healthy"));
    let checkpoint = operator.get("/v1/sessions/healthy/checkpoint").text();
    let mut operate = |session: &str, request: &dyn Fn(&mut Client) -> HttpAnswer| {
        stop(&mut client, session, None);
        let answer = request(&mut operator);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(next(&mut client, session), "continue", "{session}");
        lifts(home, session)
    };
    assert_eq!(operate("s1", &|c| c.post("/v1/sessions/s1/reset", "")), is("ops", "reset"));
    assert_eq!(operate("s2", &|c| c.post("/v1/sessions/s2/end", "")), is("ops", "end"));
    let restore =
        |c: &mut Client| c.send("PUT", "/v1/sessions/s3/checkpoint", &[], checkpoint.as_bytes()).unwrap();
    assert_eq!(operate("s3", &restore), is("ops", "restore"));
    assert_eq!(operator.post("/v1/sessions/healthy/reset", "").status, 200);
    assert_eq!(lifts(home, "healthy"), [], "nothing was lifted");
}

#[test]
fn a_server_without_keys_hears_everyone() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    for (step, how) in LIFTING {
        stop(&mut client, how, None);
        client.step(&of_session(step, how));
        assert_eq!(next(&mut client, how), "continue", "{how}");
        assert_eq!(lifts(home.path(), how), [("local".to_owned(), how.to_owned())]);
    }
}

/// What isn't in the database yet is decided about again, and nothing else must come of it.
#[test]
fn a_server_that_was_killed_still_knows_what_a_key_may_lift() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let keys = ["one", "two"].map(|name| add_key(home, &[name, "--scope", "ingest"]));
    let alice = add_key(home, &["alice", "--scope", "ingest,attend"]);
    let server = Server::start(home, &[]);
    let (mut one, mut person) = (server.client_with(&keys[0]), server.client_with(&alice));
    for (step, how) in LIFTING {
        stop(&mut one, how, None);
        one.step(&of_session(step, how));
    }
    stop(&mut person, "lifted", None);
    person.step(&of_session(LIFTING[0].0, "lifted"));
    server.kill();
    let server = Server::start(home, &[]);
    let (mut one, mut two) = (server.client_with(&keys[0]), server.client_with(&keys[1]));
    for (_, how) in LIFTING {
        assert_eq!(next(&mut one, how), "stop", "{how}");
        assert_eq!(two.post("/v1/steps", &turn(how).to_string()).status, 403, "{how}");
    }
    assert_eq!(next(&mut server.client_with(&alice), "lifted"), "continue");
    assert_eq!(lifts(home, "lifted"), [("alice".to_owned(), "message".to_owned())], "recorded once");
}

#[test]
#[ignore = "needs redis-server"]
fn a_key_that_only_ingests_lifts_no_stop_in_redis() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let ci = add_key(home, &["ci", "--scope", "ingest"]);
    let alice = add_key(home, &["alice", "--scope", "ingest,attend", "--group", "ci"]);
    let server = Server::start(home, &["--store", &redis.url(), "--store-timeout", "10000"]);
    let (mut client, mut person) = (server.client_with(&ci), server.client_with(&alice));
    for (step, how) in LIFTING {
        stop(&mut client, how, None);
        assert_eq!(client.step(&of_session(step, how))["action"], "stop", "{how}");
        assert_eq!(next(&mut client, how), "stop", "{how}");
        person.step(&of_session(step, how));
        assert_eq!(next(&mut client, how), "continue", "{how}");
        assert_eq!(lifts(home, how), [("alice".to_owned(), how.to_owned())]);
    }
}
