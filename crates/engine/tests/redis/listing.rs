use std::time::Duration;

use deloop_store::contract::{Numbers, worker};
use deloop_store::{RedisOptions, RedisStore, Store};

use crate::redis_server::RedisServer;
use crate::time::pass;
use crate::{PATIENT, patient};

const HOUR: Duration = Duration::from_secs(3600);

fn push(store: &RedisStore, session: &str) -> usize {
    store.update(&Numbers, &session.into(), None, |s| (s.push(1), s.len()).1).unwrap()
}

fn after(store: &RedisStore, after: Option<&str>, limit: u64) -> Vec<String> {
    store.sessions_after(after, limit).unwrap().iter().map(ToString::to_string).collect()
}

#[test]
#[ignore = "needs redis-server"]
fn projects_share_nothing() {
    let server = RedisServer::start();
    let store = patient(&server);
    let [a, b] = ["a", "b:}{"].map(|project| store.scoped(project));
    assert_eq!((push(&store, "x"), push(&a, "x"), push(&b, "x"), push(&a, "x")), (1, 1, 1, 2));
    push(&b, "y");
    assert_eq!([&store, &a, &b].map(|store| after(store, None, 9).len()), [1, 1, 2]);
    assert_eq!([&store, &a, &b].map(|store| store.session_count().unwrap()), [1, 1, 2]);
    assert!(b.has_session(&"y".into()).unwrap() && !a.has_session(&"y".into()).unwrap());
    Store::<Vec<u64>>::tally_in_vain(&a, "s", worker("x"), 1).unwrap();
    assert_eq!(Store::<Vec<u64>>::swarms(&a).unwrap(), ["s"]);
    assert!(Store::<Vec<u64>>::swarms(&b).unwrap().is_empty());
    assert_eq!(push(&patient(&server).scoped("a"), "x"), 3, "another server's project is the same");
}

#[test]
#[ignore = "needs redis-server"]
fn sessions_are_paged_in_order() {
    let server = RedisServer::start();
    let store = patient(&server).scoped("p");
    for name in ["b", "", "a\0\u{e9}", "c", "(", "["] {
        push(&store, name);
    }
    let all = ["", "(", "[", "a\0\u{e9}", "b", "c"];
    assert_eq!(after(&store, None, 99), all);
    assert_eq!(after(&store, None, 2), all[..2]);
    assert_eq!(after(&store, Some("("), 3), all[2..5]);
    assert_eq!(after(&store, Some("aa"), 9), ["b", "c"]);
    assert!(after(&store, Some("c"), 9).is_empty() && after(&store, None, 0).is_empty());
    Store::<Vec<u64>>::forget(&store, &"b".into()).unwrap();
    assert_eq!((after(&store, None, 99).len(), store.session_count().unwrap()), (5, 5));
    assert_eq!(push(&store, "b"), 1);
    assert_eq!(after(&store, None, 99), all, "a session that starts anew is listed again");
}

/// A session that is gone is skipped even if its entry isn't dropped yet.
#[test]
#[ignore = "needs redis-server"]
fn expired_sessions_are_not_listed() {
    let server = RedisServer::start();
    let options = RedisOptions { deadline: PATIENT, session_ttl: HOUR, ..RedisOptions::default() };
    let brief = RedisStore::open(&server.url(), options).unwrap();
    (0..5).for_each(|n| _ = push(&brief, &format!("a{n}")));
    pass(&server.url(), HOUR + Duration::from_secs(1));
    let store = patient(&server);
    push(&store, "b");
    assert_eq!(after(&store, None, 1), ["b"]);
    assert_eq!(after(&store, None, 9), ["b"]);
}
