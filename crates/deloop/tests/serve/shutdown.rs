//! A server that ends loses no step that it answered.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::client::Server;
use crate::wait::wait_for;

/// How many steps of each session are answered before the signal.
const ENOUGH: u64 = 50;

/// Sends steps of one session until the server is gone, and counts those that were answered.
fn keep_sending(server: &Server, session: &str, answered: &AtomicU64) {
    let mut client = server.client();
    for n in 0_u64.. {
        let step = json!({"type": "turn", "session": session, "text": format!("Step {n}.")}).to_string();
        let Ok(answer) = client.send("POST", "/v1/steps", &[], step.as_bytes()) else { return };
        assert_eq!((answer.status, &answer.json()["step"]), (200, &json!(n)));
        answered.store(n + 1, Ordering::Relaxed);
    }
}

/// The exit code of a server that gets this signal under load. Every answered step must be there after a restart.
fn ended_under_load(home: &Path, signal: &str) -> (Option<i32>, String) {
    let server = Server::start(home, &["--profile", "turn-hash"]);
    let names = ["a", "b", "c", "d"];
    let answered = [const { AtomicU64::new(0) }; 4];
    std::thread::scope(|scope| {
        for (name, answered) in names.iter().zip(&answered) {
            let server = &server;
            scope.spawn(move || keep_sending(server, name, answered));
        }
        let is_busy = || answered.iter().all(|answered| answered.load(Ordering::Relaxed) > ENOUGH);
        wait_for("all sessions have many steps", is_busy);
        server.signal(signal);
    });
    let ended = server.wait();
    let server = Server::start(home, &["--profile", "turn-hash"]);
    let mut client = server.client();
    for (name, answered) in names.iter().zip(&answered) {
        let answered = answered.load(Ordering::Relaxed);
        let kept = client.get(&format!("/v1/sessions/{name}")).json()["steps"].as_u64().unwrap();
        // The last step may have been stored without its answer getting through.
        assert!(kept == answered || kept == answered + 1, "{name}: {kept} kept of {answered} answered");
    }
    ended
}

#[test]
fn a_signal_under_load_loses_no_answered_step() {
    for signal in ["TERM", "INT"] {
        let home = tempfile::tempdir().unwrap();
        let (code, said) = ended_under_load(home.path(), signal);
        assert_eq!((code, said.as_str()), (Some(0), "deloop: finishing requests\n"));
    }
}

#[test]
fn a_kill_under_load_loses_no_answered_step() {
    let home = tempfile::tempdir().unwrap();
    assert_eq!(ended_under_load(home.path(), "KILL").0, None);
}

#[test]
fn a_request_in_progress_is_finished() {
    let home = tempfile::tempdir().unwrap();
    let mut server = Server::start(home.path(), &["--profile", "turn-hash"]);
    let (mut idle, mut client) = (server.client(), server.client());
    assert_eq!(idle.get("/healthz").status, 200);
    let step = json!({"type": "turn", "session": "s1", "text": "Half now, half later."}).to_string();
    let (first, rest) = step.split_at(10);
    client.begin("POST", "/v1/steps", step.len()).unwrap();
    client.write(first.as_bytes()).unwrap();
    server.signal("TERM");
    assert_eq!(server.says(), "deloop: finishing requests\n");
    assert!(std::net::TcpStream::connect(server.address).is_err(), "it accepts no more connections");
    assert!(idle.read().is_err(), "connections without a request are closed");
    client.write(rest.as_bytes()).unwrap();
    let answer = client.read().unwrap();
    assert_eq!((answer.status, &answer.json()["action"]), (200, &json!("continue")));
    assert_eq!(server.wait().0, Some(0));
    let server = Server::start(home.path(), &["--profile", "turn-hash"]);
    assert_eq!(server.client().get("/v1/sessions/s1").json()["steps"], 1);
}
