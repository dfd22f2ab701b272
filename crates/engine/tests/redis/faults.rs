use std::net::TcpListener;
use std::time::Duration;

use deloop_detect::SwarmCall;
use deloop_store::contract::{Numbers, worker};
use deloop_store::{EventCursor, RecordName, RedisOptions, RedisStore, SharedRecords, Store, StoreError};
use deloop_types::{Call, Millis};

use crate::redis_server::RedisServer;
use crate::{PATIENT, patient};

/// A deadline that is over soon.
const SHORT: Duration = Duration::from_millis(50);

fn push(store: &RedisStore) -> Result<usize, StoreError> {
    store.update(&Numbers, &"a".into(), None, |s| (s.push(1), s.len()).1)
}

/// Does everything that a store can do. Each must fail although no answer comes.
fn all_fail(store: &RedisStore) {
    let call = Call::default();
    let calls = [SwarmCall { call: &call, target: 1, signature: 1 }];
    let store = store.within(SHORT);
    let store_of = |what: fn(&RedisStore, &[SwarmCall<'_>]) -> Result<(), StoreError>| {
        let error = what(&store, &calls).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    };
    store_of(|store, _| push(store).map(drop));
    store_of(|store, _| store.look(&Numbers, &"a".into(), Vec::len).map(drop));
    store_of(|store, calls| Store::<Vec<u64>>::tally(store, "s", worker("a"), calls).map(drop));
    store_of(|store, _| Store::<Vec<u64>>::tally_in_vain(store, "s", worker("a"), 1));
    store_of(|store, _| Store::<Vec<u64>>::look_swarm(store, "s", |_| ()).map(drop));
    store_of(|store, _| Store::<Vec<u64>>::forget(store, &"a".into()));
    store_of(|store, _| Store::<Vec<u64>>::forget_swarm(store, "s"));
    store_of(|store, _| Store::<Vec<u64>>::sessions(store).map(drop));
    store_of(|store, _| Store::<Vec<u64>>::swarms(store).map(drop));
}

/// Each caller waits as long as its own deadline: none waits for another, even if there are more callers than connections.
#[test]
fn a_server_that_never_answers_costs_the_deadline() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    let store = RedisStore::open(&url, RedisOptions::default()).unwrap();
    all_fail(&store);
    let patient = store.within(PATIENT);
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..16).map(|_| scope.spawn(|| push(&patient).unwrap_err())).collect();
        all_fail(&store);
        assert!(waiting.iter().all(|caller| !caller.is_finished()), "those with more time still wait");
        drop(silent);
    });
}

#[test]
fn nobody_listens() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = RedisStore::open(&format!("redis://127.0.0.1:{port}"), RedisOptions::default()).unwrap();
    all_fail(&store);
}

#[test]
#[ignore = "needs redis-server"]
fn a_server_that_hangs_costs_the_deadline_and_recovers() {
    let server = RedisServer::start();
    let store = patient(&server);
    assert_eq!(push(&store).unwrap(), 1);
    server.signal("STOP");
    let patient = store.within(PATIENT);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| patient.look(&Numbers, &"b".into(), Vec::len));
        all_fail(&store);
        assert!(!waiting.is_finished(), "a caller with more time still waits");
        server.signal("CONT");
        assert_eq!(waiting.join().unwrap().unwrap(), None, "and gets its answer");
    });
    // Commands that were on their way are carried out now: deletions among them.
    server.catch_up();
    let before = patient.look(&Numbers, &"a".into(), Vec::len).unwrap().unwrap_or(0);
    assert_eq!(push(&patient).unwrap(), before + 1);
}

/// A server that hangs carries out what it was sent once it goes on. Nothing is done twice, and no text is lost.
#[test]
#[ignore = "needs redis-server"]
fn records_survive_a_server_that_hangs() {
    let server = RedisServer::start();
    // One connection, so that the first command is on its way when the server hangs.
    let options = RedisOptions { connections: 1, deadline: PATIENT, ..RedisOptions::default() };
    let store = RedisStore::open(&server.url(), options).unwrap();
    let (hasty, patient) = (store.within(SHORT).records(), patient(&server).records());
    let (name, day) = (RecordName::new("g", "n"), Duration::from_secs(24 * 3600));
    patient.push(name, "message", 9, day, Millis(0)).unwrap();
    store.records().get(name, Millis(0)).unwrap();
    server.signal("STOP");
    let fails = |error: StoreError| assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    fails(hasty.take(name, Millis(0)).unwrap_err());
    fails(hasty.add(name, &[("n", 1)], day, Millis(0)).unwrap_err());
    fails(hasty.add_once(name, "m", &[("n", 1)], day, Millis(0)).unwrap_err());
    fails(hasty.claim(name, day, Millis(0)).unwrap_err());
    fails(hasty.follow(Some(EventCursor::START), 9, day).unwrap_err());
    server.signal("CONT");
    server.catch_up();
    let hasty = store.records();
    patient.add_once(name, "m", &[("n", 1)], day, Millis(0)).unwrap();
    let totals = patient.totals(name, Millis(0)).unwrap();
    assert!((1..=2).contains(&totals[0].1), "{totals:?}");
    assert_eq!(hasty.take(name, Millis(0)).unwrap(), ["message"]);
    assert!(
        hasty.take(name, Millis(0)).unwrap().is_empty() && patient.take(name, Millis(0)).unwrap().is_empty()
    );
}

#[test]
#[ignore = "needs redis-server"]
fn a_server_that_was_restarted_is_used_at_once() {
    let mut server = RedisServer::start();
    let store = patient(&server);
    for n in 1..=20 {
        assert_eq!(push(&store).unwrap(), n);
    }
    server.end();
    all_fail(&store);
    server.start_again();
    assert_eq!(push(&store).unwrap(), 1, "it lost everything, and nobody has to wait");
    server.end();
    server.start_again();
    // Connections that broke while nobody used them.
    assert_eq!((push(&store).unwrap(), push(&store).unwrap()), (1, 2));
}

#[test]
#[ignore = "needs redis-server"]
fn a_full_server_is_unavailable() {
    let server = RedisServer::start();
    let store = patient(&server);
    push(&store).unwrap();
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("1").exec(&mut connection).unwrap();
    let error = push(&store).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg("0").exec(&mut connection).unwrap();
    assert_eq!(push(&store).unwrap(), 2);
}

#[test]
#[ignore = "needs redis-server"]
fn somebody_elses_key_is_refused_not_overwritten() {
    let server = RedisServer::start();
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    redis::cmd("SET").arg("{deloop:s:a}").arg("mine").exec(&mut connection).unwrap();
    let error = push(&patient(&server)).unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    let kept: String = redis::cmd("GET").arg("{deloop:s:a}").query(&mut connection).unwrap();
    assert_eq!(kept, "mine");
}

#[test]
fn a_url_that_is_none_is_an_error_without_its_password() {
    for url in [
        "",
        "localhost",
        "http://u:hunter2@localhost",
        "redis://u:hunter2@localhost:99999",
        "redis://u:hunter2@a,b:x",
    ] {
        let error = RedisStore::open(url, RedisOptions::default()).err();
        let text = error.map(|error| format!("{error} {error:?}")).unwrap_or_default();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.starts_with("not the URL of a server"), "{url}: {text}");
    }
}
