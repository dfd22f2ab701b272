//! What another release stored: what an earlier one wrote is read, and what a later one wrote is refused aloud and kept.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

use super::alerts::metric;
use super::client::Server;
use crate::binary::{deloop, lines, run};
use crate::redis_server::RedisServer;
use crate::test_clock::TestClock;
use crate::wait::wait_for;

/// Written by a server with the profile `turn-similarity`: the session `stopped` was stopped, `w1` and `w2` made one call
/// each in the swarm `team`.
const DATABASE: &str = include_str!("../stored/server.sql");
/// The same steps, in a log of steps that wasn't written to the database yet.
const LOG: &[u8] = include_bytes!("../stored/server.steps-0");
/// The checkpoint of the session `stopped`.
const CHECKPOINT: &str = include_str!("../stored/checkpoint.json");
/// The same in Redis, as commands.
const REDIS: &str = include_str!("../stored/redis.json");

/// Something new, which a session that isn't stopped may go on with.
fn fresh_turn(session: &str) -> Value {
    json!({"type": "turn", "session": session, "text": "Now I read the other file."})
}

fn state(home: &Path) -> PathBuf {
    let state = home.join("state");
    std::fs::create_dir_all(&state).unwrap();
    state
}

/// Writes the database of the fixture, with this change to it.
fn database(home: &Path, change: &str) -> PathBuf {
    let file = state(home).join("server.db");
    let database = Connection::open(&file).unwrap();
    database.execute_batch(DATABASE).unwrap();
    database.execute_batch(change).unwrap();
    file
}

/// Starts a server at the time of the fixtures.
fn start(home: &Path, more: &[&str]) -> Server {
    let clock = TestClock::new(home);
    let folder = state(home);
    let arguments = ["--profile", "turn-similarity", "--state", folder.to_str().unwrap()];
    Server::start_with(clock.deloop(home), &[&arguments, more].concat())
}

fn ready_codes(server: &Server) -> Vec<Value> {
    let ready = server.client().get("/readyz").json();
    let reasons = ready["reasons"].as_array().cloned().unwrap_or_default();
    reasons.into_iter().map(|reason| reason["code"].clone()).collect()
}

fn stored_state(file: &Path, session: &str) -> String {
    let database = Connection::open(file).unwrap();
    let sql = "SELECT state FROM sessions WHERE session = ?1";
    database.query_row(sql, [format!("default/{session}")], |row| row.get(0)).unwrap()
}

fn is_as_before(server: &Server) {
    let mut client = server.client();
    assert_eq!(client.step(&fresh_turn("stopped"))["action"], "stop", "it stays stopped");
    assert_eq!(client.step(&fresh_turn("w1"))["step"], 1, "a session goes on where it was");
    assert_eq!(client.get("/v1/swarms/team").json()["workers"], 2);
    assert_eq!(client.get("/readyz").json(), json!({"status": "ready"}));
}

#[test]
fn a_session_that_the_release_before_stopped_stays_stopped() {
    let home = tempfile::tempdir().unwrap();
    database(home.path(), "");
    is_as_before(&start(home.path(), &[]));
}

#[test]
fn a_checkpoint_of_the_release_before_is_restored_and_written_the_same_and_a_later_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), &[]);
    let mut client = server.client();
    let path = "/v1/sessions/stopped/checkpoint";
    let mut put = |text: &str| client.send("PUT", path, &[], text.as_bytes()).unwrap();
    assert_eq!(put(CHECKPOINT).status, 200);
    let later = put(&CHECKPOINT.replace("\"version\": 3", "\"version\": 4"));
    assert!(later.status == 400 && later.error().contains("version 4"), "{later:?}");
    let written = client.get(path).json();
    assert_eq!(written, serde_json::from_str::<Value>(CHECKPOINT).unwrap(), "a change needs a new version");
    assert_eq!(client.step(&fresh_turn("stopped"))["action"], "stop");
}

