//! The store in Redis, on a real server. `cargo xtask check` runs them where redis-server is installed.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests start a server, stop it and measure how long an agent waits"
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
mod wait;

use std::time::Duration;

use deloop_store::{RedisOptions, RedisStore};

use redis_server::RedisServer;

/// Opens a store that waits long enough for a busy machine: these tests count.
fn patient(server: &RedisServer) -> RedisStore {
    patient_at(&server.url())
}

fn patient_at(url: &str) -> RedisStore {
    let options = RedisOptions { deadline: Duration::from_secs(10), ..RedisOptions::default() };
    RedisStore::open(url, options).unwrap()
}
