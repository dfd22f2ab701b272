//! Keys: who is let in, for what, and how often.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, HttpAnswer, Server, add_key};
use super::test_clock::TestClock;
use crate::binary::{deloop, run, said};
use crate::wait::wait_for;

fn keys(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = run(deloop(home).arg("keys").args(arguments), b"");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output))
}

fn key_file(home: &Path) -> PathBuf {
    home.join(".local/state/deloop/keys.json")
}

/// Writes the user's own configuration.
pub(super) fn configure(home: &Path, text: &str) {
    std::fs::create_dir_all(home.join(".config/deloop")).unwrap();
    std::fs::write(home.join(".config/deloop/deloop.toml"), text).unwrap();
}

fn get(client: &mut Client, path: &str) -> u16 {
    client.get(path).status
}

/// Lets the server look at its key file, and waits until a request gets this status.
fn soon(clock: &TestClock, status: u16, mut request: impl FnMut() -> HttpAnswer) -> HttpAnswer {
    clock.advance(Duration::from_secs(1));
    let mut answer = request();
    wait_for(&format!("the status {status}"), || {
        answer = request();
        answer.status == status
    });
    answer
}

#[test]
fn a_key_is_shown_once_and_stored_as_a_hash() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert!(keys(home, &["list"]).1.starts_with("No keys."));
    let key = add_key(home, &["ci", "--scope", "read,ingest,read", "--project", "web", "--expires", "90d"]);
    assert!(key.starts_with("dlp_") && key.len() == 81, "{key}");
    let secret = key.rsplit('_').next().unwrap();
    let file = key_file(home);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (_, listed) = keys(home, &["list"]);
    assert!(listed.contains("ci (") && listed.contains("ingest, read; project web;"), "{listed}");
    assert!(listed.contains("expires 20"), "{listed}");
    for text in [&listed, &std::fs::read_to_string(&file).unwrap()] {
        assert!(!text.contains(secret), "{text}");
    }
    for (arguments, why) in [
        (&["add", "ci", "--scope", "read"][..], "deloop keys revoke ci"),
        (&["add", "a/b", "--scope", "read"], "letters, digits"),
        (&["add", "x", "--scope", "root"], "ingest, attend, read, operate, admin"),
        (&["add", "x"], "--scope"),
        (&["add", "x", "--scope", "read", "--project", "a/b"], "letters, digits"),
        (&["add", "x", "--scope", "read", "--project", "a", "--all-projects"], "cannot be used with"),
        (&["add", "x", "--scope", "read", "--expires", "soon"], "90d"),
        (&["revoke", "nobody"], "deloop keys list"),
    ] {
        let (code, text) = keys(home, arguments);
        assert!(code == Some(2) && text.contains(why), "{arguments:?}: {text}");
    }
    let (code, text) = keys(home, &["revoke", "ci"]);
    assert!(code == Some(0) && text.contains("refuses every request"), "{text}");
    let other = home.join("other");
    let state = ["--state", other.to_str().unwrap()];
    add_key(home, &["ci", "--scope", "read", state[0], state[1]]);
    assert!(other.join("keys.json").exists());
    std::fs::write(other.join("keys.json"), "{}").unwrap();
    for arguments in [["keys", "list"], ["serve", "--attended"]] {
        let output = run(deloop(home).args(arguments).args(state), b"");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains("keys.json: not a key file"), "{}", said(&output));
    }
}

const ROUTES: [(&str, &str, &str); 14] = [
    ("POST", "/v1/steps", "ingest"),
    ("GET", "/v1/sessions", "read"),
    ("GET", "/v1/sessions/s1", "read"),
    ("GET", "/v1/sessions/s1/checkpoint", "read"),
    ("GET", "/v1/swarms", "read"),
    ("GET", "/v1/swarms/w1", "read"),
    ("GET", "/readyz", "read"),
    ("GET", "/metrics", "read"),
    ("POST", "/v1/sessions/s1/reset", "operate"),
    ("POST", "/v1/sessions/s1/end", "operate"),
    ("POST", "/v1/sessions/s1/message", "operate"),
    ("PUT", "/v1/sessions/s1/checkpoint", "operate"),
    ("DELETE", "/v1/swarms/w1", "operate"),
    ("GET", "/nothing", "read"),
];