#[test]
fn a_log_of_steps_of_the_release_before_is_replayed() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(state(home.path()).join("server.steps-0"), LOG).unwrap();
    is_as_before(&start(home.path(), &[]));
}

#[test]
fn a_session_of_a_later_release_is_refused_aloud_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let later = r#"UPDATE sessions SET state = replace(state, '{"version":3,', '{"version":4,"news":7,')
        WHERE session IN ('default/stopped', 'default/w1')"#;
    let file = database(home.path(), later);
    let before = ["stopped", "w1"].map(|session| stored_state(&file, session));
    let mut server = start(home.path(), &[]);
    let mut client = server.client();
    let batch = json!([fresh_turn("stopped"), fresh_turn("w1"), fresh_turn("w2"), fresh_turn("new")]);
    let answer = client.post("/v1/steps", &batch.to_string());
    assert_eq!((answer.status, answer.header("deloop-failed-open")), (200, Some("true")));
    let answers = answer.json();
    let actions: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["action"]).collect();
    assert_eq!(actions, ["stop", "continue", "continue", "continue"], "a stop stands");
    assert_eq!((&answers[2]["step"], &answers[3]["step"]), (&json!(1), &json!(0)), "others are stored");
    let said = [server.says(), server.says()].concat();
    assert!(said.contains("default/stopped") && said.contains("default/w1"), "{said}");
    assert_eq!(said.matches("a later release wrote the stored state (format 4").count(), 2, "{said}");
    assert_eq!(ready_codes(&server), ["later_state"]);
    assert_eq!(metric(&mut client, "deloop_unreadable_states{reason=\"later\"}"), 2);
    assert_eq!(metric(&mut client, "deloop_failed_open_total"), 2);
    assert_eq!(client.get("/v1/sessions/stopped").status, 503);
    server.signal("TERM");
    server.wait();
    assert_eq!(before, ["stopped", "w1"].map(|session| stored_state(&file, session)), "it is kept");
    // Whoever wants it gone can have that.
    let server = start(home.path(), &[]);
    assert_eq!(server.client().post("/v1/sessions/stopped/reset", "").json()["existed"], true);
    assert_eq!(server.client().step(&fresh_turn("stopped"))["action"], "continue");
}

