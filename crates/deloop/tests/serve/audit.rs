//! The audit log of a server, through `deloop audit`.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::access::configure;
use super::client::{Client, Server};
use crate::binary::{deloop, lines, run, said};
use crate::redis_server::RedisServer;
use crate::wait::wait_for;

const TEXT: &str = "I will read the configuration file and look for the broken setting.";

fn start(home: &Path) -> (Server, Client) {
    let server = Server::start(home, &["--profile", "turn-similarity"]);
    let client = server.client();
    (server, client)
}

fn turn(session: &str, text: &str) -> Value {
    json!({"type": "turn", "session": session, "text": text})
}

/// Repeats a turn until the session is stopped.
fn stop(client: &mut Client, session: &str) {
    let actions: Vec<Value> = (0..6).map(|_| client.step(&turn(session, TEXT))["action"].clone()).collect();
    assert_eq!(actions[5], "stop", "{actions:?}");
}

fn audit(home: &Path, arguments: &[&str]) -> Output {
    run(deloop(home).arg("audit").args(arguments), b"")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap() + &said(output)
}

#[track_caller]
fn assert_intact(home: &Path, arguments: &[&str]) -> String {
    let output = audit(home, &[&["verify"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let head = text(&output).lines().find_map(|line| line.strip_prefix("Head: ").map(str::to_owned));
    head.unwrap()
}

fn query(home: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = audit(home, &[&["query", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    lines(&output.stdout)
}

fn segments(home: &Path) -> Vec<PathBuf> {
    segments_in(&home.join(".local/state/deloop/audit"))
}

fn segments_in(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    files.sort();
    files
}

#[test]
fn a_stop_and_what_operators_do_are_recorded_once() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (server, mut client) = start(home);
    client.step(&turn("quiet", "Hello."));
    stop(&mut client, "s1");
    for _ in 0..3 {
        assert_eq!(client.step(&turn("s1", "Something else."))["action"], "stop", "it still applies");
    }
    let checkpoint = client.get("/v1/sessions/quiet/checkpoint");
    client.post("/v1/sessions/s1/reset", "");
    client.post("/v1/sessions/s1/end?project=web", "");
    client.send("PUT", "/v1/sessions/copy/checkpoint", &[], &checkpoint.body).unwrap();
    client.send("DELETE", "/v1/swarms/w", &[], b"").unwrap();
    assert_intact(home, &[]);
    drop((client, server));

    let all = query(home, &[]);
    let actions: Vec<&str> = all.iter().map(|record| record["action"].as_str().unwrap()).collect();
    let decided = ["decision.warn", "decision.warn", "decision.stop"];
    let operated = ["session.reset", "session.lift", "session.end", "session.restore", "swarm.clear"];
    assert_eq!(actions, [&["log.create", "server.start"], &decided[..], &operated[..]].concat());
    let stopped = &all[4];
    assert_eq!(
        (&stopped["actor"], &stopped["project"], &stopped["session"], &stopped["steps"]["last"]),
        (&json!("deloop"), &json!("default"), &json!("s1"), &json!(5))
    );
    assert_eq!(
        (&stopped["decision"]["detector"], &stopped["decision"]["level"]),
        (&json!("similar-turn"), &json!(2))
    );
    assert_eq!(stopped["configuration"].as_str().unwrap().len(), 64);
    assert_eq!((&all[5]["actor"], &all[7]["project"]), (&json!("local"), &json!("web")));
    assert_eq!(all[9]["swarm"], "w");
    assert_eq!(query(home, &["--action", "stop", "--session", "s1"]).len(), 1);
    assert_eq!(query(home, &["--project", "web", "--since", "1h", "--limit", "1"]).len(), 1);
    assert_eq!(query(home, &["--until", "2020-01-01"]).len() + query(home, &["--actor", "nobody"]).len(), 0);
    let table = text(&audit(home, &["query"]));
    assert!(
        table.starts_with("SEQ") && table.contains("session.reset") && table.contains("steps 0-5"),
        "{table}"
    );
}

#[test]
fn the_turns_of_a_terminated_session_can_be_inspected() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let secret = ["hunter2", "horse9battery"].concat();
    let call = |n: usize| {
        let args = json!({"command": format!("deploy --token {secret} app")});
        let calls = json!([{"id": format!("c{n}"), "tool": "bash", "args": args}]);
        json!({"type": "turn", "session": "s1", "text": TEXT, "calls": calls})
    };
    let end = |client: &mut Client| {
        for n in 0..6 {
            client.step(&call(n));
            client.step(&json!({"type": "result", "session": "s1", "id": format!("c{n}"), "ok": false}));
        }
    };
    let (server, mut client) = start(home);
    end(&mut client);
    drop((client, server));
    let shown = text(&audit(home, &["query", "--session", "s1", "--turns"]));
    assert!(shown.contains(&format!("turn 6: {TEXT}")) && shown.contains("turn 1: "), "{shown}");
    assert!(shown.contains("bash(deploy --token [secret] app): error"), "{shown}");

    std::fs::write(home.join("audit.toml"), "[serve.audit]\nkeep = \"text\"\n").unwrap();
    let server = Server::start(home, &["--profile", "turn-similarity", "--config", "audit.toml"]);
    let mut client = server.client();
    client.post("/v1/sessions/s1/reset", "");
    end(&mut client);
    drop((client, server));
    let shown = text(&audit(home, &["query", "--session", "s1", "--turns"]));
    assert!(shown.contains(r#"{"command":"deploy --token [secret] app"}"#), "{shown}");
    for path in segments(home) {
        assert!(!std::fs::read_to_string(path).unwrap().contains(&secret));
    }
    assert_intact(home, &[]);
}

#[test]
fn a_changed_byte_and_a_removed_record_are_found() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (server, mut client) = start(home);
    stop(&mut client, "s1");
    let noted = assert_intact(home, &[]);
    client.post("/v1/sessions/s1/reset", "");
    drop((client, server));
    assert_intact(home, &["--head", &noted]);
    let last = segments(home).pop().unwrap();
    let before = std::fs::read_to_string(&last).unwrap();
    let changed = before.replacen("\"action\":\"decision.stop\"", "\"action\":\"decision.warn\"", 1);
    assert_ne!(changed, before);
    std::fs::write(&last, changed).unwrap();
    let output = audit(home, &["verify"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("Problem: record 5: it was changed"), "{}", text(&output));

    let without: String =
        before.lines().filter(|l| !l.contains("decision.stop")).map(|l| format!("{l}\n")).collect();
    std::fs::write(&last, without).unwrap();
    let output = audit(home, &["verify"]);
    assert!(text(&output).contains("Problem: record 5: it is missing"), "{}", text(&output));

    std::fs::write(&last, before).unwrap();
    assert_intact(home, &[]);
    let (seq, hash) = noted.split_once(':').unwrap();
    let other = format!("{seq}:{}", hash.chars().rev().collect::<String>());
    assert_eq!(audit(home, &["verify", "--head", &other]).status.code(), Some(1));
    let output = audit(home, &["verify", "--head", "7"]);
    assert!(output.status.code() == Some(2) && text(&output).contains("--head takes"), "{}", text(&output));
    let output = audit(home, &["verify", "--state", "nowhere"]);
    assert!(output.status.code() == Some(2) && text(&output).contains("no audit log"), "{}", text(&output));
}

/// Stops one new session after the other until the server is gone, and counts those whose stop was answered.
fn keep_stopping(server: &Server, name: &str, stopped: &AtomicU64) {
    let mut client = server.client();
    for n in 0.. {
        let batch: Vec<Value> = (0..6).map(|_| turn(&format!("{name}-{n}"), TEXT)).collect();
        let answer = client.send("POST", "/v1/steps", &[], Value::from(batch).to_string().as_bytes());
        let Ok(answer) = answer else { return };
        assert_eq!(answer.json()[5]["action"], "stop");
        stopped.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_kill_under_load_loses_no_answered_stop() {
    let home = tempfile::tempdir().unwrap();
    let (server, client) = start(home.path());
    drop(client);
    let names = ["a", "b", "c", "d"];
    let stopped = [const { AtomicU64::new(0) }; 4];
    std::thread::scope(|scope| {
        for (name, stopped) in names.iter().zip(&stopped) {
            let server = &server;
            scope.spawn(move || keep_stopping(server, name, stopped));
        }
        let is_busy = || stopped.iter().all(|stopped| stopped.load(Ordering::Relaxed) > 20);
        wait_for("many sessions are stopped", is_busy);
        server.signal("KILL");
    });
    assert_eq!(server.wait().0, None);
    let server = Server::start(home.path(), &["--profile", "turn-similarity"]);
    assert_intact(home.path(), &[]);
    drop(server);
    let recorded = query(home.path(), &["--action", "stop", "--limit", "1000000"]);
    for (name, stopped) in names.iter().zip(&stopped) {
        let stopped = stopped.load(Ordering::Relaxed);
        for n in 0..stopped {
            let session = format!("{name}-{n}");
            assert!(recorded.iter().any(|record| record["session"] == session.as_str()), "{session}");
        }
    }
}

#[test]
fn a_log_that_cannot_be_written_is_reported_and_stops_no_agent() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (server, mut client) = start(home);
    assert_eq!(client.get("/readyz").status, 200);
    let folder = home.join(".local/state/deloop/audit");
    std::fs::rename(&folder, home.join("moved")).unwrap();
    segments_in(&home.join("moved")).iter().for_each(|path| std::fs::remove_file(path).unwrap());
    std::fs::write(&folder, "in the way").unwrap();
    stop(&mut client, "s1");
    let answer = client.get("/readyz");
    assert!(answer.status == 503 && answer.error().contains("audit log"), "{answer:?}");
    assert!(client.get("/metrics").text().contains("\ndeloop_audit_failures_total 3\n"));
    std::fs::remove_file(&folder).unwrap();
    assert_eq!(client.get("/readyz").status, 200, "there is room again");
    drop((client, server));
    let all = query(home, &[]);
    assert_eq!((&all[0]["action"], &all[0]["note"]["lost"]), (&json!("log.lost"), &json!(3)));
    let output = audit(home, &["verify"]);
    assert!(
        text(&output).contains("Problem: record 1: it and those up to 2 are missing"),
        "{}",
        text(&output)
    );
}

#[test]
fn a_purge_removes_a_session_and_the_log_verifies() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (server, mut client) = start(home);
    stop(&mut client, "gone\u{1b}[31m");
    stop(&mut client, "stays");
    let refused = audit(home, &["purge", "gone\u{1b}[31m"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("in use by process"), "{}", text(&refused));
    drop((client, server));
    let before = assert_intact(home, &[]);
    let output = run(deloop(home).args(["audit", "purge", "gone\u{1b}[31m"]).env("USER", "alice"), b"");
    assert_eq!((output.status.code(), text(&output).contains("Purged 3 records")), (Some(0), true));
    let head = assert_intact(home, &[]);
    assert_intact(home, &["--head", &head]);
    let since = audit(home, &["verify", "--head", &before]);
    assert!(text(&since).contains("was written after the head"), "{}", text(&since));
    assert_eq!(since.status.code(), Some(1), "whoever can write the log could have written the purge");
    let files: String = segments(home).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(!files.contains("gone") && files.contains("stays") && !files.contains('\u{1b}'));
    let purge = query(home, &["--action", "purge"]).remove(0);
    assert_eq!(purge["actor"], "alice (command line)");
    assert_eq!(query(home, &["--action", "stop"]).iter().filter(|r| r["purged"].is_u64()).count(), 1);
}

#[test]
fn exports_are_harmless_and_complete() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (server, mut client) = start(home);
    let hostile = "=HYPERLINK(\"x\"),\u{1b}]0;t\u{7}\u{202e}\n";
    stop(&mut client, hostile);
    drop((client, server));
    let exported = audit(home, &["export"]);
    assert_eq!(exported.status.code(), Some(0));
    let stored: String = segments(home).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert_eq!(String::from_utf8(exported.stdout).unwrap(), stored);
    let out = audit(home, &["export", "--format", "csv", "--out", "audit.csv", "--action", "stop"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let csv = std::fs::read_to_string(home.join("audit.csv")).unwrap();
    assert_eq!(csv.lines().count(), 2, "{csv}");
    assert!(csv.contains("\"'=HYPERLINK(\"\"x\"\"),"), "{csv}");
    let shown =
        [text(&audit(home, &["query", "--turns"])), text(&audit(home, &["query", "--json"])), csv, stored];
    for text in shown {
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text}");
        assert!(text.contains("HYPERLINK"));
    }
}

#[test]
fn a_project_cannot_set_the_servers_settings() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("deloop.toml"), "[serve.audit]\nkeep = \"text\"\n").unwrap();
    let output = run(deloop(home.path()).args(["trust", "deloop.toml"]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("only your own configuration can set `serve`"), "{}", said(&output));
}

/// Writes a key and the configuration that names it.
fn with_key(home: &Path) -> String {
    let folder = home.join(".config/deloop");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("audit.key"), "0123456789abcdef".repeat(4) + "\n").unwrap();
    configure(home, "[serve.audit]\nkey_file = \"audit.key\"\n");
    folder.join("audit.key").to_str().unwrap().to_owned()
}

/// Removes the payload of the first stop, and adds the record of a purge, with the hashes of both and of the head file.
fn forge_a_purge(home: &Path) {
    let folder = home.join(".local/state/deloop/audit");
    let last = segments(home).pop().unwrap();
    let before = std::fs::read_to_string(&last).unwrap();
    let record = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let newest = record(before.lines().last().unwrap());
    let purge = newest["seq"].as_u64().unwrap() + 1;
    let mut seq = 0;
    let purged: String = before
        .lines()
        .map(|line| match line.split_once(",\"payload\":") {
            Some((chained, _)) if line.contains("decision.stop") && seq == 0 => {
                seq = record(line)["seq"].as_u64().unwrap();
                format!("{chained},\"payload\":{{\"purged\":{purge}}}}}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let payload = "{\"salt\":\"00\"}";
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let chained = format!(
        "{{\"seq\":{purge},\"ts\":{},\"server\":{},\"prev\":{},\"actor\":\"alice\",\"action\":\"session.purge\",\
         \"project\":\"default\",\"note\":{{\"purged\":[[{seq},{seq}]]}},\"private\":\"{}\"",
        newest["ts"],
        newest["server"],
        newest["hash"],
        hash(payload)
    );
    let line = format!("{chained},\"hash\":\"{}\",\"payload\":{payload}}}\n", hash(&chained));
    std::fs::write(&last, purged + &line).unwrap();
    std::fs::write(folder.join("head"), format!("{purge}:{}\n", hash(&chained))).unwrap();
}

#[test]
fn a_forged_purge_passes_alone_and_fails_by_the_noted_head_and_the_key() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let key = with_key(home);
    let (server, mut client) = start(home);
    stop(&mut client, "s1");
    drop((client, server));
    let head = assert_intact(home, &["--key-file", &key]);
    forge_a_purge(home);
    assert_intact(home, &[]);
    for (option, value) in [("--head", &head), ("--key-file", &key)] {
        let output = audit(home, &["verify", option, value]);
        assert_eq!(output.status.code(), Some(1), "{option}: {}", text(&output));
        assert!(text(&output).contains("says that it was purged, but"), "{option}: {}", text(&output));
    }
}

#[test]
fn what_the_key_proves_is_purged_with_the_key_only() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let key = with_key(home);
    let (server, mut client) = start(home);
    stop(&mut client, "s1");
    stop(&mut client, "s2");
    client.send("DELETE", "/v1/sessions/s2", &[], b"").unwrap();
    drop((client, server));
    let refused = audit(home, &["purge", "s1"]);
    assert!(refused.status.code() == Some(2) && text(&refused).contains("--key-file"), "{}", text(&refused));
    let purged = audit(home, &["purge", "s1", "--key-file", &key]);
    assert_eq!(purged.status.code(), Some(0), "{}", text(&purged));
    assert_intact(home, &["--key-file", &key]);
    let output = audit(home, &["verify", "--key-file", &key]);
    assert!(text(&output).contains("records by the key"), "{}", text(&output));

    configure(home, "");
    let server = run(deloop(home).args(["serve", "--listen", "127.0.0.1:0"]), b"");
    assert!(server.status.code() == Some(2) && said(&server).contains("key_file"), "{}", said(&server));
    let inside = home.join(".local/state/deloop/audit.key");
    std::fs::copy(&key, &inside).unwrap();
    let output = audit(home, &["verify", "--key-file", inside.to_str().unwrap()]);
    assert!(output.status.code() == Some(2) && text(&output).contains("state folder"), "{}", text(&output));
}

#[test]
#[ignore = "needs redis-server"]
fn a_truncated_log_and_a_forged_purge_show_by_the_heads_in_redis() {
    let home = tempfile::tempdir().unwrap();
    let (home, redis) = (home.path(), RedisServer::start());
    let url = redis.url();
    let verify = || audit(home, &["verify", "--store", &url]);
    let server =
        Server::start(home, &["--profile", "turn-similarity", "--store", &url, "--store-timeout", "10000"]);
    let mut client = server.client();
    stop(&mut client, "s1");
    client.send("DELETE", "/v1/sessions/s1", &[], b"").unwrap();
    stop(&mut client, "s2");
    drop(client);
    server.signal("TERM");
    server.wait();
    let output = verify();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("by the shared store"), "{}", text(&output));

    let last = segments(home).pop().unwrap();
    let before = std::fs::read_to_string(&last).unwrap();
    forge_a_purge(home);
    assert_intact(home, &[]);
    let output = verify();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("says that it was purged, but"), "{}", text(&output));

    let kept: Vec<&str> = before.lines().collect();
    let (_, kept) = kept.split_last().unwrap();
    let record = serde_json::from_str::<Value>(kept.last().unwrap()).unwrap();
    std::fs::write(&last, kept.join("\n") + "\n").unwrap();
    let head = format!("{}:{}\n", record["seq"], record["hash"].as_str().unwrap());
    std::fs::write(home.join(".local/state/deloop/audit/head"), head).unwrap();
    assert_intact(home, &[]);
    let output = verify();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("missing at the end"), "{}", text(&output));
}
