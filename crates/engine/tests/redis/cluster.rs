use std::time::Duration;

use deloop_detect::SwarmCall;
use deloop_store::contract::{Numbers, check, check_records, worker};
use deloop_store::{RedisOptions, RedisStore, Store, StoreError};
use deloop_types::Call;

use crate::cluster_server::{RedisCluster, SLOTS};
use crate::swarms::counts_as_in_memory;
use crate::time::pass;
use crate::wait::wait_for;
use crate::{PATIENT, patient_at};

/// Returns sessions that the first node holds.
fn sessions_of_the_first(cluster: &RedisCluster, count: usize) -> Vec<String> {
    let names = (0..).map(|n| format!("s{n}"));
    names.filter(|name| cluster.slot(name) < SLOTS[1]).take(count).collect()
}

fn push(store: &RedisStore, session: &str) -> Result<usize, StoreError> {
    store.update(&Numbers, &session.into(), None, |s| (s.push(1), s.len()).1)
}

#[test]
#[ignore = "needs redis-server"]
fn three_nodes_keep_the_contract() {
    let cluster = RedisCluster::start(3);
    check(&patient_at(&cluster.url()));
    counts_as_in_memory(&patient_at(&cluster.url()).scoped("compared"));
    let pass_everywhere = |time| cluster.nodes.iter().for_each(|node| pass(&node.url(), time));
    check_records(&patient_at(&cluster.url()).records(), &pass_everywhere);
    for node in &cluster.nodes {
        assert_ne!(node.ask("DBSIZE"), "0", "every node holds a part");
    }
    let other = patient_at(&format!("redis://127.0.0.1:1,127.0.0.1:{}", cluster.nodes[2].port()));
    assert_eq!(Store::<Vec<u64>>::sessions(&other).unwrap().len(), 3, "found by a node that is up");
}

/// Three servers over three nodes: each of 200 workers is one more.
#[test]
#[ignore = "needs redis-server"]
fn three_nodes_count_one_swarm_exactly() {
    let cluster = RedisCluster::start(3);
    let stores = [0, 1, 2].map(|n| patient_at(&cluster.nodes[n].url()));
    let mut counts: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let count = |n: usize| {
                let session = format!("w{}", thread + 6 * n);
                let call = SwarmCall { call: &Call::default(), target: 7, signature: 7 };
                let tally = Store::<Vec<u64>>::tally(&stores[thread % 3], "s", worker(&session), &[call]);
                let count = tally.unwrap()[0];
                push(&stores[thread % 3], &session).unwrap();
                (count.calls, count.workers)
            };
            (0..200).filter(|n| thread + 6 * n < 200).map(count).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..6).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    counts.sort_unstable();
    assert_eq!(counts, (1..=200).map(|n| (n, n)).collect::<Vec<_>>());
    assert_eq!(stores[1].session_count().unwrap(), 200);
    assert_eq!(Store::<Vec<u64>>::sessions(&stores[2]).unwrap().len(), 200);
}

/// What one replica confirmed (`WAIT 1`) is there after the master is gone; until the replica takes over, the store fails
/// instead of waiting.
#[test]
#[ignore = "needs redis-server"]
fn what_a_replica_confirmed_survives_a_failover() {
    // Every master has a replica, because the list of sessions is on another one.
    let mut cluster = RedisCluster::start(6);
    let sessions = sessions_of_the_first(&cluster, 20);
    let options = RedisOptions { wait_replicas: 1, deadline: PATIENT, ..RedisOptions::default() };
    let url = format!("{},127.0.0.1:{}", cluster.url(), cluster.nodes[1].port());
    let store = RedisStore::open(&url, options).unwrap();
    for session in &sessions {
        assert_eq!(push(&store, session).unwrap(), 1);
    }
    let [first, replica] = [&cluster.nodes[0], &cluster.nodes[3]];
    wait_for("the replica is the master", || {
        // Redis gives up after five seconds.
        let _ = replica.try_ask("CLUSTER FAILOVER");
        replica.replication().contains("role:master")
    });
    wait_for("the master is the replica", || first.replication().contains("master_link_status:up"));
    for session in &sessions {
        assert_eq!(push(&store, session).unwrap(), 2, "{session}");
    }
    cluster.nodes[3].end();
    let hasty = store.within(Duration::from_millis(200));
    // Without another replica nothing can be confirmed, so the writes of this store fail from now on.
    let look = |store: &RedisStore| store.look(&Numbers, &sessions[0].as_str().into(), Vec::len);
    for _ in 0..3 {
        let error = look(&hasty).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    }
    cluster.nodes[0].ask("CLUSTER FAILOVER TAKEOVER");
    wait_for("the replica is used", || look(&hasty).is_ok());
    assert_eq!(look(&store).unwrap(), Some(2));
    wait_for("a change is made that nobody confirms", || {
        push(&hasty, &sessions[0]).unwrap_err().to_string().contains("too few replicas")
    });
    let unconfirmed = look(&store).unwrap().unwrap();
    assert!(unconfirmed > 2, "the change that wasn't confirmed was made");
    let store = patient_at(&url);
    assert_eq!(push(&store, &sessions[0]).unwrap(), unconfirmed + 1);
    for session in &sessions[1..] {
        assert_eq!(push(&store, session).unwrap(), 3, "{session}");
    }
}

/// A node that hangs costs the deadline for the sessions it holds. Those of other nodes continue.
#[test]
#[ignore = "needs redis-server"]
fn a_node_that_hangs_holds_up_its_own_sessions_only() {
    let cluster = RedisCluster::start(3);
    let store = patient_at(&cluster.url());
    let hasty = store.within(Duration::from_millis(200));
    let held_up = &sessions_of_the_first(&cluster, 1)[0];
    let other = (0..).map(|n| format!("o{n}")).find(|name| cluster.slot(name) >= SLOTS[1]).unwrap();
    assert_eq!((push(&store, held_up).unwrap(), push(&store, &other).unwrap()), (1, 1));
    cluster.nodes[0].signal("STOP");
    for n in 0..3 {
        let error = push(&hasty, held_up).unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        assert_eq!(push(&store, &other).unwrap(), n + 2);
    }
    cluster.nodes[0].signal("CONT");
    assert!(push(&store, held_up).is_ok(), "it is used again");
}

/// While a slot moves, its keys are on the old node or on the new one.
#[test]
#[ignore = "needs redis-server"]
fn a_slot_that_moves_is_followed() {
    let cluster = RedisCluster::start(3);
    let store = patient_at(&cluster.url());
    let session = &sessions_of_the_first(&cluster, 1)[0];
    let slot = cluster.slot(session);
    let [from, to] = [0, 1].map(|n| cluster.nodes[n].ask("CLUSTER MYID"));
    assert_eq!(push(&store, "other").unwrap(), 1);
    cluster.nodes[1].ask(&format!("CLUSTER SETSLOT {slot} IMPORTING {from}"));
    cluster.nodes[0].ask(&format!("CLUSTER SETSLOT {slot} MIGRATING {to}"));
    assert_eq!((push(&store, session).unwrap(), push(&store, session).unwrap()), (1, 2), "asked");
    for node in [1, 0, 2] {
        cluster.nodes[node].ask(&format!("CLUSTER SETSLOT {slot} NODE {to}"));
    }
    assert_eq!((push(&store, session).unwrap(), push(&store, session).unwrap()), (3, 4), "moved");
}
