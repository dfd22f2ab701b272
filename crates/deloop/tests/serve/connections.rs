//! Silent connections keep nobody waiting, and the server answers how it is whatever the load.

use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::alerts::metric;
use super::client::{Client, Server, add_key};
use crate::test_clock::TestClock;
use crate::wait::wait_for;

/// Its clock stands still, so that no connection waits too long on a slow machine.
fn server(home: &Path, limits: &str) -> (Server, String, TestClock) {
    let clock = TestClock::new(home);
    let key = add_key(home, &["agents", "--scope", "ingest,read", "--all-projects"]);
    let config = home.join("limits.toml");
    std::fs::write(&config, format!("[serve.limits]\n{limits}")).unwrap();
    let server = Server::start_with(clock.deloop(home), &["--config", config.to_str().unwrap()]);
    (server, key, clock)
}

fn step(session: usize) -> Value {
    json!({"type": "usage", "session": format!("s{session}"), "input_tokens": 1})
}

fn silent(server: &Server, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(server.address).expect("a connection")).collect()
}

/// How many files this process needs for a test of so many connections. It raises its limit, which it may.
fn may_open(files: u64) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return true;
    }
    let is_allowed = limit.maximum.is_none_or(|maximum| maximum >= files);
    is_allowed && setrlimit(Resource::Nofile, Rlimit { current: Some(files), ..limit }).is_ok()
}

/// 1,100 agents that keep their connections send steps, beside 1,000 connections that say nothing.
#[test]
fn agents_are_served_and_health_is_answered_beside_a_thousand_silent_connections() {
    assert!(may_open(2_500), "raise the hard limit on open files to 2500");
    let home = tempfile::tempdir().unwrap();
    let (server, key, _clock) = server(home.path(), "");
    let silent = silent(&server, 1_000);
    let mut agents: Vec<Client> = (0..1_100).map(|_| server.client_with(&key)).collect();
    let (is_over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let answered = std::thread::scope(|scope| {
        let health = scope.spawn(|| {
            let mut answered = 0;
            while !is_over.load(Ordering::Relaxed) {
                asked.fetch_add(1, Ordering::Relaxed);
                let health = server.client().get("/healthz");
                answered += usize::from(health.status == 200 && server.client().get("/readyz").status == 200);
            }
            answered
        });
        for round in 0..3 {
            for (n, agent) in agents.iter_mut().enumerate() {
                let answer = agent.step(&step(n));
                assert_eq!((&answer["step"], &answer["action"]), (&json!(round), &json!("continue")));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        health.join().unwrap()
    });
    assert!(answered > 0 && answered == asked.load(Ordering::Relaxed), "{answered} of {asked:?}");
    let mut client = server.client_with(&key);
    assert!(metric(&mut client, "deloop_connections{state=\"served\"}") >= 1_100);
    drop(silent);
}

/// As many connections as the server keeps say nothing, again and again.
#[test]
fn silent_connections_make_room_for_agents_and_never_displace_one() {
    let home = tempfile::tempdir().unwrap();
    let (server, key, clock) = server(home.path(), "connections = 4\n");
    let mut agent = server.client_with(&key);
    agent.step(&step(0));
    let mut all = Vec::new();
    for _ in 0..4 {
        all.extend(silent(&server, 150));
        clock.advance(Duration::from_millis(10));
        assert_eq!(agent.step(&step(0))["action"], "continue", "its connection stays");
        assert_eq!(server.client_with(&key).step(&step(1))["action"], "continue", "a new one finds room");
        assert_eq!(server.client().get("/healthz").status, 200);
    }
    let mut watcher = server.client_with(&key);
    assert!(metric(&mut watcher, "deloop_connections_closed_total{limit=\"connections\"}") >= 300);
    assert_eq!(metric(&mut watcher, "deloop_connections_limit"), 4);
}

#[test]
fn an_address_and_a_key_have_as_many_connections_as_they_may() {
    let home = tempfile::tempdir().unwrap();
    let (server, key, clock) = server(home.path(), "connections_per_address = 10\nconnections_per_key = 3\n");
    let silent = silent(&server, 20);
    let mut watcher = server.client_with(&key);
    let closed = |watcher: &mut Client, limit: &str| {
        metric(watcher, &format!("deloop_connections_closed_total{{limit=\"{limit}\"}}"))
    };
    wait_for("the oldest silent ones are closed", || closed(&mut watcher, "address") >= 10);
    drop(silent);
    let mut first = server.client_with(&key);
    first.step(&step(0));
    clock.advance(Duration::from_millis(10));
    // The watcher asks after it, so it isn't the one that is idle longest.
    let mut others: Vec<Client> = (0..3).map(|_| server.client_with(&key)).collect();
    for (n, other) in others.iter_mut().enumerate() {
        closed(&mut watcher, "key");
        clock.advance(Duration::from_millis(10));
        other.step(&step(n + 1));
    }
    assert_eq!(closed(&mut watcher, "key"), 2);
    assert!(first.send("GET", "/v1/sessions", &[], b"").is_err(), "the one idle longest made room");
    assert_eq!(others[2].step(&step(3))["step"], 1);
}

#[test]
fn readiness_needs_no_key_and_tells_its_reasons_to_keys_alone() {
    let home = tempfile::tempdir().unwrap();
    let key = add_key(home.path(), &["operator", "--scope", "read"]);
    let server = Server::start(home.path(), &[]);
    assert_eq!(server.client().get("/readyz").json(), json!({"status": "ready"}));
    assert_eq!(server.client_with("dlp_wrong").get("/readyz").status, 401);
    let database = home.path().join(".local/state/deloop/server.db");
    let other = rusqlite::Connection::open(database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut with_key = server.client_with(&key);
    wait_for("it isn't ready", || with_key.get("/readyz").status == 503);
    let ready = with_key.get("/readyz");
    assert_eq!(ready.json()["reasons"][0]["code"], "database");
    let mut without = server.client();
    wait_for("it isn't ready for anyone", || without.get("/readyz").status == 503);
    let anonymous = without.get("/readyz");
    assert!(!anonymous.error().contains("database") && anonymous.json().get("reasons").is_none());
    other.execute_batch("ROLLBACK").unwrap();
    wait_for("it is ready again", || without.get("/readyz").status == 200);
}

/// A terminal that is closed, or a service manager's reload.
#[test]
fn a_hangup_reads_keys_and_certificate_again_and_ends_nothing() {
    let home = tempfile::tempdir().unwrap();
    let clock = TestClock::new(home.path());
    add_key(home.path(), &["first", "--scope", "read"]);
    let mut server = Server::start_with(clock.deloop(home.path()), &[]);
    let new = add_key(home.path(), &["second", "--scope", "read"]);
    let mut client = server.client_with(&new);
    assert_eq!(client.get("/v1/sessions").status, 401, "the clock stands still");
    server.signal("HUP");
    assert_eq!(server.says(), "deloop: read the keys and the certificate again\n");
    assert_eq!(client.get("/v1/sessions").status, 200);
    clock.advance(Duration::from_secs(1));
    server.signal("TERM");
    assert_eq!(server.wait().0, Some(0));
}
