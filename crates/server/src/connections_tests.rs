use std::time::Duration;

use futures_util::FutureExt;

use super::*;
use crate::clock::Clock;

fn table(connections: usize, per_address: usize, per_key: usize) -> Arc<ConnectionTable> {
    Arc::new(ConnectionTable::new(ConnectionLimits { connections, per_address, per_key }))
}

fn connect(table: &Arc<ConnectionTable>, address: u8) -> OpenConnection {
    let deadline = HeadDeadline::new(Duration::from_secs(10), Clock::default());
    table.add(IpAddr::from([192, 0, 2, address]), Arc::new(deadline))
}

fn is_closed(connection: &OpenConnection) -> bool {
    connection.closed().now_or_never().is_some()
}

fn sender(key: &str) -> Requester {
    Requester::with_key(key)
}

/// Lets a request with this key be answered.
fn serve(connection: &OpenConnection, key: &str) -> Result<(), ConnectionLimit> {
    connection.deadline().arrived();
    connection.serve(&sender(key))?;
    connection.deadline().answered(axum::response::Response::default(), Clock::default().moment());
    Ok(())
}

fn counts(table: &ConnectionTable) -> (usize, usize) {
    let open = lock(&table.open);
    (open.served.len(), open.new.len())
}

#[test]
fn silent_connections_make_room_oldest_first_and_never_displace_a_served_one() {
    let table = table(3, 1_000, 1_000);
    let served: Vec<_> = (0..3).map(|_| connect(&table, 1)).collect();
    served.iter().for_each(|connection| serve(connection, "k").unwrap());
    let silent: Vec<_> = (0..3 * RESERVE).map(|_| connect(&table, 2)).collect();
    assert!(served.iter().all(|connection| !is_closed(connection)));
    let closed: Vec<bool> = silent.iter().map(is_closed).collect();
    let (old, young) = closed.split_at(2 * RESERVE);
    assert!(old.iter().all(|closed| *closed) && young.iter().all(|closed| !closed));
    assert_eq!(counts(&table), (3, RESERVE));
    drop((served, silent));
    assert_eq!(counts(&table), (0, 0));
    assert!(lock(&table.open).of_address.is_empty() && lock(&table.open).of_key.is_empty());
}

#[test]
fn an_address_has_as_many_silent_connections_as_it_may_and_served_ones_beside_them() {
    let table = table(1_000, 2, 1_000);
    let silent: Vec<_> = (0..3).map(|_| connect(&table, 1)).collect();
    let other = connect(&table, 2);
    assert_eq!(silent.iter().map(is_closed).collect::<Vec<_>>(), [true, false, false]);
    assert!(!is_closed(&other));
    // Agents behind one address are no attack.
    let agents: Vec<_> = (0..10)
        .map(|_| {
            let agent = connect(&table, 3);
            serve(&agent, "k").unwrap();
            agent
        })
        .collect();
    assert!(agents.iter().all(|agent| !is_closed(agent)));
}

#[test]
fn a_key_and_the_server_give_up_their_longest_idle_connection_and_none_that_is_answering() {
    let table = table(4, 1_000, 2);
    let mine: Vec<_> = (0..3).map(|_| connect(&table, 1)).collect();
    serve(&mine[0], "mine").unwrap();
    serve(&mine[1], "mine").unwrap();
    mine[0].deadline().arrived();
    serve(&mine[2], "mine").unwrap();
    assert_eq!(mine.iter().map(is_closed).collect::<Vec<_>>(), [false, true, false]);
    mine[2].deadline().arrived();
    let one_more = connect(&table, 1);
    assert_eq!(one_more.serve(&sender("mine")), Err(ConnectionLimit::Key(2)));
    let others: Vec<_> = ["a", "b"].map(|key| (connect(&table, 1), key)).into_iter().collect();
    for (connection, key) in &others {
        serve(connection, key).unwrap();
        connection.deadline().arrived();
    }
    assert_eq!(one_more.serve(&sender("c")), Err(ConnectionLimit::Server(4)));
    others[0].0.deadline().answered(axum::response::Response::default(), Clock::default().moment());
    serve(&one_more, "c").unwrap();
    assert!(is_closed(&others[0].0) && !is_closed(&others[1].0));
    assert!(table.text().contains("deloop_connections_closed_total{limit=\"key\"} 1\n"), "{}", table.text());
}
