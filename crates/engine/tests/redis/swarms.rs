use deloop_detect::{Swarm, SwarmCall, SwarmCount, SwarmWorker};
use deloop_store::contract::{Numbers, worker};
use deloop_store::{RedisStore, Store};
use deloop_types::Call;
use serde_json::json;

use crate::patient;
use crate::redis_server::RedisServer;

fn call(id: Option<&str>, n: u64) -> Call {
    let mut call = Call::default();
    call.id = id.map(ToOwned::to_owned);
    call.tool = "read".to_owned();
    call.args = json!({"path": format!("{n}.md")});
    call
}

fn tally(store: &RedisStore, by: SwarmWorker<'_>, call: &Call, n: u64) -> SwarmCount {
    let call = SwarmCall { call, target: n, signature: n };
    Store::<Vec<u64>>::tally(store, "s", by, &[call]).unwrap()[0]
}

#[test]
#[ignore = "needs redis-server"]
fn three_stores_count_one_swarm_exactly() {
    let server = RedisServer::start();
    let stores = [patient(&server), patient(&server), patient(&server)];
    let mut counts: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                let store = &stores[thread % 3];
                scope.spawn(move || {
                    let session = format!("w{thread}");
                    (0..30)
                        .map(|n| tally(store, worker(&session), &call(Some(&format!("c{n}")), 7), 7).calls)
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    counts.sort_unstable();
    assert_eq!(counts, (1..=180).collect::<Vec<_>>(), "every call is one more, whoever counts it");
    let again = tally(&stores[0], worker("w0"), &call(None, 7), 7);
    assert_eq!((again.calls, again.workers), (181, 6));
}

/// A step whose decision got lost is sent again.
#[test]
#[ignore = "needs redis-server"]
fn a_step_that_is_sent_again_counts_once() {
    let server = RedisServer::start();
    let (one, other) = (patient(&server), patient(&server));
    let c1 = call(Some("c1"), 7);
    let store_step = || one.update(&Numbers, &"a".into(), None, |s| s.push(1)).unwrap();
    let count = |store: &RedisStore, by: &str| tally(store, worker(by), &c1, 7).calls;
    assert_eq!((count(&one, "a"), count(&other, "a")), (1, 1), "on another machine, too");
    assert_eq!(count(&one, "b"), 2, "another worker's call is another call");
    assert_eq!(tally(&one, worker("a"), &call(Some("c2"), 7), 7).calls, 3, "so is one with another id");
    store_step();
    assert_eq!((count(&one, "a"), count(&one, "a")), (4, 4), "ids may be numbered anew in each turn");
    store_step();
    Store::<Vec<u64>>::forget(&one, &"a".into()).unwrap();
    assert_eq!((count(&one, "a"), count(&one, "a")), (5, 5), "and in each session");
    let no_id = call(None, 7);
    let two = [0; 2].map(|_| tally(&one, worker("a"), &no_id, 7).calls);
    assert_eq!(two, [6, 7], "without an id, every call counts");
    let turn: Vec<SwarmCall<'_>> = [&c1, &c1].map(|call| SwarmCall { call, target: 8, signature: 8 }).into();
    let counts = Store::<Vec<u64>>::tally(&one, "s", worker("a"), &turn).unwrap();
    assert_eq!(counts.iter().map(|count| count.calls).collect::<Vec<_>>(), [1, 2], "twice in one turn");
}

/// The script and the pure `Swarm` are the same rule: windows that grow and shrink with the workers, slots that are used
/// again, and the calls that are shown.
#[test]
#[ignore = "needs redis-server"]
fn counts_as_a_swarm_in_memory_does() {
    let server = RedisServer::start();
    counts_as_in_memory(&patient(&server));
    assert_eq!(server.ask("DBSIZE"), "0", "a swarm that is cleared leaves nothing");
}

pub(crate) fn counts_as_in_memory(store: &RedisStore) {
    let mut memory = Swarm::default();
    let mut random = 42_u64;
    let mut below = |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    for n in 0..4000 {
        let workers = [3, 60, 25, 40][n / 1000];
        let session = format!("w{}", below(workers));
        let by = SwarmWorker { session: &session, agent: (below(9) == 0).then_some("helper") };
        let about = below(12) * below(12);
        if below(3) == 0 {
            memory.push_in_vain(about, by);
            Store::<Vec<u64>>::tally_in_vain(store, "s", by, about).unwrap();
            continue;
        }
        let made = call(None, about);
        let expected = memory.tally(by, &[SwarmCall { call: &made, target: about, signature: about }]);
        assert_eq!([tally(store, by, &made, about)], expected[..], "call {n}");
        if n % 50 == 0 {
            let found = Store::<Vec<u64>>::look_swarm(store, "s", Swarm::state).unwrap().unwrap();
            assert_eq!(found, memory.state(), "call {n}");
        }
    }
    Store::<Vec<u64>>::forget_swarm(store, "s").unwrap();
    assert!(Store::<Vec<u64>>::swarms(store).unwrap().is_empty());
}

/// What `docs/swarms.md` says of the cost of a call.
#[test]
#[ignore = "a measurement; run it with --nocapture"]
#[expect(clippy::print_stdout, reason = "the figures are what the test is for")]
fn the_cost_of_a_call_in_a_swarm() {
    for workers in [3, 50, 500, 1000] {
        let server = RedisServer::start();
        let store = patient(&server);
        let names: Vec<String> = (0..workers).map(|n| format!("5f0c3d1e-8a2b-4c7d-9e6f-{n:012}")).collect();
        let push = |n: usize| {
            let about = n as u64 % 4000;
            tally(&store, worker(&names[n % workers]), &call(None, about), about)
        };
        (0..12_000).for_each(|n| _ = push(n));
        let mut times: Vec<_> = (0..200)
            .map(|n| {
                let start = std::time::Instant::now();
                push(n);
                start.elapsed()
            })
            .collect();
        times.sort();
        let mut connection = redis::Client::open(server.url()).unwrap().get_connection().unwrap();
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        let size = |key: &String, connection: &mut redis::Connection| -> usize {
            redis::cmd("MEMORY").arg("USAGE").arg(key).arg("SAMPLES").arg(0).query(connection).unwrap()
        };
        let seen = |key: &&String| key.ends_with(":seen");
        let bytes: usize = keys.iter().filter(|key| !seen(key)).map(|key| size(key, &mut connection)).sum();
        let seen: usize = keys.iter().filter(seen).map(|key| size(key, &mut connection)).sum();
        println!(
            "{workers} workers: {bytes} bytes and {seen} of marks, {:?} a call (median of 200)",
            times[100]
        );
    }
}
