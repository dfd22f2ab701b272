use deloop_detect::SwarmCall;
use deloop_engine::{Engine, Options};
use deloop_policy::Profile;
use deloop_store::contract::{Numbers, check, check_records, worker};
use deloop_store::{RedisOptions, RedisStore, Store, StoreError};
use deloop_types::{Call, Millis, Step};

use crate::redis_server::RedisServer;
use crate::time::pass;
use crate::wait::wait_for;
use crate::{PATIENT, patient};

#[test]
#[ignore = "needs redis-server"]
fn keeps_the_contract() {
    let server = RedisServer::start();
    check(&patient(&server));
}

#[test]
#[ignore = "needs redis-server"]
fn keeps_the_contract_of_records() {
    let server = RedisServer::start();
    check_records(&patient(&server).records(), &|time| pass(&server.url(), time));
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert!(keys.len() > 50, "{}", keys.len());
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(left > 0 || left == -2, "{key:?}: {left}");
    }
}

/// A cluster of one node refuses scripts whose keys are in different slots.
#[test]
#[ignore = "needs redis-server"]
fn keeps_the_contract_in_a_cluster() {
    let server = RedisServer::start_with(&["--cluster-enabled", "yes"]);
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let slots: Vec<u16> = (0..16384).collect();
    redis::cmd("CLUSTER").arg("ADDSLOTS").arg(slots).exec(&mut connection).unwrap();
    wait_for("the cluster is up", || server.ask("CLUSTER INFO").contains("cluster_state:ok"));
    check(&patient(&server));
    check_records(&patient(&server).records(), &|time| pass(&server.url(), time));
    let two = redis::cmd("EVAL").arg("return 1").arg(2).arg("a").arg("b").exec(&mut connection);
    assert_eq!(two.unwrap_err().code(), Some("CROSSSLOT"), "the server does look at slots");
}

#[test]
#[ignore = "needs redis-server"]
fn two_stores_and_eight_threads_lose_no_change() {
    let server = RedisServer::start();
    let stores = [patient(&server), patient(&server)];
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let store = &stores[thread as usize % 2];
            scope.spawn(move || {
                for n in 0..50 {
                    store.update(&Numbers, &"a".into(), None, |s| s.push(thread * 50 + n)).unwrap();
                }
            });
        }
    });
    let mut all = stores[0].look(&Numbers, &"a".into(), Clone::clone).unwrap().unwrap();
    all.sort_unstable();
    assert_eq!(all, (0..400).collect::<Vec<_>>());
}

#[test]
#[ignore = "needs redis-server"]
fn idle_sessions_start_anew() {
    let server = RedisServer::start();
    let session_ttl = std::time::Duration::from_secs(100);
    let options = RedisOptions { session_ttl, deadline: PATIENT, ..RedisOptions::default() };
    let store = RedisStore::open(&server.url(), options).unwrap();
    let push =
        |ts| store.update(&Numbers, &"a".into(), Some(Millis(ts)), |s| (s.push(1), s.len()).1).unwrap();
    assert_eq!((push(1), push(90_000), push(180_000), push(500_000), push(400_000)), (1, 2, 3, 1, 2));
}

#[test]
#[ignore = "needs redis-server"]
fn what_cannot_be_read_is_refused_and_kept() {
    let server = RedisServer::start();
    let store = patient(&server);
    let push = || store.update(&Numbers, &"a".into(), None, |s| (s.push(1), s.len()).1).unwrap();
    assert_eq!((push(), push()), (1, 2));
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    for state in [b"x".as_slice(), b"\xff"] {
        let mut spoil = redis::cmd("HSET");
        spoil.arg("{deloop:s:a}").arg("state").arg(state).exec(&mut connection).unwrap();
        assert!(matches!(store.look(&Numbers, &"a".into(), Vec::len), Err(StoreError::Decode(_))));
        let engine = Engine::new(Profile::named("doom-loop").unwrap(), Options::default());
        let step = Step::call("b", "read", serde_json::json!({"path": "plan.md"})).in_swarm("s");
        engine.observe(&store, &step).unwrap();
        let mut spoil = redis::cmd("HSET");
        spoil.arg("{deloop:s:b}").arg("state").arg(state).exec(&mut connection).unwrap();
        assert!(engine.observe(&store, &step).unwrap_err().is_unreadable(), "a worker of a swarm, too");
        let pushed = store.update(&Numbers, &"a".into(), None, |s| s.push(1));
        assert!(pushed.unwrap_err().is_unreadable());
        for session in ["a", "b"] {
            let mut read = redis::cmd("HGET");
            read.arg(format!("{{deloop:s:{session}}}")).arg("state");
            let kept: Vec<u8> = read.query(&mut connection).unwrap();
            assert_eq!(kept, state);
            Store::<Vec<u64>>::forget(&store, &session.into()).unwrap();
        }
        assert_eq!((push(), push()), (1, 2), "whoever deletes it can start anew");
    }
}

#[test]
#[ignore = "needs redis-server"]
fn names_are_any_text_and_prefixes_share_nothing() {
    let server = RedisServer::start();
    let open = |prefix: &str| {
        let options =
            RedisOptions { prefix: prefix.to_owned(), deadline: PATIENT, ..RedisOptions::default() };
        RedisStore::open(&server.url(), options).unwrap()
    };
    let (one, other) = (open("a"), open("a:s"));
    let names = ["", "a}b{c", "x:y", "*", "50%", "\0\r\n$3\r\n", "\u{1f600}"];
    for name in names {
        assert_eq!(
            one.update(&Numbers, &name.into(), None, |s| (s.push(1), s.len()).1).unwrap(),
            1,
            "{name:?}"
        );
        assert_eq!(
            other.update(&Numbers, &name.into(), None, |s| (s.push(1), s.len()).1).unwrap(),
            1,
            "{name:?}"
        );
    }
    let mut expected: Vec<deloop_types::SessionId> = names.map(Into::into).into();
    expected.sort();
    for store in [&one, &other] {
        let mut found = Store::<Vec<u64>>::sessions(store).unwrap();
        found.sort();
        assert_eq!(found, expected);
    }
}

#[test]
#[ignore = "needs redis-server"]
fn every_key_has_a_time_to_live() {
    let server = RedisServer::start();
    let store = patient(&server);
    for session in ["a", "b"] {
        store.update(&Numbers, &session.into(), None, |s| s.push(1)).unwrap();
    }
    store.update(&Numbers, &"a".into(), None, |s| s.push(1)).unwrap();
    Store::<Vec<u64>>::forget(&store, &"b".into()).unwrap();
    let mut call = Call::default();
    call.id = Some("c1".to_owned());
    // More than a swarm of one worker remembers, so that slots become free.
    for n in 0..220 {
        let session = if n < 15 { "w1" } else { "w2" };
        let call = SwarmCall { call: &call, target: n, signature: n };
        Store::<Vec<u64>>::tally(&store, "s", worker(session), &[call]).unwrap();
        Store::<Vec<u64>>::tally_in_vain(&store, "s", worker(session), n).unwrap();
    }
    let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
    assert_eq!(keys.len(), 1 + 1 + 8 + 2 * 2, "{keys:?}");
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut connection).unwrap();
        assert!(left > 0 && left <= 7 * 24 * 3_600_000 + 600_000, "{key}: {left}");
        let tag = key.split_once('}').unwrap().0;
        let tags = ["{deloop:s:a", "{deloop:s:b", "{deloop:w:s", "{deloop:i:s", "{deloop:i:w"];
        assert!(tags.contains(&tag), "{key}");
    }
}
