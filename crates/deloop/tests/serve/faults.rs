//! What a server with a database of its own keeps when it is killed or its clock jumps. `docs/faults.md` lists the outcomes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::alerts::{ACCEPT, config, route, similar_turns, wait_for_metric};
use super::client::{Client, Server};
use super::receiver::AlertReceiver;
use crate::binary::{deloop, lines, run, said};
use crate::wait::wait_for;

/// How many workers of one swarm are known by name.
const SWARM: u64 = 900;

fn state(home: &Path) -> PathBuf {
    home.join(".local/state/deloop")
}

/// The generation of the log of steps: it grows by one with every write to the database.
fn generation(home: &Path) -> u64 {
    let names = std::fs::read_dir(state(home)).unwrap().map(|entry| entry.unwrap().file_name());
    let numbers = names.filter_map(|name| name.to_str()?.strip_prefix("server.steps-")?.parse().ok());
    numbers.max().unwrap()
}

/// What was answered before the server was killed.
#[derive(Default)]
struct Answered {
    sessions: Vec<String>,
    workers: u64,
    messages: u64,
}

/// Sends batches of new sessions until the server is gone.
fn send_batches(mut client: Client, thread: usize, count: &AtomicU64) -> Answered {
    let mut answered = Answered::default();
    for batch in 0.. {
        let names: Vec<String> = (0..100).map(|n| format!("t{thread}-{batch}-{n}")).collect();
        let step = |name: &String| json!({"type": "turn", "session": name, "text": "Hello."});
        let steps = Value::from(names.iter().map(step).collect::<Vec<_>>()).to_string();
        match client.send("POST", "/v1/steps", &[], steps.as_bytes()) {
            Ok(answer) => assert_eq!(answer.status, 200, "{answer:?}"),
            Err(_) => break,
        }
        count.fetch_add(names.len() as u64, Ordering::Relaxed);
        answered.sessions.extend(names);
    }
    answered
}

/// Lets one worker after the other make a call until the server is gone. A swarm that is full is followed by another.
fn send_swarm(mut client: Client, count: &AtomicU64) -> Answered {
    let mut workers = 0;
    let step = |n: u64| json!({"type": "call", "session": format!("w{n}"), "swarm": format!("fix{}", n / SWARM), "id": format!("c{n}"), "tool": "bash", "args": {"command": format!("cat {n}.md")}});
    while client.try_step(&step(workers)).is_ok() {
        workers += 1;
        count.store(workers, Ordering::Relaxed);
    }
    Answered { workers, ..Answered::default() }
}

/// Sends a message to one new session after the other until the server is gone.
fn send_messages(mut client: Client, count: &AtomicU64) -> Answered {
    let mut messages = 0;
    loop {
        let step = json!({"type": "turn", "session": format!("m{messages}"), "text": "Hello."});
        if client.try_step(&step).is_err() {
            break;
        }
        let path = format!("/v1/sessions/m{messages}/message");
        match client.send("POST", &path, &[], br#"{"text":"Stop."}"#) {
            Ok(answer) => assert_eq!(answer.status, 200, "{answer:?}"),
            Err(_) => break,
        }
        messages += 1;
        count.store(messages, Ordering::Relaxed);
    }
    Answered { messages, ..Answered::default() }
}

