//! `deloop serve`, through HTTP.
#![cfg(all(unix, feature = "serve"))]

mod access;
mod agreement;
mod attack_target;
mod attacks;
#[expect(dead_code, reason = "shared with the tests of the other commands")]
#[path = "../it/binary.rs"]
mod binary;
mod client;
#[path = "../it/conformance_cases.rs"]
mod conformance_cases;
mod endpoints;
mod events;
mod isolation;
mod limits;
mod messages;
mod shutdown;
mod stuck_swarms;
mod tls;
