//! `deloop serve`, through HTTP.

mod agreement;
mod client;
mod endpoints;
mod limits;
mod shutdown;
