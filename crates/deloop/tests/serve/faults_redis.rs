//! What servers over Redis keep, and that an agent doesn't wait, when Redis or a server fails. `docs/faults.md` lists the
//! outcomes.

use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::alerts::{ACCEPT, SECRET, config, metric, route, similar_turns};
use super::client::{Client, HttpAnswer, Server};
use super::faults::jumps;
use super::receiver::AlertReceiver;
use crate::binary::{deloop, lines, run};
use crate::redis_cluster::RedisCluster;
use crate::redis_server::RedisServer;
use crate::test_clock::TestClock;
use crate::wait::wait_for;

/// A deadline that a loaded machine keeps, for faults that Redis or the system reports at once.
const PATIENT: [&str; 2] = ["--store-timeout", "10000"];

/// How many steps of each session are stored before something happens.
const SOME: u64 = 20;

fn start(home: &Path, url: &str, more: &[&str]) -> Server {
    let state = home.join("one");
    Server::start(
        home,
        &[&["--profile", "turn-hash", "--store", url, "--state", state.to_str().unwrap()], more].concat(),
    )
}

fn send(client: &mut Client, session: &str) -> std::io::Result<HttpAnswer> {
    let step = json!({"type": "usage", "session": session, "input_tokens": 1}).to_string();
    let answer = client.send("POST", "/v1/steps", &[], step.as_bytes())?;
    assert_eq!(answer.status, 200, "{answer:?}");
    Ok(answer)
}

/// What became of the steps of one session so far.
#[derive(Debug, Default)]
struct SessionLoad {
    stored: AtomicU64,
    failed_open: AtomicU64,
}

impl SessionLoad {
    fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    fn failed_open(&self) -> u64 {
        self.failed_open.load(Ordering::Relaxed)
    }
}

/// Waits until some more steps of each session are stored.
fn more_is_stored(loads: &[SessionLoad]) {
    let seen: Vec<u64> = loads.iter().map(SessionLoad::stored).collect();
    wait_for("more steps of each session are stored", || {
        loads.iter().zip(&seen).all(|(load, seen)| load.stored() >= seen + SOME)
    });
}

/// Waits until some more steps of each session are answered although they can't be stored.
fn more_fails_open(loads: &[SessionLoad]) {
    let seen: Vec<u64> = loads.iter().map(SessionLoad::failed_open).collect();
    wait_for("more steps of each session fail open", || {
        loads.iter().zip(&seen).all(|(load, seen)| load.failed_open() >= seen + 3)
    });
}

/// Sends steps of one session until it is over or the server is gone.
fn keep_sending(server: &Server, session: &str, load: &SessionLoad, is_over: &AtomicBool) {
    let mut client = server.client();
    while !is_over.load(Ordering::Relaxed) {
        let Ok(answer) = send(&mut client, session) else { break };
        if answer.header("deloop-failed-open").is_some() {
            load.failed_open.fetch_add(1, Ordering::Relaxed);
        } else {
            let (step, stored) = (answer.json()["step"].as_u64().unwrap(), load.stored());
            assert!(step >= stored, "step {step} after {stored}");
            load.stored.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Puts sessions under load, and lets something happen meanwhile.
fn under_load(
    server: &Server,
    sessions: &[String],
    happens: impl FnOnce(&[SessionLoad]),
) -> Vec<SessionLoad> {
    let loads: Vec<SessionLoad> = sessions.iter().map(|_| SessionLoad::default()).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        for (name, load) in sessions.iter().zip(&loads) {
            scope.spawn(move || keep_sending(server, name, load, is_over));
        }
        more_is_stored(&loads);
        happens(&loads);
        is_over.store(true, Ordering::Relaxed);
    });
    loads
}

fn names() -> Vec<String> {
    ["a", "b", "c"].map(str::to_owned).to_vec()
}

fn is_ready(server: &Server) -> bool {
    server.client().get("/readyz").status == 200
}

fn steps(server: &Server, session: &str) -> u64 {
    let answer = server.client().get(&format!("/v1/sessions/{session}"));
    if answer.status == 404 { 0 } else { answer.json()["steps"].as_u64().unwrap() }
}

/// What one session is like after Redis was killed.
#[derive(Debug)]
struct AfterKill {
    load: SessionLoad,
    /// How many of its stored steps Redis had written to its file for sure.
    written: u64,
    /// How many of its steps are there.
    kept: u64,
}

/// Kills Redis with this setting of `appendfsync` under load and starts it again.
fn redis_killed(fsync: &str) -> Vec<AfterKill> {
    let options = ["--appendonly", "yes", "--appendfsync", fsync];
    let mut redis = RedisServer::start_with(&options);
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), &redis.url(), &PATIENT);
    let mut written = Vec::new();
    let loads = under_load(&server, &names(), |loads| {
        written = loads.iter().map(SessionLoad::stored).collect();
        let has_written = || redis.ask("INFO persistence").contains("aof_buffer_length:0\r");
        // With `always`, Redis has written what it answered, and under load it always has something to write.
        wait_for("Redis has nothing to write", || fsync == "always" || has_written());
        redis.end();
        more_fails_open(loads);
        assert!(!is_ready(&server), "it says that Redis is away");
    });
    redis.launch_again(&options);
    wait_for("Redis is used again", || is_ready(&server));
    let after = names().into_iter().zip(loads).zip(written);
    after.map(|((name, load), written)| AfterKill { load, written, kept: steps(&server, &name) }).collect()
}

