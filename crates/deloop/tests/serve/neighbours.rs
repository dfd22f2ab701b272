//! What one key may use, and that others still get theirs.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::access::configure;
use super::client::{Server, add_key};
use super::test_clock::TestClock;
use crate::wait::wait_for;

/// Asks for events. Returns the status and the connection.
fn listen(server: &Server, key: &str) -> (u16, TcpStream) {
    let mut stream = TcpStream::connect(server.address).unwrap();
    let head = format!("host: {}\r\nauthorization: Bearer {key}", server.address);
    stream.write_all(format!("GET /v1/events HTTP/1.1\r\n{head}\r\n\r\n").as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    (String::from_utf8_lossy(&status[9..]).parse().unwrap(), stream)
}

fn keys<const N: usize>(home: &std::path::Path, names: [&str; N]) -> [String; N] {
    names.map(|name| add_key(home, &[name, "--scope", "admin", "--project", name]))
}

#[test]
fn the_listeners_of_one_key_leave_places_for_others() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let [greedy, other] = keys(home, ["greedy", "other"]);
    let all = add_key(home, &["all", "--scope", "admin", "--all-projects"]);
    let server = Server::start(home, &[]);
    let held: Vec<_> = (0..32).map(|_| listen(&server, &greedy)).collect();
    assert!(held.iter().all(|(status, _)| *status == 200));
    let mut client = server.client_with(&greedy);
    for _ in 0..300 {
        let refused = client.get("/v1/events");
        assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
        let error = refused.error();
        assert!(
            error.contains("32 clients") && error.contains("`listeners` under `[serve.limits]`"),
            "{error}"
        );
    }
    assert_eq!(listen(&server, &other).0, 200);
    let metrics = server.client_with(&all).get("/metrics").text();
    assert!(metrics.contains("\ndeloop_refused_listeners_total 300\n"), "{metrics}");
    drop(held);
    wait_for("a place is free again", || listen(&server, &greedy).0 == 200);
}

#[test]
fn steps_beyond_the_limits_of_a_key_are_answered_and_name_the_limit() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    configure(home, "[serve.limits]\nnew_agents_per_minute = 5\nswarms_per_hour = 2\nlisteners = 1\n");
    let [greedy, other] = keys(home, ["greedy", "other"]);
    let all = add_key(home, &["all", "--scope", "admin", "--all-projects"]);
    let clock = TestClock::new(home);
    let mut server = Server::start_with(clock.deloop(home), &["--profile", "doom-loop"]);
    let call = |n: usize| {
        let swarm = format!("w{}", n.min(5));
        json!({"type": "call", "session": format!("s{n}"), "swarm": swarm, "tool": "read", "args": {"path": "a"}})
    };
    let batch = Value::from_iter((0..10).map(call)).to_string();
    let answer = server.client_with(&greedy).post("/v1/steps", &batch).json();
    for (n, decision) in answer.as_array().unwrap().iter().enumerate() {
        let limit = decision["limit"].as_str().unwrap_or_default();
        let expected = match n {
            0 | 1 => "",
            2..=4 => "`swarms_per_hour`",
            _ => "`new_agents_per_minute`",
        };
        assert!(limit.contains(expected) && limit.is_empty() == expected.is_empty(), "{n}: {decision}");
        assert_eq!(decision["action"], "continue");
    }
    let said = server.says_about("key greedy, project greedy");
    assert!(said.contains("[serve.limits]"), "{said}");
    let mut client = server.client_with(&greedy);
    assert_eq!(client.get("/v1/swarms").json(), json!({"swarms": ["w0", "w1"]}));
    assert_eq!(client.get("/v1/sessions").json()["sessions"], json!(["s0", "s1", "s2", "s3", "s4"]));
    let answer =
        server.client_with(&other).post("/v1/steps", &Value::from_iter((0..2).map(call)).to_string());
    assert!(answer.json().as_array().unwrap().iter().all(|decision| decision["limit"].is_null()));
    let metrics = server.client_with(&all).get("/metrics").text();
    for (limit, count) in [("new_agents_per_minute", 5), ("swarms_per_hour", 3)] {
        let row = format!("\ndeloop_limited_steps_total{{limit=\"{limit}\"}} {count}\n");
        assert!(metrics.contains(&row), "{row}: {metrics}");
    }
    clock.advance(std::time::Duration::from_secs(60));
    let answer = server.client_with(&greedy).step(&call(9));
    assert!(answer["limit"].as_str().unwrap().contains("`swarms_per_hour`"), "a new minute: {answer}");
}

/// Sends a large batch of one project, and single steps of another until it is answered.
#[test]
fn a_large_batch_and_steps_of_others_get_their_answers() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let [large, small] = keys(home, ["large", "small"]);
    let server = Server::start(home, &["--profile", "doom-loop"]);
    let step =
        |n: usize| json!({"type": "turn", "session": format!("s{}", n % 10), "text": format!("Part {n}.")});
    let batch = Value::from_iter((0..5_000).map(step)).to_string();
    let (mut one, mut other) = (server.client_with(&large), server.client_with(&small));
    let head = one.head("POST", "/v1/steps", batch.len(), &[]);
    one.write(head.as_bytes()).unwrap();
    one.write(batch.as_bytes()).unwrap();
    for n in 0..50 {
        assert_eq!(other.step(&step(n))["step"], n / 10);
    }
    let answers = one.read().unwrap().json();
    let answers = answers.as_array().unwrap();
    assert!(answers.iter().enumerate().all(|(n, decision)| decision["step"] == n / 10), "all, in order");
    assert_eq!(answers.len(), 5_000);
}
