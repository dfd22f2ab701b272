//! Projects: what belongs to another looks exactly like what doesn't exist.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::client::{HttpAnswer, Server, add_key};
use super::test_clock::TestClock;
use crate::binary::{deloop, run};
use crate::wait::wait_for;

/// Every route that names something: method, path, and whether it names a session or a swarm.
const NAMED: [(&str, &str, &str); 8] = [
    ("GET", "/v1/sessions/NAME", "victim"),
    ("GET", "/v1/sessions/NAME/checkpoint", "victim"),
    ("GET", "/v1/swarms/NAME", "herd"),
    ("POST", "/v1/sessions/NAME/message", "victim"),
    ("POST", "/v1/sessions/NAME/reset", "victim"),
    ("DELETE", "/v1/swarms/NAME", "herd"),
    ("POST", "/v1/sessions/NAME/end", "victim"),
    ("PUT", "/v1/sessions/NAME/checkpoint", "victim"),
];

#[test]
fn what_belongs_to_others_does_not_exist() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let [a, b] = ["a", "b"].map(|name| add_key(home, &[name, "--scope", "admin", "--project", name]));
    let server = Server::start(home, &["--profile", "doom-loop"]);
    let (mut owner, mut other) = (server.client_with(&a), server.client_with(&b));
    let call = |session: &str| json!({"type": "call", "session": session, "swarm": "herd", "tool": "bash", "args": {"command": "ls"}});
    owner.step(&call("victim"));
    let before = owner.get("/v1/sessions/victim").json();
    let checkpoint = owner.get("/v1/sessions/victim/checkpoint").text();
    let swarm = owner.get("/v1/swarms/herd").json();

    assert_eq!(other.get("/v1/sessions").json(), json!({"sessions": [], "next": null}));
    assert_eq!(other.get("/v1/swarms").json(), json!({"swarms": []}));
    for (method, path, name) in NAMED {
        let mut ask = |name: &str| -> (HttpAnswer, String) {
            let body = match path {
                _ if method == "PUT" => checkpoint.as_bytes(),
                _ => br#"{"text":"Stop."}"#,
            };
            let answer = other.send(method, &path.replace("NAME", name), &[], body).unwrap();
            // Both names have the same length, so that the lengths of the answers agree.
            let text = answer.text().replace(&format!("\"{name}\""), "\"NAME\"");
            (answer, text)
        };
        let unknown = "n".repeat(name.len());
        let ((foreign, foreign_text), (nothing, nothing_text)) = (ask(name), ask(&unknown));
        assert_eq!(foreign_text, nothing_text, "{method} {path}");
        let (foreign, nothing) = (foreign.whole(), nothing.whole());
        assert_eq!((foreign.0, foreign.1), (nothing.0, nothing.1), "{method} {path}");
    }
    // The same names in another project are other sessions and another swarm.
    other.step(&call("second"));
    other.step(&call("victim"));
    assert_eq!(owner.get("/v1/sessions/victim").json(), before);
    assert_eq!(owner.get("/v1/swarms/herd").json(), swarm);
    assert_eq!(owner.get("/v1/sessions").json()["sessions"], json!(["victim"]));
}

/// Reads events, with this key.
struct Listener(TcpStream);

impl Listener {
    fn open(server: &Server, key: &str) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let head = format!("host: {}\r\nauthorization: Bearer {key}", server.address);
        stream.write_all(format!("GET /v1/events HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap();
        Self(stream)
    }

    /// What came until `end` did or the stream ended, and whether it ended.
    fn until(&mut self, end: &str) -> (String, bool) {
        let (mut text, mut buffer) = (String::new(), [0; 4096]);
        while !text.contains(end) {
            match self.0.read(&mut buffer) {
                Ok(0) | Err(_) => return (text, true),
                Ok(read) => text += &String::from_utf8_lossy(&buffer[..read]),
            }
            if text.ends_with("0\r\n\r\n") {
                return (text, true);
            }
        }
        (text, false)
    }
}

#[test]
fn events_stay_in_their_project_and_end_with_the_key() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let [a, b, gone] = [("a", "a"), ("b", "b"), ("gone", "a")]
        .map(|(name, project)| add_key(home, &[name, "--scope", "admin", "--project", project]));
    let ingest = add_key(home, &["ingest", "--scope", "ingest", "--project", "a"]);
    let clock = TestClock::new(home);
    let server = Server::start_with(clock.deloop(home), &["--profile", "turn-hash"]);
    assert_eq!(server.client().get("/v1/events").status, 401);
    assert_eq!(server.client_with(&ingest).get("/v1/events").status, 403);
    assert_eq!(server.client_with(&b).get("/v1/events?project=a").status, 403);
    let [mut own, mut other, mut revoked] = [&a, &b, &gone].map(|key| Listener::open(&server, key));
    for listener in [&mut own, &mut other, &mut revoked] {
        let (head, _) = listener.until("\r\n\r\n");
        assert!(head.contains("HTTP/1.1 200 ") && head.contains("text/event-stream"), "{head}");
    }
    let repeat = |key: &str, session: &str| {
        let mut client = server.client_with(key);
        for _ in 0..2 {
            client.step(&json!({"type": "turn", "session": session, "text": "Again."}));
        }
    };
    repeat(&a, "session-1");
    assert!(own.until("loop_detected").0.contains("loop_detected"));
    assert!(revoked.until("loop_detected").0.contains("loop_detected"));
    assert_eq!(run(deloop(home).args(["keys", "revoke", "gone"]), b"").status.code(), Some(0));
    clock.advance(Duration::from_secs(1));
    wait_for("the key is refused", || server.client_with(&gone).get("/v1/sessions").status == 401);
    repeat(&a, "session-2");
    // What came before the key was revoked may still be on its way.
    let (text, ended) = revoked.until("session-2");
    assert!(ended && !text.contains("session-2"), "{text}");
    // An event of its own project is the first that the other listener gets.
    repeat(&b, "session-3");
    let (text, ended) = other.until("session-3");
    assert!(!ended && !text.contains("session-1") && !text.contains("session-2"), "{text}");
}