/// **Redis is killed, `appendfsync always`.** Every acknowledged step is there; the server recovers without a restart.
#[test]
#[ignore = "needs redis-server"]
fn redis_killed_with_fsync_always_loses_nothing_acknowledged() {
    for after in redis_killed("always") {
        let (stored, failed_open) = (after.load.stored(), after.load.failed_open());
        assert!((stored..=stored + failed_open).contains(&after.kept), "{after:?}");
    }
}

/// **Redis is killed, `appendfsync everysec`.** Redis writes before it answers, unless the disk is slow: then it may
/// postpone this for two seconds. Everything that was acknowledged before Redis had nothing to write is there.
#[test]
#[ignore = "needs redis-server"]
fn redis_killed_with_fsync_everysec_loses_only_what_it_had_not_written() {
    for after in redis_killed("everysec") {
        let most = after.load.stored() + after.load.failed_open();
        assert!(after.written >= SOME && (after.written..=most).contains(&after.kept), "{after:?}");
    }
}

/// **A server over Redis is killed.** It keeps nothing that Redis doesn't have, so nothing acknowledged is lost.
#[test]
#[ignore = "needs redis-server"]
fn a_server_killed_over_redis_loses_nothing_acknowledged() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), &redis.url(), &PATIENT);
    let loads = under_load(&server, &names(), |_| server.signal("KILL"));
    drop(server);
    let server = start(home.path(), &redis.url(), &PATIENT);
    for (name, load) in names().iter().zip(loads) {
        let (stored, kept) = (load.stored(), steps(&server, name));
        let most = stored + load.failed_open() + 1;
        assert!((stored..=most).contains(&kept), "{name}: {kept} of {stored}");
    }
}

/// **A master of a cluster is killed and its replica takes over.** With `--store-wait-replicas 1`, nothing acknowledged is
/// lost. Until then steps fail open, and the server recovers without a restart.
#[test]
#[ignore = "needs redis-server"]
fn a_failover_loses_nothing_that_a_replica_confirmed() {
    let mut cluster = RedisCluster::start(6);
    let home = tempfile::tempdir().unwrap();
    let url = format!("{},127.0.0.1:{}", cluster.url(), cluster.nodes[1].port());
    let server = start(home.path(), &url, &["--store-wait-replicas", "1", "--store-timeout", "1000"]);
    wait_for("it is ready", || is_ready(&server));
    let slot = |name: &str| -> u16 {
        cluster.nodes[1].ask(&format!("CLUSTER KEYSLOT {{deloop:p:default:s:{name}}}")).parse().unwrap()
    };
    let of_the_first: Vec<String> =
        (0..).map(|n| format!("s{n}")).filter(|name| slot(name) < 5_461).take(3).collect();
    let loads = under_load(&server, &of_the_first, |loads| {
        cluster.nodes[0].end();
        more_fails_open(loads);
        wait_for("the replica takes over", || {
            // It may have done so by itself.
            let _ = cluster.nodes[3].try_ask("CLUSTER FAILOVER TAKEOVER");
            cluster.nodes[3].replication().contains("role:master")
        });
        // It comes back as the replica of the new master, which then can confirm changes again.
        cluster.nodes[0].launch_again(&RedisCluster::OPTIONS.concat());
        wait_for("it is ready again", || is_ready(&server));
        more_is_stored(loads);
    });
    for (name, load) in of_the_first.iter().zip(loads) {
        let (stored, kept) = (load.stored(), steps(&server, name));
        assert!((stored..=stored + load.failed_open()).contains(&kept), "{name}: {kept} of {stored}");
        // On a loaded machine the new replica may confirm a step too late, which then is stored and fails open.
        let (mut client, mut late) = (server.client(), 0);
        let step = loop {
            let answer = send(&mut client, name).unwrap();
            if answer.header("deloop-failed-open").is_none() {
                break answer.json()["step"].as_u64().unwrap();
            }
            late += 1;
        };
        assert!((kept..=kept + late).contains(&step), "{name}: {step} after {kept}");
    }
}

