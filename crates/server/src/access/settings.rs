use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::gate::AccessGate;
use super::tls::{TlsAccess, load, read_certificates};
use crate::clock::Clock;
use crate::connections::ConnectionLimits;

/// Who may use a server, and how.
#[derive(Debug, Clone)]
pub struct AccessSettings {
    /// The key file. If it exists, every request needs a key.
    pub key_file: PathBuf,
    /// The names of this server, for requests with a key.
    pub hosts: Vec<String>,
    /// The certificate; without one, the server speaks plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Allow plain HTTP on addresses that other machines can reach.
    pub allow_plain_http: bool,
    /// How much one key may use.
    pub limits: RateLimits,
    /// How many connections there may be.
    pub connections: ConnectionLimits,
    /// The time that the server goes by.
    pub clock: Clock,
}

/// The files that TLS needs.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The server's certificate and those it builds on, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Checks that both can be read and fit together.
    ///
    /// # Errors
    /// Says which file is wrong and what it must have, without quoting it.
    pub fn check(&self) -> Result<(), String> {
        load(self).map(drop)
    }
}

/// Checks that a file has certificates in PEM.
///
/// # Errors
/// Says what the file must have, without quoting it.
pub fn check_certificates(file: &Path) -> Result<(), String> {
    read_certificates(file).map(drop)
}

/// How much one key may use on one server. 0 means no limit. All limits of a key are here, with their defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// Requests per second.
    pub requests_per_second: u64,
    /// Steps per second.
    pub steps_per_second: u64,
    /// How many seconds' worth a key may use at once after a pause; at least 1.
    pub burst: u64,
    /// Sessions, and subagents of sessions, that it may start per minute.
    pub new_agents_per_minute: u64,
    /// Swarms that it may use within an hour.
    pub swarms_per_hour: u64,
    /// Clients that may listen for events with it at the same time.
    pub listeners: u64,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            requests_per_second: 2_000,
            steps_per_second: 100_000,
            burst: 10,
            new_agents_per_minute: 6_000,
            swarms_per_hour: 1_000,
            listeners: 32,
        }
    }
}

impl RateLimits {
    pub(super) fn burst_of(self, rate: u64) -> f64 {
        rate as f64 * self.burst.max(1) as f64
    }
}

/// Keys and certificate of a server, read and checked.
pub struct ServerAccess {
    pub(crate) gate: AccessGate,
    pub(crate) tls: Option<Arc<TlsAccess>>,
    pub(crate) connections: ConnectionLimits,
    pub(crate) clock: Clock,
}

impl ServerAccess {
    /// Reads keys and certificate, and checks that it is safe to listen on this address with them.
    ///
    /// # Errors
    /// When a file can't be read, or other machines can reach the address and there are no keys or no TLS. The message
    /// names the fix.
    pub fn open(settings: AccessSettings, address: SocketAddr) -> Result<Self, String> {
        let AccessSettings { key_file, hosts, tls, allow_plain_http, limits, connections, clock } = settings;
        let gate = AccessGate::open(key_file, hosts, limits, clock.clone())?;
        let port = address.port();
        if !address.ip().is_loopback() {
            if !gate.needs_keys() {
                return Err(format!(
                    "--listen {address}: anyone who can reach that address could read and change your sessions, \
                     because this server has no keys. Create one with `deloop keys add NAME --scope ingest,read`, or \
                     listen on 127.0.0.1:{port} or [::1]:{port}"
                ));
            }
            if tls.is_none() && !allow_plain_http {
                return Err(format!(
                    "--listen {address}: without TLS, anyone on the way can read the keys. Give --tls-cert and \
                     --tls-key, or `certificate` and `key` under `[serve.tls]`; if a proxy in front of this server \
                     speaks TLS, add --allow-plain-http"
                ));
            }
        }
        let tls = tls.map(|files| TlsAccess::open(files, clock.clone())).transpose()?.map(Arc::new);
        Ok(Self { gate, tls, connections, clock })
    }

    /// Returns `https` or `http`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}
