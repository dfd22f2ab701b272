//! Several servers over one Redis, or over a Redis Cluster.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::alerts::metric;
use super::client::{Client, Server};
use super::events::EventStream;
use super::stuck_swarms::{SwarmRun, run};
use crate::redis_cluster::RedisCluster;
use crate::redis_server::RedisServer;
use crate::wait::wait_for;

/// A deadline that a loaded machine keeps; how long a step may wait has tests of its own.
const PATIENT: [&str; 2] = ["--store-timeout", "10000"];

fn start(home: &Path, name: &str, url: &str, more: &[&str]) -> Server {
    let state = home.join(name);
    Server::start(home, &[&PATIENT[..], &["--store", url, "--state", state.to_str().unwrap()], more].concat())
}

fn three(home: &Path, url: &str, more: &[&str]) -> Vec<Server> {
    ["one", "two", "three"].iter().map(|name| start(home, name, url, more)).collect()
}

fn clients(servers: &[Server]) -> Vec<Client> {
    servers.iter().map(Server::client).collect()
}

/// 200 workers over three servers are found at the same count as on one server, declared once, and all of them are told.
fn is_counted_as_one(url: &str) {
    let home = tempfile::tempdir().unwrap();
    let alone = Server::start(home.path(), &["--profile", "doom-loop"]);
    let expected = run(&mut [alone.client()], "fix", 200);
    assert_eq!(expected, SwarmRun { declared_at: 10, told: vec![1; 200] });
    let servers = three(home.path(), url, &["--profile", "doom-loop"]);
    let mut listeners: Vec<EventStream> = servers
        .iter()
        .map(|server| EventStream::open(server, "/v1/events?kinds=swarm.declared,swarm.clear", None))
        .collect();
    let mut clients = clients(&servers);
    assert_eq!(run(&mut clients, "fix", 200), expected);
    let counted = clients[1].get("/v1/swarms/fix").json();
    assert_eq!(counted["workers"], 200, "{counted}");
    clients[2].send("DELETE", "/v1/swarms/fix", &[], b"").unwrap();
    for listener in &mut listeners {
        assert_eq!(listener.next().1["event"], "swarm.declared");
        assert_eq!(listener.next().1["event"], "swarm.clear", "it is declared once");
    }
}

#[test]
#[ignore = "needs redis-server"]
fn three_servers_over_one_redis_count_a_swarm_as_one_server_does() {
    let redis = RedisServer::start();
    is_counted_as_one(&redis.url());
}

#[test]
#[ignore = "needs redis-server"]
fn three_servers_over_a_cluster_count_a_swarm_as_one_server_does() {
    let cluster = RedisCluster::start(3);
    is_counted_as_one(&cluster.url());
}

#[test]
#[ignore = "needs redis-server"]
fn two_hundred_workers_that_install_their_packages_are_left_alone() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let servers = three(home.path(), &redis.url(), &[]);
    let mut clients = clients(&servers);
    for worker in 0..200 {
        let (session, id) = (format!("w{worker}"), format!("c{worker}"));
        let call = json!({"type": "call", "session": session, "swarm": "release", "id": id, "tool": "bash", "args": {"command": "npm ci"}});
        let result = json!({"type": "result", "session": session, "swarm": "release", "id": id, "ok": true, "output": "added 312 packages in 9s"});
        for (step, server) in [(call, worker), (result, worker + 1)] {
            let decision = clients[server % 3].step(&step);
            assert_eq!((&decision["action"], &decision["findings"]), (&json!("continue"), &json!([])));
        }
    }
}

/// A session may go from server to server: what one knows, all know.
#[test]
#[ignore = "needs redis-server"]
fn a_stop_stands_on_all_servers_until_it_is_reset_on_one() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let servers = three(home.path(), &redis.url(), &["--profile", "turn-similarity"]);
    let mut listener = EventStream::open(&servers[0], "/v1/events?kinds=session.terminated,alert", None);
    let mut clients = clients(&servers);
    let turn = json!({"type": "turn", "session": "s1", "text": "Let me check the price and decide."});
    let actions: Vec<Value> = (0..9).map(|n| clients[n % 3].step(&turn)["action"].clone()).collect();
    let expected = ["continue", "continue", "continue", "warn", "warn", "stop", "stop", "stop", "stop"];
    assert_eq!(actions, expected.map(Value::from));
    let kinds: Vec<Value> = (0..3).map(|_| listener.next().1["event"].clone()).collect();
    assert_eq!(kinds, ["alert", "session.terminated", "alert"].map(Value::from));
    assert_eq!(clients[1].get("/v1/sessions/s1").json()["ended"]["action"], "stop");
    assert_eq!(clients[1].post("/v1/sessions/s1/reset", "").json()["existed"], true);
    assert_eq!(clients[2].step(&turn)["action"], "continue");
    clients[0].post("/v1/sessions/s1/message", r#"{"text":"Ask for the budget."}"#);
    let decision = clients[1].step(&json!({"type": "turn", "session": "s1", "text": "Next."}));
    assert_eq!(decision["message"], "[deloop] Message from the operator: Ask for the budget.");
    assert_eq!(clients[2].get("/v1/sessions").json()["sessions"], json!(["s1"]));
    assert_eq!(clients[2].get("/v1/sessions?project=other").json()["sessions"], json!([]));
}