/// Steps fail open before the fault is over, `/readyz` and the metrics say so, and afterwards the session is as it was.
fn fails_open_and_recovers(server: &Server, fault: impl FnOnce(), over: impl FnOnce(), reason: &str) {
    let mut client = server.client();
    let known = steps(server, "s1");
    let before = send(&mut client, "s1").unwrap();
    assert_eq!((before.header("deloop-failed-open"), &before.json()["step"]), (None, &json!(known)));
    let count = metric(&mut client, "deloop_failed_open_total");
    fault();
    for _ in 0..3 {
        let answer = send(&mut client, "s1").unwrap();
        assert_eq!(answer.header("deloop-failed-open"), Some("true"));
        assert_eq!(answer.json()["action"], "continue");
    }
    let ready = client.get("/readyz");
    assert!(ready.status == 503 && ready.error().contains(reason), "{ready:?}");
    assert_eq!(client.get("/healthz").status, 200);
    assert_eq!(metric(&mut client, "deloop_failed_open_total"), count + 3);
    over();
    wait_for("it is ready again", || is_ready(server));
    let after = send(&mut client, "s1").unwrap();
    assert_eq!((after.header("deloop-failed-open"), &after.json()["step"]), (None, &json!(known + 1)));
}

/// **Redis is full** (`maxmemory` with `noeviction`), **and a password that doesn't fit any more.** Agents continue, and
/// the server goes on by itself when there is room or the password fits again.
#[test]
#[ignore = "needs redis-server"]
fn a_full_redis_and_a_wrong_password_fail_open_and_pass() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), &redis.url(), &PATIENT);
    let tell = |command: &str| drop(redis.ask(command));
    fails_open_and_recovers(
        &server,
        || tell("CONFIG SET maxmemory 1"),
        || tell("CONFIG SET maxmemory 0"),
        "Redis",
    );
    fails_open_and_recovers(
        &server,
        || {
            tell("CONFIG SET requirepass another");
            tell("AUTH another\r\nCLIENT KILL TYPE normal");
        },
        || tell("AUTH another\r\nCONFIG SET requirepass \"\""),
        "password",
    );
    server.signal("TERM");
    let (code, said) = server.wait();
    assert!(code == Some(0) && !said.contains("another"), "{said}");
}

/// **Redis restarts and loads its data.** Agents continue until it is done; then every session is there.
#[test]
#[ignore = "needs redis-server"]
fn a_redis_that_loads_its_data_fails_open_until_it_is_done() {
    let mut redis = RedisServer::start_with(&["--rdbcompression", "no"]);
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), &redis.url(), &PATIENT);
    let mut client = server.client();
    let many: Vec<Value> = (0..3_000)
        .map(|n| json!({"type": "turn", "session": format!("s{n}"), "text": "x".repeat(1_100)}))
        .collect();
    assert_eq!(client.post("/v1/steps", &Value::from(many).to_string()).status, 200);
    redis.ask("SAVE");
    redis.end();
    // It needs 100 ms for each session and answers in between. All of them take longer than a test may.
    redis.launch_again(&["--key-load-delay", "100000", "--loading-process-events-interval-bytes", "1024"]);
    wait_for("Redis listens", || TcpStream::connect(("127.0.0.1", redis.port())).is_ok());
    assert!(redis.try_ask("PING").is_err_and(|error| error.starts_with("LOADING")));
    for _ in 0..3 {
        let answer = send(&mut client, "s1").unwrap();
        assert_eq!(answer.header("deloop-failed-open"), Some("true"));
    }
    assert!(!is_ready(&server));
    assert_eq!(redis.ask("CONFIG SET key-load-delay 0"), "OK");
    let mut step = Value::Null;
    wait_for("Redis is used again", || {
        let answer = send(&mut client, "s1").unwrap();
        step = answer.json()["step"].clone();
        answer.header("deloop-failed-open").is_none()
    });
    assert_eq!(step, 1, "what it knew before is there");
    assert!(is_ready(&server));
}

