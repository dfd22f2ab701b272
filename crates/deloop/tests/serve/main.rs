//! `deloop serve`, through HTTP.
#![cfg(all(unix, feature = "serve"))]

mod agreement;
#[expect(dead_code, reason = "shared with the tests of the other commands")]
#[path = "../it/binary.rs"]
mod binary;
mod client;
#[path = "../it/conformance_cases.rs"]
mod conformance_cases;
mod endpoints;
mod limits;
mod money;
mod shutdown;
