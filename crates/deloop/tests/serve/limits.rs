//! Each refusal says why, and a client that misbehaves keeps nobody else waiting.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, HttpAnswer, Server};
use super::test_clock::TestClock;
use crate::binary::{deloop, run, said, stream};
use crate::wait::wait_for;

#[test]
fn only_addresses_of_this_machine_are_listened_on() {
    let home = tempfile::tempdir().unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7430"] {
        let output = run(deloop(home.path()).args(["serve", "--listen", address]), b"");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("has no keys") && said.contains("deloop keys add") && said.contains("127.0.0.1:"),
            "{said}"
        );
    }
    let server = Server::start(home.path(), &[]);
    let taken = server.address.to_string();
    let output = run(deloop(home.path()).args(["serve", "--state", "other", "--listen", &taken]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains(&taken), "{}", said(&output));
    let output = run(deloop(home.path()).args(["serve", "--listen", "127.0.0.1:0"]), b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("another `deloop serve` uses it"), "{}", said(&output));
}

#[test]
fn web_pages_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    for header in [("origin", "https://evil.example"), ("host", "evil.example:7430"), ("origin", "null")] {
        let answer = client.send("GET", "/v1/sessions", &[header], b"").unwrap();
        assert_eq!(answer.status, 403, "{header:?}");
        assert!(answer.error().contains("web page"), "{answer:?}");
    }
    let answer = client.send("GET", "/v1/sessions", &[("host", "localhost:7430")], b"").unwrap();
    assert_eq!(answer.status, 200);
}

#[test]
fn large_bodies_and_batches_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    let head = client.head("POST", "/v1/steps", (64 << 20) + 1, &[]);
    client.write(head.as_bytes()).unwrap();
    let answer = client.read().unwrap();
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));
    assert!(answer.error().contains("64 MiB"), "{answer:?}");

    let mut client = server.client();
    let many = |n: usize| format!("[{}]", vec!["1"; n].join(","));
    let answer = client.post("/v1/steps", &many(10_001));
    assert_eq!(answer.status, 413);
    assert!(answer.error().contains("10000 steps"), "{answer:?}");
    let mut client = server.client();
    let answer = client.post("/v1/steps", &many(10_000));
    assert_eq!((answer.status, answer.json().as_array().unwrap().len()), (200, 10_000));
    let kind = [("content-type", "application/x-ndjson; charset=utf-8")];
    let answer = client.send("POST", "/v1/steps", &kind, "1\n".repeat(10_001).as_bytes()).unwrap();
    assert_eq!(answer.status, 413);
    let mut client = server.client();
    let answer = client.send("POST", "/v1/steps", &[("content-encoding", "gzip")], b"\x1f\x8b").unwrap();
    assert_eq!(answer.status, 415);
    assert!(answer.error().contains("compressed"), "{answer:?}");
}

/// A body without a length is counted while it is read.
#[test]
fn a_body_of_unknown_length_has_the_same_limit() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    let head =
        format!("POST /v1/steps HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n", server.address);
    let mebibyte = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    let sent = client.write(head.as_bytes()).and_then(|()| {
        (0..66).try_for_each(|_| client.write(mebibyte.as_bytes()))?;
        client.write(b"0\r\n\r\n")
    });
    // The connection may be gone before the answer is read.
    if let (Ok(()), Ok(answer)) = (sent, client.read()) {
        assert_eq!(answer.status, 413);
    }
    let metrics = server.client().get("/metrics").text();
    assert!(metrics.contains("deloop_request_errors_total{class=\"4xx\"} 1\n"), "{metrics}");
}

#[test]
fn hostile_json_costs_its_own_request_alone() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &["--profile", "doom-loop"]);
    let mut client = server.client();
    let deep = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"type":"call","session":"deep","tool":"t","args":{open}{close}}}"#)
    };
    for depth in [10, 127, 200, 100_000] {
        let line = deep(depth) + "\n";
        let expected = stream(home.path(), &["--profile", "doom-loop"], line.as_bytes());
        let answers = client.lines(&line);
        assert_eq!(answers[0]["action"], expected[0]["action"], "{depth}");
        client.post("/v1/sessions/deep/reset", "");
    }
    for body in ["", "{", "[", "[{}", "null", "\"text\"", "{\"type\":\"nothing\"}", "\u{0}"] {
        let answer = client.post("/v1/steps", body);
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(!answer.error().is_empty());
    }
    let secret = r#"{"type":"call","tool":"t","args":{},"ok":"sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAA"#;
    let answer = client.post("/v1/steps", secret);
    assert!(answer.status == 400 && !answer.error().contains("AAAAAAAA"), "{answer:?}");
}