/// **A stop is stored, and the server fails before it announces it.** The session's next step, at any server, is stopped; once
/// the stop is overdue, it is recorded there, and its alert is raised.
#[test]
#[ignore = "needs redis-server"]
fn a_stop_that_its_server_did_not_announce_is_announced_by_another() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let receiver = AlertReceiver::start(ACCEPT);
    let file = config(home, &route("ops", "webhook", &receiver.url("/"), "secret_env = \"ALERT_SECRET\""));
    let clock = TestClock::new(home);
    let begin = |name: &str, more: &[&str]| {
        let (mut command, url, state) = (clock.deloop(home), redis.url(), home.join(name));
        command.env("ALERT_SECRET", SECRET);
        let own = ["--config", &file, "--store", &url, "--state", state.to_str().unwrap()];
        Server::start_with(command, &[&own[..], more].concat())
    };
    // No replica confirms anything: each change is made, and the server doesn't learn it.
    let first = begin("one", &["--store-wait-replicas", "1", "--store-timeout", "200"]);
    let second = begin("two", &PATIENT);
    let step = json!({"type": "turn", "session": "s1", "text": "check price and decide trade"});
    let (mut unaware, mut client) = (first.client(), second.client());
    // On a slow machine, a step may come too late for its change to be made.
    wait_for("the stop is stored", || {
        let answer = unaware.post("/v1/steps", &step.to_string());
        assert_eq!(answer.header("deloop-failed-open"), Some("true"), "{answer:?}");
        let session = client.get("/v1/sessions/s1");
        session.status == 200 && session.json()["ended"]["action"] == "stop"
    });
    assert_eq!(unaware.get("/readyz").status, 503);
    first.kill();
    let next = || {
        let alert = receiver.next().json();
        [&alert["session"], &alert["kind"]].map(|text| text.as_str().unwrap().to_owned())
    };
    // A stop that is announced at once is announced once, however long it stands.
    assert_eq!(similar_turns(&mut client, "s2", 6)[5], "stop");
    assert_eq!([next(), next()], [["s2", "loop.warning"], ["s2", "session.terminated"]]);
    clock.advance(Duration::from_millis(3_100));
    assert_eq!(client.step(&step)["action"], "stop");
    assert_eq!(next(), ["s1", "session.terminated"]);
    for session in ["s1", "s2"] {
        assert_eq!(similar_turns(&mut client, session, 2), ["stop", "stop"]);
    }
    // Alerts of a route arrive in their order.
    similar_turns(&mut client, "s3", 4);
    assert_eq!(next(), ["s3", "loop.warning"], "no other alert came before it");
    let state = home.join("two");
    let query = ["audit", "query", "--json", "--action", "decision.stop", "--state", state.to_str().unwrap()];
    let recorded = lines(&run(deloop(home).args(query), b"").stdout);
    let recorded: Vec<&Value> = recorded.iter().map(|record| &record["session"]).collect();
    assert_eq!(recorded, ["s2", "s1"], "each once");
}

/// **Clocks of agents that jump**, over Redis.
#[test]
#[ignore = "needs redis-server"]
fn steps_whose_clock_jumps_keep_their_session_in_redis() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), &redis.url(), &PATIENT);
    jumps(&server);
}

/// **A body of 1 GB, malformed JSON, gzip and slow clients**, over Redis: each is refused or given up on as with a database,
/// and nobody else waits.
#[test]
#[ignore = "needs redis-server"]
fn hostile_requests_cost_others_nothing_over_redis() {
    let redis = RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), &redis.url(), &PATIENT);
    let mut halves = Vec::new();
    for _ in 0..50 {
        let mut client = server.client();
        let head = client.head("POST", "/v1/steps", 100, &[]);
        client.write(format!("{head}{{\"type\"").as_bytes()).unwrap();
        halves.push(client);
    }
    let mut huge = server.client();
    let head = huge.head("POST", "/v1/steps", 1 << 30, &[]);
    huge.write(head.as_bytes()).unwrap();
    assert_eq!(huge.read().unwrap().status, 413);
    let mut client = server.client();
    for (body, headers, status) in [
        (&b"{\"type\":"[..], &[][..], 400),
        (b"[{\"type\":\"turn\"", &[], 400),
        (b"\x1f\x8b\x08\0\0\0\0\0", &[], 400),
        (b"\x1f\x8b\x08\0\0\0\0\0", &[("content-encoding", "gzip")], 415),
    ] {
        let answer = client.send("POST", "/v1/steps", headers, body).unwrap();
        assert!(answer.status == status && !answer.error().is_empty(), "{answer:?}");
    }
    for n in 0..20 {
        let answer = send(&mut client, "s1").unwrap();
        assert_eq!((answer.header("deloop-failed-open"), &answer.json()["step"]), (None, &json!(n)));
    }
    #[cfg(target_os = "linux")]
    assert!(server.peak_memory() < 400, "{} MiB", server.peak_memory());
    drop(halves);
}
