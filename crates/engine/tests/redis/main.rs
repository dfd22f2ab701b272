//! The store in Redis, on a real server. `cargo xtask check` runs them where redis-server is installed.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests start a server and stop it, and some are measurements"
)]

mod cluster;
mod cluster_server;
mod contract;
mod encrypted;
mod encrypted_server;
mod faults;
mod listing;
mod many;
#[path = "server.rs"]
mod redis_server;
mod reference;
mod refusals;
mod swarms;
mod time;
mod wait;

use std::time::Duration;

use deloop_store::{RedisOptions, RedisStore};

use redis_server::RedisServer;

/// How long a store waits in a test that isn't about waiting: longer than the machine can be busy.
const PATIENT: Duration = Duration::from_secs(120);

/// Opens a store that waits as long as it takes.
fn patient(server: &RedisServer) -> RedisStore {
    patient_at(&server.url())
}

fn patient_at(url: &str) -> RedisStore {
    let options = RedisOptions { deadline: PATIENT, ..RedisOptions::default() };
    RedisStore::open(url, options).unwrap()
}