/// **Killed under load, while the log of steps is written to the database again and again.** Every answered step, every
/// counted call of a swarm and every accepted message is there after the restart.
#[test]
fn a_kill_amid_writes_to_the_database_loses_nothing_answered() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = Server::start(home, &["--profile", "doom-loop"]);
    let [sessions, workers, messages] = [const { AtomicU64::new(0) }; 3];
    let answered: Vec<Answered> = std::thread::scope(|scope| {
        let (sessions, workers, messages) = (&sessions, &workers, &messages);
        let mut threads: Vec<_> = (0..3)
            .map(|thread| {
                let client = server.client();
                scope.spawn(move || send_batches(client, thread, sessions))
            })
            .collect();
        let (swarm, operator) = (server.client(), server.client());
        threads.push(scope.spawn(move || send_swarm(swarm, workers)));
        threads.push(scope.spawn(move || send_messages(operator, messages)));
        wait_for("the server is under load and writes to the database", || {
            let at_least = |count: &AtomicU64, least| count.load(Ordering::Relaxed) >= least;
            at_least(sessions, 3_000)
                && at_least(workers, 20)
                && at_least(messages, 10)
                && generation(home) >= 4
        });
        server.signal("KILL");
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    drop(server);
    let server = Server::start(home, &["--profile", "doom-loop"]);
    let mut client = server.client();
    let mut kept: HashSet<String> = HashSet::new();
    let mut next = "/v1/sessions?limit=1000".to_owned();
    loop {
        let page = client.get(&next).json();
        kept.extend(
            page["sessions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()),
        );
        let Some(after) = page["next"].as_str() else { break };
        next = format!("/v1/sessions?limit=1000&after={after}");
    }
    let sessions: Vec<&String> = answered.iter().flat_map(|answered| &answered.sessions).collect();
    assert!(sessions.len() >= 3_000, "{} sessions", sessions.len());
    let lost = sessions.iter().filter(|name| !kept.contains(**name)).count();
    assert_eq!(lost, 0, "of {} sessions", sessions.len());
    let workers: u64 = answered.iter().map(|answered| answered.workers).sum();
    let counted: u64 = (0..=workers / SWARM)
        .map(|n| client.get(&format!("/v1/swarms/fix{n}")).json()["workers"].as_u64().unwrap_or_default())
        .sum();
    assert!(workers >= 20 && (counted == workers || counted == workers + 1), "{counted} of {workers}");
    let messages: u64 = answered.iter().map(|answered| answered.messages).sum();
    assert!(messages >= 10, "{messages} messages");
    for n in 0..messages {
        let told = client.step(&json!({"type": "turn", "session": format!("m{n}"), "text": "Next."}));
        let message = told["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("[deloop] Message from the operator: Stop."), "session m{n}: {told}");
    }
}

/// **Killed right after a message went out.** The agent may not have got the answer, so it is told again.
#[test]
fn a_message_that_may_not_have_arrived_is_sent_again_after_a_kill() {
    let home = tempfile::tempdir().unwrap();
    let step = json!({"type": "turn", "session": "s1", "text": "Hello."});
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    client.step(&step);
    client.post("/v1/sessions/s1/message", r#"{"text":"Stop."}"#);
    let told = client.step(&json!({"type": "turn", "session": "s1", "text": "Next."}));
    assert_eq!(told["message"], "[deloop] Message from the operator: Stop.");
    server.kill();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    let again = client.step(&json!({"type": "turn", "session": "s1", "text": "And now."}));
    assert_eq!(again["message"], told["message"]);
    assert_eq!(client.step(&json!({"type": "turn", "session": "s1", "text": "Fine."}))["action"], "continue");
    server.signal("TERM");
    server.wait();
    let server = Server::start(home.path(), &[]);
    let after = server.client().step(&json!({"type": "turn", "session": "s1", "text": "Done."}));
    assert_eq!(after["action"], "continue", "a server that is stopped sends nothing again");
}

/// **A log of steps that can't be started.** Writing to the database fails, steps go on in the log before it, and a kill
/// loses none of them.
#[test]
fn a_log_that_cannot_be_started_costs_no_step() {
    let home = tempfile::tempdir().unwrap();
    let step = json!({"type": "turn", "session": "s1", "text": "Hello."});
    let server = Server::start(home.path(), &["--profile", "turn-hash"]);
    let mut client = server.client();
    client.step(&step);
    assert_eq!(client.get("/readyz").status, 200);
    let next = state(home.path()).join(format!("server.steps-{}", generation(home.path()) + 1));
    std::fs::create_dir(&next).unwrap();
    assert_eq!(client.get("/readyz").status, 200, "without a step, the log goes on");
    assert_eq!(client.step(&step)["step"], 1);
    assert_eq!(client.get("/readyz").status, 503);
    // What isn't a step is refused, and changes nothing.
    assert_eq!(client.post("/v1/sessions/s1/reset", "").status, 503);
    assert_eq!(client.get("/v1/sessions/s1").json()["steps"], 2);
    for n in 2..5 {
        assert_eq!(client.step(&step)["step"], n);
    }
    std::fs::remove_dir(&next).unwrap();
    server.kill();
    let server = Server::start(home.path(), &["--profile", "turn-hash"]);
    assert_eq!(server.client().get("/v1/sessions/s1").json()["steps"], 5);
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn recorded(home: &Path, action: &str) -> Vec<Value> {
    lines(&run(deloop(home).args(["audit", "query", "--json", "--action", action]), b"").stdout)
}

fn stops(home: &Path) -> Vec<Value> {
    let verified = run(deloop(home).args(["audit", "verify"]), b"");
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    recorded(home, "decision.stop")
}

/// **Killed between a decision and its record.** The step is in the log, so the stop is recorded, with the session's last
/// turns, and its alert is raised at the next start, once.
#[test]
fn a_stop_that_was_not_recorded_before_a_kill_is_recorded_once() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let receiver = AlertReceiver::start(ACCEPT);
    let file = config(home, &route("ops", "webhook", &receiver.url("/"), "secret_env = \"ALERT_SECRET\""));
    let start = || {
        let mut command = deloop(home);
        command.env("ALERT_SECRET", super::alerts::SECRET);
        Server::start_with(command, &["--config", &file])
    };
    let server = start();
    let mut client = server.client();
    let step = json!({"type": "turn", "session": "s1", "text": "check price and decide trade"});
    let before: Vec<Value> = (0..5).map(|_| client.step(&step)["action"].clone()).collect();
    assert_eq!(before[3..], ["warn", "warn"]);
    assert_eq!(receiver.next().json()["level"], "warning");
    wait_for("the warnings are recorded", || recorded(home, "decision.warn").len() == 2);
    wait_for_metric(&mut client, "deloop_alerts_sent_total{route=\"ops\"}", 1);
    // The files as they are if the process is killed after the log of steps has the sixth step.
    let (audit, backlog) = (state(home).join("audit"), home.join("backlog"));
    copy(&audit, &home.join("audit-before"));
    copy(&state(home), &backlog);
    assert_eq!(client.step(&step)["action"], "stop");
    let alert = receiver.next().json();
    server.kill();
    assert_eq!(stops(home).len(), 1);
    copy(&home.join("audit-before"), &audit);
    for name in ["alerts.db", "alerts.db-wal", "alerts.db-shm"] {
        let _ = std::fs::remove_file(state(home).join(name));
        let _ = std::fs::copy(backlog.join(name), state(home).join(name));
    }
    assert_eq!(stops(home).len(), 0);

    let server = start();
    let again = receiver.next().json();
    assert_eq!((&again["id"], &again["kind"]), (&alert["id"], &json!("session.terminated")), "{again}");
    let recorded = stops(home);
    assert_eq!(recorded.len(), 1);
    let facts = (&recorded[0]["session"], &recorded[0]["steps"]["last"], &recorded[0]["detail"]["sender"]);
    assert_eq!(facts, (&json!("s1"), &json!(5), &json!("unknown, recovered at start")));
    assert_eq!(recorded[0]["turns"]["turns"].as_array().map(Vec::len), Some(6), "{}", recorded[0]);
    assert_eq!(server.client().step(&step)["action"], "stop", "it still applies");
    server.kill();
    let server = start();
    assert_eq!(stops(home).len(), 1);
    similar_turns(&mut server.client(), "s2", 4);
    assert_eq!(receiver.next().json()["session"], "s2", "nothing was sent again before");
}

/// Steps whose own times jump by decades both ways are counted in the order in which they arrive.
pub(crate) fn jumps(server: &Server) {
    let mut client = server.client();
    let times = [
        json!("2026-11-16T00:00:00Z"),
        json!("1970-01-01T00:00:00Z"),
        json!("2126-11-16T00:00:00Z"),
        json!("2026-11-16T00:00:01Z"),
        json!(-62_135_596_800_000_i64),
        json!(253_402_300_799_999_i64),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(0),
        Value::Null,
        json!("2026-11-16T00:00:02Z"),
    ];
    for (n, ts) in times.iter().enumerate() {
        let turn = json!({"type": "turn", "session": "jumps", "ts": ts, "text": format!("Turn {n}.")});
        assert_eq!(client.step(&turn)["step"], 2 * n, "{ts}");
        let usage = json!({"type": "usage", "session": "jumps", "ts": ts, "input_tokens": 7});
        assert_eq!(client.step(&usage)["step"], 2 * n + 1, "{ts}");
        let call = json!({"type": "call", "session": format!("w{n}"), "swarm": "jumping", "ts": ts, "id": format!("c{n}"), "tool": "bash", "args": {"command": "make"}});
        client.step(&call);
    }
    let session = client.get("/v1/sessions/jumps").json();
    assert_eq!(session["steps"], 2 * times.len(), "{session}");
    assert!(client.get("/v1/swarms/jumping").json()["workers"].as_u64() >= Some(1));
    assert_eq!(client.get("/readyz").status, 200);
}

/// **Clocks of agents that jump.** No session is lost: when a session counts as idle depends on the server's clock alone.
#[test]
fn steps_whose_clock_jumps_stay_in_order_and_keep_their_session() {
    for profile in ["default", "doom-loop"] {
        let home = tempfile::tempdir().unwrap();
        let server = Server::start(home.path(), &["--profile", profile]);
        jumps(&server);
        server.kill();
        let server = Server::start(home.path(), &["--profile", profile]);
        assert_eq!(server.client().get("/v1/sessions/jumps").json()["steps"], 22);
        server.signal("TERM");
        let (code, said) = server.wait();
        assert_eq!((code, said.as_str()), (Some(0), "deloop: finishing requests\n"), "{profile}");
    }
}