#[test]
fn what_cannot_be_read_is_told_and_kept_and_what_only_a_server_stores_has_a_version_too() {
    let home = tempfile::tempdir().unwrap();
    let damaged = r#"
        UPDATE sessions SET state = replace(state, '{"money":', '{"version":2,"money":') WHERE session = 'default/stopped';
        UPDATE sessions SET state = 'nonsense' WHERE session = 'default/w1';
        UPDATE swarms SET state = replace(state, '{"workers":', '{"version":2,"workers":')"#;
    let file = database(home.path(), damaged);
    let server = start(home.path(), &[]);
    let mut client = server.client();
    assert_eq!(client.step(&fresh_turn("stopped"))["action"], "stop");
    assert_eq!(client.step(&fresh_turn("w1"))["action"], "continue");
    let call =
        json!({"type": "call", "session": "w2", "swarm": "team", "tool": "bash", "args": {"command": "ls"}});
    assert_eq!(client.step(&call)["step"], 1, "its session is stored");
    assert_eq!(ready_codes(&server), ["later_state", "unreadable_state"]);
    server.signal("TERM");
    let (_, said) = server.wait();
    for what in ["session `default/stopped`", "session `default/w1`", "swarm `default/team`"] {
        assert_eq!(said.matches(what).count(), 1, "{what}: {said}");
    }
    assert_eq!(stored_state(&file, "w1"), "nonsense");
    let swarm: String =
        Connection::open(&file).unwrap().query_row("SELECT state FROM swarms", [], |row| row.get(0)).unwrap();
    assert!(swarm.starts_with(r#"{"version":2,"#) && swarm.ends_with(r#""about":"make"}}]}"#), "{swarm}");
}

#[test]
fn a_log_of_steps_that_cannot_be_read_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let folder = state(home.path());
    // The second entry is damaged, and a log of another database is there.
    let mut damaged = LOG.to_vec();
    let second = 12 + u32::from_le_bytes(LOG[..4].try_into().unwrap()) as usize;
    damaged[second + 20] ^= 1;
    std::fs::write(folder.join("server.steps-0"), &damaged).unwrap();
    std::fs::write(folder.join("server.steps-7"), LOG).unwrap();
    let server = start(home.path(), &[]);
    assert_eq!(server.client().get("/v1/sessions/stopped").json()["steps"], 1);
    assert_eq!(ready_codes(&server), ["damaged_file"]);
    assert_eq!(std::fs::read(folder.join("server.steps-0.unread-1")).unwrap(), damaged[second..]);
    assert_eq!(std::fs::read(folder.join("server.steps-7.unread-1")).unwrap(), LOG);
}

#[test]
fn a_server_does_not_start_with_a_log_of_steps_of_a_later_release() {
    let home = tempfile::tempdir().unwrap();
    let log = state(home.path()).join("server.steps-0");
    let length = u32::from_le_bytes(LOG[..4].try_into().unwrap()) as usize;
    let mut later = LOG[..12 + length].to_vec();
    later[12 + 8] |= 1 << 6;
    let checksum = xxhash_rust::xxh3::xxh3_64(&later[12..]);
    later[4..12].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&log, &later).unwrap();
    let mut command = deloop(home.path());
    command.args(["serve", "--listen", "127.0.0.1:0", "--state", state(home.path()).to_str().unwrap()]);
    let output = run(&mut command, b"");
    let said = crate::binary::said(&output);
    assert!(output.status.code() == Some(2) && said.contains("a later release wrote"), "{said}");
    assert_eq!(std::fs::read(&log).unwrap(), later);
}

#[test]
fn a_damaged_database_is_set_aside_and_told() {
    let home = tempfile::tempdir().unwrap();
    let file = state(home.path()).join("server.db");
    std::fs::write(&file, "not a database, but longer than the header of one ".repeat(100)).unwrap();
    let mut server = start(home.path(), &[]);
    server.says_about("server.db.corrupt-1");
    assert_eq!(server.client().step(&fresh_turn("s1"))["step"], 0);
    assert_eq!(ready_codes(&server), ["damaged_file"]);
    assert_eq!(metric(&mut server.client(), "deloop_damaged_files"), 1);
    assert!(state(home.path()).join("server.db.corrupt-1").exists());
    server.signal("TERM");
    server.wait();
    let mut audit = deloop(home.path());
    audit
        .args(["audit", "query", "--json", "--action", "database.damaged", "--state"])
        .arg(state(home.path()));
    assert_eq!(lines(&run(&mut audit, b"").stdout).len(), 1);
    std::fs::remove_file(state(home.path()).join("server.db.corrupt-1")).unwrap();
    let server = start(home.path(), &[]);
    assert_eq!(server.client().get("/readyz").json(), json!({"status": "ready"}));
}

fn redis_with_the_fixture() -> RedisServer {
    let redis = RedisServer::start();
    let commands: serde_json::Map<String, Value> = serde_json::from_str(REDIS).unwrap();
    for (key, command) in &commands {
        let command: Vec<&str> =
            command.as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect();
        let parts = [&command[..1], &[key.as_str()], &command[1..]].concat();
        send(&redis, &parts);
    }
    redis
}

/// Sends a command whose parts may have spaces and line breaks.
fn send(redis: &RedisServer, parts: &[&str]) -> String {
    let mut text = format!("*{}", parts.len());
    for part in parts {
        text += &format!("\r\n${}\r\n{part}", part.len());
    }
    redis.ask(&text)
}

