//! Servers that answer, but not with what was asked for. Each answer comes within the deadline, and deloop uses the server
//! again as soon as it works.

use std::time::{Duration, Instant};

use deloop_store::contract::{Numbers, check_records};
use deloop_store::{RedisOptions, RedisStore, SharedRecords, Store, StoreError};
use deloop_types::Millis;

use crate::faults::SLACK;
use crate::patient;
use crate::redis_server::RedisServer;

fn push(store: &RedisStore) -> Result<usize, StoreError> {
    let start = Instant::now();
    let pushed = store.update(&Numbers, &"a".into(), None, |s| (s.push(1), s.len()).1);
    assert!(start.elapsed() < Duration::from_secs(2) + SLACK, "{:?}", start.elapsed());
    pushed
}

fn open(server: &RedisServer, options: RedisOptions) -> RedisStore {
    RedisStore::open(&server.url(), RedisOptions { deadline: Duration::from_secs(2), ..options }).unwrap()
}

fn is_unavailable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. })
}

/// Calls until it succeeds, for at most a minute.
fn eventually(store: &RedisStore) -> usize {
    let start = Instant::now();
    loop {
        match push(store) {
            Ok(count) => return count,
            Err(error) => assert!(is_unavailable(&error) && start.elapsed().as_secs() < 60, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "needs redis-server"]
fn a_wrong_password_is_refused_and_never_printed() {
    let server = RedisServer::start();
    server.ask("CONFIG SET requirepass right");
    for password in [None, Some("hunter2".into())] {
        let error = push(&open(&server, RedisOptions { password, ..RedisOptions::default() })).unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    let password = Some("right".into());
    assert_eq!(push(&open(&server, RedisOptions { password, ..RedisOptions::default() })).unwrap(), 1);
    let url = format!("redis://:right@127.0.0.1:{}", server.port());
    let store = RedisStore::open(&url, RedisOptions::default()).unwrap();
    check_records(&crate::patient_at(&url).records(), &std::thread::sleep);
    assert_eq!(push(&store).unwrap(), 2);
}

/// The rights that `docs/redis.md` names are enough, and no key is outside the pattern.
#[test]
#[ignore = "needs redis-server"]
fn a_user_needs_the_documented_rights_only() {
    let server = RedisServer::start();
    let page = include_str!("../../../../docs/redis.md");
    let rights = page.split('`').find(|text| text.starts_with("+@read")).unwrap().replace('\n', " ");
    server.ask(&format!("ACL SETUSER limited on >pw {rights}"));
    let store = crate::patient_at(&format!("redis://limited:pw@127.0.0.1:{}", server.port()));
    deloop_store::contract::check(&store);
    check_records(&store.records(), &std::thread::sleep);
    server.ask("ACL SETUSER limited -hmget");
    let error = push(&store).unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
}

#[test]
#[ignore = "needs redis-server"]
fn a_replica_is_unavailable_until_it_is_promoted() {
    let master = RedisServer::start();
    let replica = RedisServer::start_with(&["--replicaof", &format!("127.0.0.1 {}", master.port())]);
    let store = open(&replica, RedisOptions::default());
    let error = push(&store).unwrap_err();
    assert!(is_unavailable(&error), "{error:?}");
    replica.ask("REPLICAOF NO ONE");
    assert_eq!(push(&store).unwrap(), 1);
}

#[test]
#[ignore = "needs redis-server"]
fn too_many_clients_pass() {
    let server = RedisServer::start();
    let store = open(&server, RedisOptions { connections: 1, ..RedisOptions::default() });
    let mut only = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd("CONFIG").arg("SET").arg("maxclients").arg(1).exec(&mut only).unwrap();
    let error = push(&store).unwrap_err();
    assert!(is_unavailable(&error), "{error:?}");
    redis::cmd("CONFIG").arg("SET").arg("maxclients").arg(100).exec(&mut only).unwrap();
    assert_eq!(push(&store).unwrap(), 1);
}

#[test]
#[ignore = "needs redis-server"]
fn a_server_that_loads_its_data_is_used_when_it_is_done() {
    let mut server = RedisServer::start();
    let store = patient(&server);
    for n in 0..60 {
        store.update(&Numbers, &format!("s{n}").into(), None, |s| s.resize(1000, 7)).unwrap();
    }
    push(&store).unwrap();
    server.ask("SAVE");
    server.end();
    let slowly = ["--key-load-delay", "50000", "--loading-process-events-interval-bytes", "1024"];
    server.launch_again(&slowly);
    let store = open(&server, RedisOptions::default());
    let mut seen = String::new();
    let start = Instant::now();
    let count = loop {
        match push(&store) {
            Ok(count) => break count,
            Err(error) => {
                assert!(is_unavailable(&error) && start.elapsed().as_secs() < 60, "{error}");
                seen.push_str(&error.to_string());
            }
        }
    };
    assert!(seen.contains("LOADING") || seen.contains("loading"), "{seen}");
    assert_eq!(count, 2);
}

/// A change counts as made when enough replicas have it; else it fails in time, although it was made.
#[test]
#[ignore = "needs redis-server"]
fn a_change_waits_for_replicas() {
    let master = RedisServer::start();
    let store = open(&master, RedisOptions { wait_replicas: 1, ..RedisOptions::default() });
    let error = push(&store).unwrap_err();
    assert!(is_unavailable(&error) && error.to_string().contains("too few replicas"), "{error:?}");
    assert_eq!(patient(&master).look(&Numbers, &"a".into(), Vec::len).unwrap(), Some(1));
    let replica = RedisServer::start_with(&["--replicaof", &format!("127.0.0.1 {}", master.port())]);
    let before = eventually(&store);
    assert_eq!(push(&store).unwrap(), before + 1);
    let on_replica = replica.ask("HGET {deloop:s:a} state");
    assert_eq!(on_replica.split(',').count(), before + 1, "it is there as soon as it was confirmed");
    let records = store.records();
    records.publish("x").unwrap();
    let name = deloop_store::RecordName::new("g", "n");
    assert!(records.claim(name, Duration::from_secs(9), Millis(0)).unwrap());
}
