//! A server that ends loses no step that it answered.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::client::Server;

/// Sends steps of one session until the server is gone; returns how many were answered.
fn keep_sending(server: &Server, session: &str, is_over: &AtomicBool) -> u64 {
    let mut client = server.client();
    let mut answered = 0;
    while !is_over.load(Ordering::Relaxed) {
        let step =
            json!({"type": "turn", "session": session, "text": format!("Step {answered}.")}).to_string();
        match client.send("POST", "/v1/steps", &[], step.as_bytes()) {
            Ok(answer) => {
                assert_eq!((answer.status, &answer.json()["step"]), (200, &json!(answered)));
                answered += 1;
            }
            Err(_) => break,
        }
    }
    answered
}

/// The exit code of a server that gets this signal under load. Every answered step must be there after a restart.
fn ended_under_load(home: &Path, signal: &str) -> (Option<i32>, String) {
    let server = Server::start(home, &["--profile", "turn-hash"]);
    let is_over = AtomicBool::new(false);
    let names = ["a", "b", "c", "d"];
    let answered: Vec<u64> = std::thread::scope(|scope| {
        let (server, is_over) = (&server, &is_over);
        let senders: Vec<_> =
            names.iter().map(|name| scope.spawn(move || keep_sending(server, name, is_over))).collect();
        std::thread::sleep(Duration::from_millis(700));
        server.signal(signal);
        std::thread::sleep(Duration::from_secs(3));
        is_over.store(true, Ordering::Relaxed);
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    let ended = server.wait();
    let server = Server::start(home, &["--profile", "turn-hash"]);
    let mut client = server.client();
    for (name, answered) in names.iter().zip(answered) {
        assert!(answered > 10, "{name}: {answered} steps before the signal");
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
    let server = Server::start(home.path(), &["--profile", "turn-hash"]);
    let (mut idle, mut client) = (server.client(), server.client());
    assert_eq!(idle.get("/healthz").status, 200);
    let step = json!({"type": "turn", "session": "s1", "text": "Half now, half later."}).to_string();
    let (first, rest) = step.split_at(10);
    let head = client.head("POST", "/v1/steps", step.len(), &[]);
    client.write(format!("{head}{first}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert!(std::net::TcpStream::connect(server.address).is_err(), "it accepts no more connections");
    assert!(idle.read().is_err(), "connections without a request are closed");
    client.write(rest.as_bytes()).unwrap();
    let answer = client.read().unwrap();
    assert_eq!((answer.status, &answer.json()["action"]), (200, &json!("continue")));
    assert_eq!(server.wait().0, Some(0));
    let server = Server::start(home.path(), &["--profile", "turn-hash"]);
    assert_eq!(server.client().get("/v1/sessions/s1").json()["steps"], 1);
}