fn start_over(redis: &RedisServer, home: &Path, more: &[&str]) -> Server {
    start(home, &[&["--store", &redis.url(), "--store-timeout", "10000"], more].concat())
}

#[test]
#[ignore = "needs redis-server"]
fn what_the_release_before_stored_in_redis_is_read_and_what_a_later_one_stored_is_kept() {
    let redis = redis_with_the_fixture();
    let home = tempfile::tempdir().unwrap();
    let server = start_over(&redis, home.path(), &[]);
    is_as_before(&server);
    let key = "{deloop:p:default:s:stopped}";
    let stored = send(&redis, &["EVAL", "return redis.call('HGET', KEYS[1], 'state')", "1", key]);
    assert!(stored.contains("\"version\":3"), "{stored}");
    let later = "local s = string.gsub(redis.call('HGET', KEYS[1], 'state'), '\"version\":3,', '\"version\":4,') \
                 redis.call('HSET', KEYS[1], 'state', s, 'version', 'x') return s";
    let kept = send(&redis, &["EVAL", later, "1", key]);
    send(&redis, &["HSET", "{deloop:p:default:w:team}", "version", "2"]);
    let mut client = server.client();
    assert_eq!(client.step(&fresh_turn("stopped"))["action"], "stop", "a stop stands");
    let call =
        json!({"type": "call", "session": "w2", "swarm": "team", "tool": "bash", "args": {"command": "ls"}});
    assert_eq!(client.step(&call)["step"], 1, "its session is stored");
    assert_eq!(ready_codes(&server), ["later_state"]);
    assert_eq!(metric(&mut client, "deloop_unreadable_states{reason=\"later\"}"), 2);
    assert_eq!(send(&redis, &["HGET", key, "state"]), kept, "it is kept");
}

#[test]
#[ignore = "needs redis-server"]
fn a_redis_that_drops_keys_is_told_at_the_start_and_by_readyz() {
    let redis = RedisServer::start_with(&["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
    let home = tempfile::tempdir().unwrap();
    let mut server = start_over(&redis, home.path(), &[]);
    let said = server.says_about("allkeys-lru");
    assert!(said.contains("noeviction"), "{said}");
    let ready = server.client().get("/readyz");
    assert!(ready.status == 503 && ready.error().contains("allkeys-lru"), "{ready:?}");
    assert_eq!(ready.json()["reasons"][0]["code"], "redis_evicts");
    assert_eq!(server.client().step(&fresh_turn("s1"))["step"], 0, "it works all the same");
    drop(server);

    std::fs::write(home.path().join("allow.toml"), "[serve.redis]\nallow_eviction = true\n").unwrap();
    let config = home.path().join("allow.toml");
    let server = start_over(&redis, home.path(), &["--config", config.to_str().unwrap()]);
    assert_eq!(server.client().get("/readyz").json()["status"], "degraded");
    drop(server);

    // Without a limit nothing is dropped, whatever the policy is. It is looked at again after ten seconds.
    let clock = TestClock::new(home.path());
    let folder = state(home.path());
    let url = redis.url();
    let arguments = ["--store", &url, "--store-timeout", "10000", "--state", folder.to_str().unwrap()];
    let server = Server::start_with(clock.deloop(home.path()), &arguments);
    assert_eq!(server.client().get("/readyz").status, 503);
    redis.ask("CONFIG SET maxmemory 0");
    clock.advance(std::time::Duration::from_secs(10));
    wait_for("it is ready", || server.client().get("/readyz").status == 200);
}

#[test]
#[ignore = "needs redis-server"]
fn a_redis_that_does_not_say_whether_it_drops_keys_is_ready_and_told() {
    let redis = RedisServer::start();
    redis.ask("ACL SETUSER default -info");
    let home = tempfile::tempdir().unwrap();
    let mut server = start_over(&redis, home.path(), &[]);
    server.says_about("can't find out whether Redis drops keys");
    assert_eq!(server.client().get("/readyz").json(), json!({"status": "ready"}));
}