/// Two servers that change one session at the same time: no step is lost.
#[test]
#[ignore = "needs redis-server"]
fn steps_of_one_session_at_three_servers_at_once_are_all_counted() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let servers = three(home.path(), &redis.url(), &[]);
    let seen: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = servers
            .iter()
            .map(|server| {
                scope.spawn(|| {
                    let mut client = server.client();
                    let step = json!({"type": "user", "session": "s1", "text": "Hello."});
                    (0..40).map(|_| client.step(&step)["step"].as_u64().unwrap()).collect::<Vec<u64>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = seen;
    seen.sort_unstable();
    assert_eq!(seen, (0..120).collect::<Vec<u64>>());
}

/// Each server in turn is stopped and started again, while clients go on: a client whose connection is closed sends its
/// step to the next server.
#[test]
#[ignore = "needs redis-server"]
fn a_rolling_restart_loses_and_doubles_nothing() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let mut servers: Vec<Option<Server>> =
        three(home.path(), &redis.url(), &[]).into_iter().map(Some).collect();
    let addresses: Vec<_> = servers.iter().flatten().map(|server| server.address).collect();
    let (done, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    let answered = [const { AtomicU64::new(0) }; 6];
    // However often a worker was refused, it goes on.
    let go_on = || {
        let seen = answered.each_ref().map(|count| count.load(Ordering::Relaxed));
        wait_for("every worker has 20 more answers", || {
            answered.iter().zip(seen).all(|(count, seen)| count.load(Ordering::Relaxed) >= seen + 20)
        });
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..6)
            .map(|worker| {
                let (done, refused, addresses, count) = (&done, &refused, &addresses, &answered[worker]);
                scope.spawn(move || {
                    let (mut at, mut answered, mut client) = (worker, 0_u64, None);
                    while !done.load(Ordering::Relaxed) {
                        let Some(connected) = client.as_mut() else {
                            at += 1;
                            client = Client::connect(addresses[at % 3]).ok();
                            continue;
                        };
                        let step = json!({"type": "user", "session": format!("s{worker}"), "text": "Hello."});
                        match Client::try_step(connected, &step) {
                            Ok(decision) => {
                                assert_eq!(decision["step"], answered, "session s{worker}");
                                answered += 1;
                                count.store(answered, Ordering::Relaxed);
                            }
                            Err(_) => {
                                refused.fetch_add(1, Ordering::Relaxed);
                                client = None;
                            }
                        }
                    }
                })
            })
            .collect();
        for (n, name) in ["one", "two", "three"].iter().enumerate() {
            go_on();
            let old = servers[n].take().unwrap();
            let listen = addresses[n].to_string();
            old.signal("TERM");
            assert_eq!(old.wait().0, Some(0));
            servers[n] = Some(start(home.path(), name, &redis.url(), &["--listen", &listen]));
        }
        go_on();
        done.store(true, Ordering::Relaxed);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    assert!(refused.load(Ordering::Relaxed) >= 3, "each server was in use");
    let mut client = servers[0].as_ref().unwrap().client();
    for (worker, answered) in answered.iter().enumerate() {
        assert_eq!(
            client.get(&format!("/v1/sessions/s{worker}")).json()["steps"],
            answered.load(Ordering::Relaxed)
        );
    }
}

/// While Redis doesn't answer, an agent goes on after the deadline; the server says so, and recovers by itself. A server with
/// a long deadline waits meanwhile.
#[test]
#[ignore = "needs redis-server"]
fn a_redis_that_hangs_delays_nobody_and_is_reported() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let begin = |name: &str, more: &[&str]| {
        let (url, state) = (redis.url(), home.path().join(name));
        let own = ["--store", &url, "--state", state.to_str().unwrap(), "--profile", "turn-hash"];
        Server::start(home.path(), &[&own, more].concat())
    };
    let usual = begin("usual", &[]);
    // Longer than a test may take.
    let long = begin("long", &["--store-timeout", "3600000"]);
    let (mut client, mut waiting) = (usual.client(), long.client());
    let step = json!({"type": "turn", "session": "s1", "text": "Again."}).to_string();
    assert_eq!(waiting.post("/v1/steps", &step).json()["action"], "continue");
    let before = failed_open(&mut client);
    redis.signal("STOP");
    let request = waiting.head("POST", "/v1/steps", step.len(), &[]) + &step;
    waiting.write(request.as_bytes()).unwrap();
    // More than there are connections to Redis.
    for _ in 0..10 {
        let answer = client.post("/v1/steps", &step);
        assert_eq!((answer.status, answer.header("deloop-failed-open")), (200, Some("true")));
        assert_eq!(answer.json()["action"], "continue");
    }
    let ready = client.get("/readyz");
    assert!(ready.status == 503 && ready.error().contains("Redis"), "{ready:?}");
    assert_eq!(failed_open(&mut client), before + 10);
    let stream = waiting.stream.get_ref();
    stream.set_nonblocking(true).unwrap();
    let early = stream.peek(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "the deadline is a setting");
    stream.set_nonblocking(false).unwrap();
    redis.signal("CONT");
    assert_eq!(waiting.read().unwrap().json()["action"], "nudge", "what was known before is known");
    wait_for("it is ready again", || client.get("/readyz").status == 200);
    wait_for("a step is stored", || client.post("/v1/steps", &step).header("deloop-failed-open").is_none());
    usual.signal("TERM");
    let (code, said) = usual.wait();
    assert!(code == Some(0) && said.contains("unreachable or too slow"), "{said}");
}

/// How many steps got no decision because Redis was away.
fn failed_open(client: &mut Client) -> u64 {
    metric(client, "deloop_failed_open_total")
}
