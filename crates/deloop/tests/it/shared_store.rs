//! `deloop stream --store`: streams on many machines share sessions and swarms.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::binary::{deloop, lines, run, said};
use crate::redis_server::RedisServer;

/// A stream that is kept open, as a harness does.
struct OpenStream {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl OpenStream {
    fn start(home: &std::path::Path, url: &str) -> Self {
        let mut command = deloop(home);
        command.args(["stream", "--profile", "doom-loop", "--store", url]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, input, output }
    }

    fn step(&mut self, step: &Value) -> Value {
        writeln!(self.input, "{step}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Ends it and returns what it printed on stderr.
    fn end(self) -> String {
        drop(self.input);
        said(&self.process.wait_with_output().unwrap())
    }
}

fn read(session: &str, id: usize) -> Value {
    json!({"type": "call", "session": session, "swarm": "docs", "id": format!("c{id}"), "tool": "read",
        "args": {"path": "plan.md"}})
}

fn other(session: &str, n: usize) -> Value {
    json!({"type": "call", "session": session, "id": format!("o{n}"), "tool": "read",
        "args": {"path": format!("{n}.md")}})
}

#[test]
#[ignore = "needs redis-server"]
fn workers_of_two_streams_form_one_swarm() {
    let server = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let mut streams = [0; 2].map(|_| OpenStream::start(home.path(), &server.url()));
    for n in 1..=11 {
        let (stream, worker) = (n % 2, format!("w{}", n % 2));
        let decision = streams[stream].step(&read(&worker, n));
        // The calls of one worker are far apart, so only the swarm repeats itself.
        streams[stream].step(&other(&worker, n));
        let message = decision["message"].as_str().unwrap_or_default();
        assert_eq!(decision["action"], if n < 10 { "continue" } else { "nudge" }, "call {n}: {decision}");
        assert_eq!(message.contains("GLOBAL DOOM LOOP"), n >= 10, "call {n}: {message}");
        assert_eq!(message.contains(&format!("{n}")), n >= 10, "call {n}: {message}");
    }
    let moved = streams[0].step(&json!({"type": "state", "session": "w1", "swarm": "docs"}));
    assert_eq!(moved["step"], 12, "a session continues on another machine: {moved}");
    assert_eq!(moved["swarm_state"]["fingerprints"][0]["workers"], json!(["w1", "w0"]), "{moved}");
    assert_eq!(streams.map(OpenStream::end), ["", ""]);
}

#[test]
#[ignore = "needs redis-server"]
fn a_step_sent_again_counts_once_and_a_restart_loses_nothing() {
    let server = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    for n in 1..=9 {
        for _ in 0..2 {
            let mut stream = OpenStream::start(home.path(), &server.url());
            stream.step(&read(&format!("w{}", n % 3), n));
            assert_eq!(stream.end(), "");
        }
    }
    let mut stream = OpenStream::start(home.path(), &server.url());
    let decision = stream.step(&read("w9", 10));
    assert_eq!(decision["findings"][0]["count"], 10, "{decision}");
}

/// Waits until a server that hung has carried out what it was sent before. It reads from all connections in turn, and
/// accepts them in order, so the first answer may come before the others, but not the second.
fn catch_up(server: &RedisServer) {
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.url().trim_start_matches("redis://")).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert_eq!(answer, "+PONG\r\n");
    }
}

#[test]
#[ignore = "needs redis-server"]
fn agents_continue_while_the_server_is_away_and_are_checked_again_after() {
    let mut server = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let mut stream = OpenStream::start(home.path(), &server.url());
    let same = |n| json!({"type": "call", "session": "s", "id": format!("c{n}"), "tool": "read", "args": {"path": "a"}});
    assert_eq!(stream.step(&same(1))["step"], 0);
    assert_eq!(stream.step(&same(2))["step"], 1);
    server.signal("STOP");
    for n in 3..6 {
        assert_eq!(stream.step(&same(n))["action"], "continue", "although the server still hangs");
    }
    server.signal("CONT");
    catch_up(&server);
    let decision = stream.step(&same(6));
    assert_eq!(decision["action"], "nudge", "{decision}");
    server.end();
    assert_eq!(stream.step(&same(7))["action"], "continue");
    server.start_again();
    assert_eq!(stream.step(&same(8))["step"], 0, "this server keeps nothing on disk");
    assert_eq!(stream.step(&same(9))["step"], 1);
    let told = stream.end();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[0].contains("is unreachable or too slow") && told[2].contains("is unreachable or too slow"));
    assert_eq!((told[1], told[3]), ("deloop: 3 steps weren't checked.", "deloop: 1 step wasn't checked."));
}

#[test]
fn a_server_that_never_answers_delays_each_step_by_the_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://u:hunter2@{}", silent.local_addr().unwrap());
    let home = tempfile::tempdir().unwrap();
    let input = format!("{}\n{}\n", read("a", 1), read("a", 2));
    let output = run(deloop(home.path()).args(["stream", "--store", &url]), input.as_bytes());
    let decisions = lines(&output.stdout);
    assert!(decisions.len() == 2 && decisions.iter().all(|d| d["action"] == "continue"), "{decisions:?}");
    assert_eq!(output.status.code(), Some(0));
    assert!(!said(&output).contains("hunter2") && said(&output).contains("2 steps weren't checked"));
    let wrong = run(deloop(home.path()).args(["stream", "--store", "http://u:hunter2@localhost"]), b"");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(said(&wrong).contains("--store: not the URL of a server") && !said(&wrong).contains("hunter2"));
}

/// A password in the environment isn't in the list of processes.
#[test]
#[ignore = "needs redis-server"]
fn a_password_comes_from_the_environment() {
    let server = RedisServer::start_with(&["--requirepass", "hunter2"]);
    let home = tempfile::tempdir().unwrap();
    let step = format!("{}\n", read("a", 1));
    let mut command = deloop(home.path());
    command.args(["stream", "--profile", "doom-loop", "--store", &server.url()]);
    let without = run(&mut command, step.as_bytes());
    assert!(said(&without).contains("1 step wasn't checked"), "{}", said(&without));
    let with = run(command.env("DELOOP_REDIS_PASSWORD", "hunter2"), step.as_bytes());
    assert_eq!(said(&with), "");
}