#[test]
fn every_route_needs_its_scope() {
    let home = tempfile::tempdir().unwrap();
    let scopes = ["ingest", "read", "operate", "admin"];
    let keys = scopes.map(|scope| add_key(home.path(), &[scope, "--scope", scope, "--all-projects"]));
    let server = Server::start(home.path(), &["--profile", "turn-hash"]);
    let body = json!({"type": "turn", "session": "s1", "swarm": "w1", "text": "Hello."}).to_string();
    for (method, path, needed) in ROUTES {
        let answer = server.client().send(method, path, &[], body.as_bytes()).unwrap();
        if path == "/readyz" {
            assert_eq!(answer.json(), json!({"status": "ready"}), "whether it is ready is no secret");
        } else {
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Bearer")), "{path}");
            assert!(answer.error().contains("Authorization: Bearer KEY"), "{answer:?}");
        }
        for (scope, key) in scopes.iter().zip(&keys) {
            let answer = server.client_with(key).send(method, path, &[], body.as_bytes()).unwrap();
            if *scope == needed || *scope == "admin" {
                assert!(![401, 403, 500].contains(&answer.status), "{scope} {method} {path}: {answer:?}");
            } else if path == "/readyz" {
                assert_eq!(answer.status, 200, "{scope} {method} {path}");
            } else {
                assert_eq!(answer.status, 403, "{scope} {method} {path}");
                assert!(answer.error().contains(&format!("the scope `{needed}`")), "{answer:?}");
            }
        }
    }
    assert_eq!(get(&mut server.client(), "/healthz"), 200, "needs no key");
    // A page in a browser gets nothing, with or without a key.
    let mut client = server.client_with(&keys[3]);
    for path in ["/v1/sessions", "/healthz"] {
        let answer = client.send("GET", path, &[("origin", "https://evil.example")], b"").unwrap();
        assert!(answer.status == 403 && answer.error().contains("web page"), "{answer:?}");
    }
}

#[test]
fn missing_unknown_expired_and_revoked_keys_get_the_same_answer() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let good = add_key(home, &["good", "--scope", "read"]);
    let expired = add_key(home, &["old", "--scope", "admin", "--all-projects", "--expires", "1m"]);
    let revoked = add_key(home, &["gone", "--scope", "read"]);
    let mut file: Value = serde_json::from_slice(&std::fs::read(key_file(home)).unwrap()).unwrap();
    file["keys"][1]["expires"] = json!(1_000);
    std::fs::write(key_file(home), file.to_string()).unwrap();
    assert!(keys(home, &["list"]).1.contains("expired 1970-01-01"));
    let clock = TestClock::new(home);
    let server = Server::start_with(clock.deloop(home), &[]);
    assert_eq!(get(&mut server.client_with(&revoked), "/v1/sessions"), 200);
    assert_eq!(keys(home, &["revoke", "gone"]).0, Some(0));
    soon(&clock, 401, || server.client_with(&revoked).get("/v1/sessions"));
    let half = &good[..good.len() - 64];
    let forged = format!("{half}{}", "0".repeat(64));
    let unknown = format!("dlp_{}_{}", "0".repeat(12), "0".repeat(64));
    for path in ["/v1/sessions", "/v1/sessions/s1", "/nothing", "/metrics"] {
        let missing = server.client().get(path).whole();
        assert_eq!(missing.0, 401);
        for key in [&expired, &revoked, &forged, &unknown, "dlp_", "x"] {
            assert_eq!(server.client_with(key).get(path).whole(), missing, "{path}");
        }
    }
    assert_eq!(get(&mut server.client_with(&good), "/v1/sessions"), 200);
}

#[test]
fn a_running_server_follows_the_key_file_and_never_opens() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let clock = TestClock::new(home);
    let server = Server::start_with(clock.deloop(home), &[]);
    assert_eq!(get(&mut server.client(), "/v1/sessions"), 200, "without keys, this machine needs none");
    let key = add_key(home, &["first", "--scope", "read"]);
    soon(&clock, 401, || server.client().get("/v1/sessions"));
    assert_eq!(get(&mut server.client_with(&key), "/v1/sessions"), 200);
    let file = key_file(home);
    let text = std::fs::read(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    let answer = soon(&clock, 503, || server.client_with(&key).get("/v1/sessions"));
    assert!(answer.error().contains("can't read its keys"), "{answer:?}");
    assert_eq!(get(&mut server.client(), "/healthz"), 200);
    std::fs::write(&file, &text).unwrap();
    soon(&clock, 200, || server.client_with(&key).get("/v1/sessions"));
    std::fs::remove_file(&file).unwrap();
    soon(&clock, 401, || server.client_with(&key).get("/v1/sessions"));
    assert_eq!(get(&mut server.client(), "/v1/sessions"), 401, "a lost file doesn't open the server");
    server.signal("TERM");
    let (code, said) = server.wait();
    assert!(code == Some(0) && said.contains("keys.json: not a key file"), "{said}");
    assert_eq!(said.matches("keys.json").count(), 1, "once: {said}");
}

#[test]
fn a_key_is_for_its_project() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let web = add_key(home, &["web", "--scope", "admin", "--project", "web"]);
    let all = add_key(home, &["all", "--scope", "admin", "--all-projects"]);
    let server = Server::start(home, &["--profile", "turn-hash"]);
    let (mut web, mut all) = (server.client_with(&web), server.client_with(&all));
    let step = json!({"type": "turn", "session": "s1", "text": "Hello."}).to_string();
    assert_eq!(all.post("/v1/steps?project=existing", &step).status, 200);
    for (method, path, _) in ROUTES {
        let at = |project: &str| format!("{path}?project={project}");
        let existing = web.send(method, &at("existing"), &[], b"").unwrap().whole();
        assert_eq!(existing.0, 403, "{path}: {existing:?}");
        for other in ["unknown", "", "..%2f..", "WEB", "%00", "a%2Fb"] {
            assert_eq!(web.send(method, &at(other), &[], b"").unwrap().whole(), existing, "{path} {other}");
        }
    }
    assert_eq!(get(&mut web, "/v1/sessions?project=web"), 200);
    assert_eq!(get(&mut web, "/v1/sessions"), 200);
    for path in ["/v1/sessions?project=web&project=existing", "/v1/sessions?project=existing&project=web"] {
        assert_eq!(get(&mut web, path), 400, "{path}");
    }
    let answer = web.get("/metrics");
    assert!(answer.status == 403 && answer.error().contains("--all-projects"), "counts of all: {answer:?}");
    assert_eq!((get(&mut web, "/readyz"), get(&mut all, "/metrics")), (200, 200));
    assert_eq!(get(&mut all, "/v1/sessions?project=a%2Fb"), 400);
}