/// Sends half a request, whose body of this length never comes; returns the answer if it isn't let in.
fn half_a_request(server: &Server, length: usize) -> Result<Client, HttpAnswer> {
    let mut client = server.client();
    client.begin("POST", "/v1/steps", length)?;
    client.write(b"{").unwrap();
    Ok(client)
}

#[test]
fn a_busy_server_says_so() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let waiting: Vec<Client> = (0..256).map(|_| half_a_request(&server, 100).unwrap()).collect();
    let mut client = server.client();
    let refused = client.get("/v1/sessions");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert!(refused.error().contains("256 requests"), "{refused:?}");
    assert_eq!(client.get("/healthz").status, 200, "a busy server is a healthy one");
    drop(waiting);
    wait_for("there is room again", || client.get("/v1/sessions").status == 200);
}

#[test]
fn few_large_bodies_are_in_memory_at_a_time() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let large = (1 << 20) + 1;
    let waiting: Vec<Client> = (0..16).map(|_| half_a_request(&server, large).unwrap()).collect();
    let refused = half_a_request(&server, large).err().expect("a refusal");
    assert_eq!(refused.status, 503);
    assert!(refused.error().contains("16 requests of more than 1 MiB"), "{refused:?}");
    let step = json!({"type": "turn", "session": "s1", "text": "Small ones go on."});
    assert_eq!(server.client().step(&step)["action"], "continue");
    drop(waiting);
    let body = vec![b' '; large];
    // While it is refused, the connection may be gone before the body is sent.
    let send = || server.client().send("POST", "/v1/steps", &[], &body);
    wait_for("there is room again", || send().is_ok_and(|answer| answer.status == 400));
}

/// Half a head is waited for ten seconds, and half a body thirty. What is half a second early in each case is answered.
#[test]
fn half_a_request_is_given_up_on() {
    let home = tempfile::tempdir().unwrap();
    let clock = TestClock::new(home.path());
    let server = Server::start_with(clock.deloop(home.path()), &[]);
    let half_a_head = || {
        let mut client = server.client();
        // Its time begins with the end of this answer.
        assert_eq!(client.get("/healthz").status, 200);
        client.write(b"GET /healthz HTTP/1.1\r\nhost: 127").unwrap();
        client
    };
    let (mut late_head, mut late_body) = (half_a_head(), half_a_request(&server, 2).unwrap());
    clock.advance(Duration::from_millis(500));
    let (mut early_head, mut early_body) = (half_a_head(), half_a_request(&server, 2).unwrap());
    let step = json!({"type": "turn", "session": "s1", "text": "Others go on."});
    assert_eq!(server.client().step(&step)["action"], "continue");
    clock.advance(Duration::from_millis(9_500));
    assert!(late_head.read().is_err());
    early_head.write(b".0.0.1\r\n\r\n").unwrap();
    assert_eq!(early_head.read().unwrap().status, 200, "there was half a second left");
    clock.advance(Duration::from_secs(20));
    let answer = late_body.read().unwrap();
    assert_eq!(answer.status, 408);
    assert!(answer.error().contains("30 seconds"), "{answer:?}");
    early_body.write(b"}").unwrap();
    assert_eq!(early_body.read().unwrap().status, 400, "there was half a second left");
}

/// The database is locked by another program: nothing is stored, and the server says so.
#[test]
fn a_database_that_cannot_be_written_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("broker");
    let server = Server::start(home.path(), &["--state", state.to_str().unwrap()]);
    let mut client = server.client();
    assert_eq!(client.get("/readyz").json(), json!({"status": "ready"}));
    let other = rusqlite::Connection::open(state.join("server.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // An answer doesn't wait for the database.
    wait_for("it isn't ready", || client.get("/readyz").status == 503);
    let answer = client.get("/readyz");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    // Steps are in the log, so they are answered and not lost.
    let step: Value = json!({"type": "turn", "session": "s1", "text": "Kept."});
    assert_eq!(client.step(&step)["step"], 0);
    assert_eq!(client.get("/healthz").status, 200);
    other.execute_batch("ROLLBACK").unwrap();
    wait_for("it is ready", || client.get("/readyz").status == 200);
    assert_eq!(client.step(&step)["step"], 1);
    server.signal("TERM");
    let (code, said) = server.wait();
    assert!(code == Some(0) && said.contains("locked") && !said.contains("Kept."), "{said}");
}
