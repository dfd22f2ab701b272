//! Servers that answer, but not with what was asked for. deloop uses the server again as soon as it works.

use std::time::Duration;

use deloop_store::contract::{Numbers, check_records};
use deloop_store::{RedisOptions, RedisStore, SharedRecords, Store, StoreError};
use deloop_types::Millis;

use crate::redis_server::RedisServer;
use crate::time::pass;
use crate::wait::wait_for;
use crate::{PATIENT, patient};

fn push(store: &RedisStore) -> Result<usize, StoreError> {
    store.update(&Numbers, &"a".into(), None, |s| (s.push(1), s.len()).1)
}

fn open(server: &RedisServer, options: RedisOptions) -> RedisStore {
    RedisStore::open(&server.url(), RedisOptions { deadline: PATIENT, ..options }).unwrap()
}

fn is_unavailable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. })
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
    let store = crate::patient_at(&url);
    check_records(&store.records(), &|time| pass(&url, time));
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
    check_records(&store.records(), &|time| pass(&server.url(), time));
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
    for n in 0..500 {
        store.update(&Numbers, &format!("s{n}").into(), None, |s| s.resize(1000, 7)).unwrap();
    }
    push(&store).unwrap();
    server.ask("SAVE");
    server.end();
    // It answers after each key, and has nearly a minute to do.
    let slowly = ["--key-load-delay", "100000", "--loading-process-events-interval-bytes", "1024"];
    server.launch_again(&slowly);
    let hasty = store.within(Duration::from_secs(1));
    wait_for("the server says that it loads", || {
        let error = push(&hasty).unwrap_err();
        assert!(is_unavailable(&error), "{error}");
        error.to_string().to_lowercase().contains("loading")
    });
    server.ask("CONFIG SET key-load-delay 0");
    wait_for("the server is used", || hasty.look(&Numbers, &"a".into(), Vec::len).is_ok());
    assert_eq!(push(&store).unwrap(), 2);
}

/// A change counts as made when enough replicas have it; else it fails in time, although it was made.
#[test]
#[ignore = "needs redis-server"]
fn a_change_waits_for_replicas() {
    let master = RedisServer::start_with(&["--repl-diskless-sync-delay", "0"]);
    let store = open(&master, RedisOptions { wait_replicas: 1, ..RedisOptions::default() });
    let hasty = store.within(Duration::from_millis(200));
    let mut asked = 0;
    wait_for("a change is made that nobody confirms", || {
        asked += 1;
        let error = push(&hasty).unwrap_err();
        assert!(is_unavailable(&error), "{error}");
        error.to_string().contains("too few replicas")
    });
    let before = patient(&master).look(&Numbers, &"a".into(), Vec::len).unwrap().unwrap();
    assert!((1..=asked).contains(&before), "{before} of {asked}");
    let replica = RedisServer::start_with(&["--replicaof", &format!("127.0.0.1 {}", master.port())]);
    assert_eq!(push(&store).unwrap(), before + 1, "it waits for the replica");
    let on_replica = replica.ask("HGET {deloop:s:a} state");
    assert_eq!(on_replica.split(',').count(), before + 1, "it is there as soon as it was confirmed");
    let records = store.records();
    records.publish("x").unwrap();
    let name = deloop_store::RecordName::new("g", "n");
    assert!(records.claim(name, Duration::from_secs(9), Millis(0)).unwrap());
}