#[test]
fn a_key_has_a_rate() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    configure(home, "[serve.limits]\nrequests_per_second = 3\nsteps_per_second = 10\nburst = 4\n");
    let (one, two) =
        (add_key(home, &["one", "--scope", "admin"]), add_key(home, &["two", "--scope", "admin"]));
    let clock = TestClock::new(home);
    let server = Server::start_with(clock.deloop(home), &["--profile", "turn-hash"]);
    let (mut one, mut two) = (server.client_with(&one), server.client_with(&two));
    for _ in 0..12 {
        assert_eq!(get(&mut one, "/v1/sessions"), 200);
    }
    let refused = one.get("/v1/sessions");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert!(refused.error().contains("3 requests per second"), "{refused:?}");
    assert!(refused.error().contains("requests_per_second"), "{refused:?}");
    clock.advance(Duration::from_secs(1));
    let statuses: Vec<u16> = (0..4).map(|_| get(&mut one, "/v1/sessions")).collect();
    assert_eq!(statuses, [200, 200, 200, 429], "three in a second");
    assert_eq!(get(&mut two, "/v1/sessions"), 200, "each key has its own");
    let step = json!({"type": "turn", "session": "s1", "text": "Hello."});
    let batch = Value::from(vec![step.clone(); 100]).to_string();
    assert_eq!(two.post("/v1/steps", &batch).status, 200, "a batch may be larger than a burst");
    let refused = two.post("/v1/steps", &step.to_string());
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("7")), "60 steps too many");
    assert!(refused.error().contains("10 steps per second"), "{refused:?}");
    assert_eq!(two.get("/v1/sessions/s1").json()["steps"], 100, "what is refused isn't stored");
    clock.advance(Duration::from_secs(7));
    assert_eq!(two.post("/v1/steps", &step.to_string()).status, 200, "after as long as it said");
}

#[test]
fn failures_are_limited_per_address_and_lock_nobody_out() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let key = add_key(home, &["good", "--scope", "read"]);
    let clock = TestClock::new(home);
    let server = Server::start_with(clock.deloop(home), &[]);
    let mut client = server.client();
    let statuses: Vec<u16> = (0..50).map(|_| get(&mut client, "/v1/sessions")).collect();
    assert!(statuses.iter().all(|status| *status == 401), "{statuses:?}");
    let refused = client.get("/v1/sessions");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert!(refused.error().contains("this address"), "{refused:?}");
    assert_eq!(get(&mut server.client_with(&key), "/v1/sessions"), 200);
    clock.advance(Duration::from_secs(1));
    let statuses: Vec<u16> = (0..6).map(|_| get(&mut client, "/v1/sessions")).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429], "five in a second");
}

#[test]
fn other_machines_need_a_key_and_tls_or_a_proxy() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let refused = |arguments: &[&str]| {
        let output = run(deloop(home).args(["serve", "--listen", "0.0.0.0:0"]).args(arguments), b"");
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    assert!(refused(&["--allow-plain-http"]).contains("deloop keys add"));
    let key = add_key(home, &["ci", "--scope", "read"]);
    let text = refused(&[]);
    assert!(text.contains("--tls-cert") && text.contains("--allow-plain-http"), "{text}");
    configure(home, "[serve]\nhosts = [\"deloop.example\"]\n");
    let server = Server::start(home, &["--listen", "0.0.0.0:0", "--allow-plain-http"]);
    assert_eq!(get(&mut server.client(), "/v1/sessions"), 401);
    let mut client = server.client_with(&key);
    for (host, status) in [
        ("deloop.example", 200),
        ("Deloop.Example:7430", 200),
        ("192.0.2.1:7430", 200),
        ("localhost", 200),
        ("evil.example", 403),
        ("deloop.example.evil.example", 403),
    ] {
        let answer = client.send("GET", "/v1/sessions", &[("host", host)], b"").unwrap();
        assert_eq!(answer.status, status, "{host}: {answer:?}");
        assert!(status == 200 || answer.error().contains("`hosts` under `[serve]`"), "{answer:?}");
    }
}

#[test]
fn a_project_folder_cannot_configure_the_server() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("deloop.toml"), "[serve]\nhosts = [\"evil.example\"]\n").unwrap();
    let output = run(deloop(home.path()).args(["trust", "deloop.toml"]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("only your own configuration can set `serve`"), "{}", said(&output));
}
