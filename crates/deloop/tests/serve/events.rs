//! `GET /v1/events`: what happens, as it happens.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::Server;
use super::test_clock::TestClock;

/// A connection that events come over.
pub(crate) struct EventStream {
    stream: BufReader<TcpStream>,
}

impl EventStream {
    pub(crate) fn open(server: &Server, path: &str, after: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let after = after.map_or_else(String::new, |id| format!("last-event-id: {id}\r\n"));
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\n{after}\r\n", server.address).unwrap();
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        assert!(line.contains("200"), "{line}");
        while line.trim() != "" {
            line.clear();
            stream.read_line(&mut line).unwrap();
        }
        Self { stream }
    }

    /// Reads a line of the body; `None` at its end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// Waits for the next event. Returns its id too.
    pub(crate) fn next(&mut self) -> (String, Value) {
        let (mut id, mut data) = (String::new(), Value::Null);
        loop {
            let line = self.line().expect("an event");
            match line.split_once(": ") {
                Some(("id", text)) => id = text.to_owned(),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                _ if line.is_empty() && !data.is_null() => return (id, data),
                _ => {}
            }
        }
    }

    /// Returns whether the server ended the stream.
    fn ends(&mut self) -> bool {
        while let Some(line) = self.line() {
            if line == "0" {
                return true;
            }
        }
        true
    }
}

#[test]
fn warnings_and_ends_are_events_once_and_a_listener_can_resume() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &["--profile", "turn-similarity"]);
    let mut all = EventStream::open(&server, "/v1/events", None);
    let mut other = EventStream::open(&server, "/v1/events?project=other", None);
    let mut ends = EventStream::open(&server, "/v1/events?kinds=session.terminated,budget.warning", None);
    let mut client = server.client();
    for _ in 0..8 {
        client.step(&json!({"type": "turn", "session": "s1", "text": "Let me check the price and decide."}));
    }
    client.step(&json!({"type": "usage", "session": "s1", "model": "m", "input_tokens": 10, "output_tokens": 2, "cost_usd": 0.5}));
    let seen: Vec<(String, Value)> = (0..6).map(|_| all.next()).collect();
    let kinds: Vec<&str> = seen.iter().map(|(_, event)| event["event"].as_str().unwrap()).collect();
    let expected =
        ["loop_detected", "alert", "loop_detected", "session.terminated", "alert", "cost.attributed"];
    assert_eq!(kinds, expected);
    assert!(seen.iter().all(|(_, event)| event["project"] == "default" && event["session"] == "s1"));
    let (_, end) = ends.next();
    assert!(end["reason"].as_str().unwrap().contains("Session will be terminated"), "{end}");

    let mut resumed = EventStream::open(&server, "/v1/events", Some(&seen[2].0));
    let again: Vec<Value> = (0..3).map(|_| resumed.next().1).collect();
    let known: Vec<&Value> = seen.iter().map(|(_, event)| event).collect();
    assert!(again.iter().all(|event| known.contains(&event)), "{again:?}");
    server.signal("TERM");
    assert!(all.ends() && other.ends());
    assert_eq!(server.wait().0, Some(0));
}

/// A client has ten seconds to send a request; an answer that goes on for longer isn't a request that is late.
#[test]
fn a_listener_stays_connected_while_nothing_happens() {
    let home = tempfile::tempdir().unwrap();
    let clock = TestClock::new(home.path());
    let server = Server::start_with(clock.deloop(home.path()), &[]);
    let mut events = EventStream::open(&server, "/v1/events", None);
    for _ in 0..3 {
        let mut idle = server.client();
        assert_eq!(idle.get("/healthz").status, 200);
        clock.advance(Duration::from_secs(12));
        assert!(idle.read().is_err(), "a connection on which no request comes is closed");
    }
    server.client().step(&json!({"type": "usage", "session": "s1", "model": "m", "input_tokens": 10, "output_tokens": 2, "cost_usd": 0.5}));
    assert_eq!(events.next().1["event"], "cost.attributed");
}

#[test]
fn a_wrong_position_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let answer = server.client().send("GET", "/v1/events", &[("last-event-id", "x")], b"").unwrap();
    assert!(answer.status == 400 && answer.error().contains("Last-Event-ID"), "{answer:?}");
}
