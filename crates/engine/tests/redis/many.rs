use deloop_detect::SwarmCall;
use deloop_store::contract::{Numbers, worker};
use deloop_store::{RedisStore, SessionStored, SessionWrite, Store, SwarmTurn};
use deloop_types::{Call, Millis, SessionId};

use crate::patient;
use crate::redis_server::RedisServer;

/// Returns how often the server read from its clients: about once per round trip.
fn reads(server: &RedisServer) -> usize {
    let stats = server.ask("INFO stats");
    let line = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
    line.unwrap().parse().unwrap()
}

fn names(count: usize) -> Vec<SessionId> {
    (0..count).map(|n| SessionId::from(format!("s{n}"))).collect()
}

#[test]
#[ignore = "needs redis-server"]
fn a_hundred_sessions_take_one_round_trip_each_way() {
    let server = RedisServer::start();
    let store = patient(&server);
    store.update(&Numbers, &"warm".into(), None, |s| s.push(1)).unwrap();
    let sessions = names(100);
    let asked: Vec<_> = sessions.iter().map(|session| (session, None)).collect();
    let before = reads(&server);
    let pushed = store.update_many(&Numbers, &asked, |n, s| (s.push(n as u64), s.clone()).1);
    // The server reads at most 16 KiB at a time, and counts the reading of its own statistics.
    let taken = reads(&server) - before;
    assert!(taken < 20, "{taken}");
    for (n, pushed) in pushed.into_iter().enumerate() {
        assert_eq!(pushed.unwrap(), [n as u64]);
    }
    assert_eq!(store.session_count().unwrap(), 101);
}

#[test]
#[ignore = "needs redis-server"]
fn a_session_that_is_listed_twice_is_changed_twice() {
    let server = RedisServer::start();
    let store = patient(&server);
    let sessions = names(2);
    let asked = [(&sessions[0], None), (&sessions[1], None), (&sessions[0], None)];
    let pushed = store.update_many(&Numbers, &asked, |n, s| (s.push(n as u64), s.clone()).1);
    let pushed: Vec<_> = pushed.into_iter().map(Result::unwrap).collect();
    assert_eq!(pushed, [vec![0], vec![1], vec![0, 2]]);
}

#[test]
#[ignore = "needs redis-server"]
fn only_the_version_that_was_read_is_replaced() {
    let server = RedisServer::start();
    let (one, other) = (patient(&server), patient(&server));
    let sessions = names(3);
    let load = |ts| -> Vec<_> {
        let asked: Vec<_> = sessions.iter().map(|session| (session, ts)).collect();
        one.load_many(&asked).into_iter().map(Result::unwrap).collect()
    };
    let loaded = load(None);
    assert!(loaded.iter().all(|session| session.version.is_empty() && session.state.is_none()));
    other.update(&Numbers, &sessions[1], None, |s| s.push(7)).unwrap();
    let ts = Some(Millis(1_000));
    let write = |n: usize, version, state| SessionWrite { session: &sessions[n], version, ts, state };
    let stored = one.store_many(&[write(0, "", "5"), write(1, "", "6"), write(2, "gone", "8")]);
    let [SessionStored::Stored(version), SessionStored::Newer(newer), SessionStored::Newer(none)] =
        &stored[..]
    else {
        panic!("{stored:?}")
    };
    assert_eq!((newer.state.as_deref(), none.state.as_deref()), (Some("7"), None));
    assert_ne!(newer.version, *version);
    let again = one.store_many(&[write(0, version, "5,5"), write(1, &newer.version, "7,6")]);
    assert!(again.iter().all(|stored| matches!(stored, SessionStored::Stored(_))), "{again:?}");
    let states: Vec<_> = load(ts).into_iter().map(|session| session.state).collect();
    assert_eq!(states, [Some("5,5".to_owned()), Some("7,6".to_owned()), None]);
    let week = Some(Millis(8 * 24 * 3_600_000));
    assert!(load(week).iter().all(|session| session.state.is_none()), "idle sessions start anew");
}

#[test]
#[ignore = "needs redis-server"]
fn many_threads_and_many_sessions_lose_no_change() {
    let server = RedisServer::start();
    let stores = [patient(&server), patient(&server)];
    let sessions = names(5);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (store, sessions) = (&stores[thread % 2], &sessions);
            scope.spawn(move || {
                for round in 0..20 {
                    let asked: Vec<_> = sessions.iter().map(|session| (session, None)).collect();
                    let done =
                        store.update_many(&Numbers, &asked, |_, s| s.push((thread * 100 + round) as u64));
                    done.into_iter().for_each(|done| done.unwrap());
                }
            });
        }
    });
    for session in &sessions {
        let mut all = stores[0].look(&Numbers, session, Clone::clone).unwrap().unwrap();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 80);
    }
}

#[test]
#[ignore = "needs redis-server"]
fn turns_of_many_swarms_are_tallied_together() {
    let server = RedisServer::start();
    let store = patient(&server);
    store.update(&Numbers, &"a".into(), None, |s| s.push(1)).unwrap();
    let version = store.load_many(&[(&"a".into(), None)]).remove(0).unwrap().version;
    let mut call = Call::default();
    call.id = Some("c1".to_owned());
    let calls = [SwarmCall { call: &call, target: 7, signature: 7 }; 2];
    let turn = |swarm, session, version, turn| SwarmTurn {
        swarm,
        worker: worker(session),
        calls: &calls,
        version,
        turn,
    };
    let known = Some(version.as_str());
    let turns = [
        turn("s", "a", known, 0),
        turn("t", "a", known, 0),
        turn("s", "b", None, 0),
        turn("s", "a", known, 1),
        turn("s", "a", None, 0),
    ];
    let count = |store: &RedisStore| -> Vec<Vec<u64>> {
        let counted = store.tally_many(&turns).into_iter().map(Result::unwrap);
        counted.map(|counts| counts.iter().map(|count| count.calls).collect()).collect()
    };
    let all = vec![vec![1, 2], vec![1, 2], vec![3, 4], vec![5, 6], vec![6, 6]];
    assert_eq!(count(&store), all, "the last turn is the first, sent again: the version is the same");
    let again = vec![vec![6, 6], vec![2, 2], vec![6, 6], vec![6, 6], vec![6, 6]];
    assert_eq!(count(&patient(&server)), again, "sent again to another machine");
    let mut swarms = Store::<Vec<u64>>::swarms(&store).unwrap();
    swarms.sort();
    assert_eq!(swarms, ["s", "t"]);
}

/// What `docs/redis.md` says of batches.
#[test]
#[ignore = "a measurement; run it with --nocapture"]
#[expect(clippy::print_stdout, reason = "the figures are what the test is for")]
fn the_cost_of_a_session_in_a_batch() {
    let server = RedisServer::start();
    let store = patient(&server);
    let sessions = names(10_000);
    for size in [1, 10, 100, 1000] {
        let mut times = Vec::new();
        for batch in sessions.chunks(size).take(200) {
            let asked: Vec<_> = batch.iter().map(|session| (session, None)).collect();
            let start = std::time::Instant::now();
            // About 2 KiB, as a session of some dozen steps has.
            let done = store.update_many(&Numbers, &asked, |_, s| s.resize(500, 123));
            times.push(start.elapsed() / u32::try_from(size).unwrap());
            assert!(done.iter().all(Result::is_ok));
        }
        times.sort();
        println!("{size} sessions at a time: {:?} each (median)", times[times.len() / 2]);
    }
}
