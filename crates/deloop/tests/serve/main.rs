//! `deloop serve`, through HTTP.
#![cfg(all(unix, feature = "serve"))]

mod access;
mod agreement;
mod alert_formats;
mod alert_routes;
mod alerts;
mod attack_target;
mod attacks;
mod audit;
#[expect(dead_code, reason = "shared with the tests of the other commands")]
#[path = "../it/binary.rs"]
mod binary;
mod client;
#[path = "../it/conformance_cases.rs"]
mod conformance_cases;
mod connections;
#[path = "../../../engine/tests/redis/encrypted_server.rs"]
mod encrypted_server;
mod endpoints;
mod events;
mod fake_server;
mod faults;
mod faults_redis;
mod full_disk;
mod hook;
mod hook_access;
mod isolation;
mod limits;
mod messages;
mod money;
mod openapi;
mod ownership;
mod permissions;
mod receiver;
#[expect(dead_code, reason = "shared with the tests of the store")]
#[path = "../../../engine/tests/redis/cluster_server.rs"]
mod redis_cluster;
#[expect(dead_code, reason = "shared with the tests of the store")]
#[path = "../../../engine/tests/redis/server.rs"]
mod redis_server;
mod redis_settings;
mod say;
mod shared_servers;
mod shutdown;
mod stops;
mod stored_states;
mod stuck_swarms;
mod test_clock;
mod tls;
mod together;
#[path = "../../../engine/tests/redis/wait.rs"]
mod wait;
