use std::fmt;
use std::time::Duration;

/// Settings of a [`crate::RedisStore`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// What the names of all keys start with. Stores with different prefixes share nothing. Default: `deloop`.
    pub prefix: String,
    /// How long an operation may take, connecting and retries included. Listing sessions or swarms may take this long
    /// per 1,000 of them. Default: 300 ms.
    pub deadline: Duration,
    /// A session is dropped when it had no step for this long, by Redis's clock or by the steps' own times. Default:
    /// 7 days.
    pub session_ttl: Duration,
    /// A swarm is dropped when it had no call for this long. Default: 1 day.
    pub swarm_ttl: Duration,
    /// Maximum number of connections to a node, each in a thread of its own. Default: 4.
    pub connections: usize,
    /// How many replicas must have received a change before it counts as made (`WAIT`). If fewer confirm it within the
    /// deadline, the operation fails although the change was made. Default: 0.
    pub wait_replicas: u32,
    /// The password, for URLs without one. Takes precedence over the URL's.
    pub password: Option<RedisSecret>,
    /// Certificates for `rediss://` URLs.
    pub tls: RedisTls,
}

impl Default for RedisOptions {
    fn default() -> Self {
        let day = Duration::from_secs(24 * 3600);
        Self {
            prefix: "deloop".to_owned(),
            deadline: Duration::from_millis(300),
            session_ttl: 7 * day,
            swarm_ttl: day,
            connections: 4,
            wait_replicas: 0,
            password: None,
            tls: RedisTls::default(),
        }
    }
}

/// Certificates for an encrypted connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedisTls {
    /// The certificates of the authorities that are trusted, in PEM. Default: those of the system.
    pub root_cert: Option<Vec<u8>>,
    /// The certificate and the key that identify this client, in PEM.
    pub client: Option<(Vec<u8>, RedisSecret)>,
}

/// Holds a password or a key. Its text is never part of a message.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisSecret(String);

impl RedisSecret {
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RedisSecret {
    fn from(secret: &str) -> Self {
        Self(secret.to_owned())
    }
}

impl From<String> for RedisSecret {
    fn from(secret: String) -> Self {
        Self(secret)
    }
}

impl fmt::Debug for RedisSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
