use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The settings of `deloop serve`. Only your own configuration can have them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ServeBlock {
    /// The host names of this server, without ports. Requests with a key may use these, an IP address or `localhost`.
    pub hosts: Vec<String>,
    /// The certificate of this server.
    pub tls: ServeTlsBlock,
    /// How much one key may use on this server, and how many connections there may be.
    pub limits: ServeLimitsBlock,
    /// Where alerts go. An alert goes to every route that matches.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::AlertRouteBlock>"))]
    pub alerts: Vec<Value>,
    /// The audit log.
    pub audit: AuditBlock,
    /// What sessions and projects may spend.
    pub budgets: BudgetsBlock,
    /// The Redis that keeps sessions and swarms, for several servers.
    pub redis: ServeRedisBlock,
}

/// The certificate of a server. It is read again when the files change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ServeTlsBlock {
    /// A PEM file with the certificate, then those it builds on. A relative path starts at this configuration's folder.
    pub certificate: Option<String>,
    /// A PEM file with the unencrypted private key.
    pub key: Option<String>,
}

/// The Redis of a server. A relative path starts at this configuration's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ServeRedisBlock {
    /// Its address: `redis://HOST[:PORT]`, or `rediss://HOST[:PORT]` for TLS. `--store` overrides it.
    pub url: Option<String>,
    /// The environment variable that holds the password. `DELOOP_REDIS_PASSWORD` overrides it.
    pub password_env: Option<String>,
    /// The file that holds the password.
    pub password_file: Option<String>,
    /// What the names of all keys start with; `deloop` if absent. Servers with different prefixes share nothing.
    pub prefix: Option<String>,
    /// How long a request may wait for Redis, in milliseconds; 300 if absent. `--store-timeout` overrides it.
    pub timeout_ms: Option<u64>,
    /// How many replicas must have a change before the step is answered; 0 if absent. `--store-wait-replicas` overrides it.
    pub wait_replicas: Option<u32>,
    /// Be ready although Redis drops keys when its memory is full, so that stopped sessions may continue.
    pub allow_eviction: bool,
    /// A PEM file with the certificates to trust in place of the system's.
    pub ca_file: Option<String>,
    /// A PEM file with the certificate that identifies this server to Redis.
    pub certificate: Option<String>,
    /// A PEM file with the private key of this certificate.
    pub key: Option<String>,
}

/// How much one key may use on one server, and how many connections there may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ServeLimitsBlock {
    /// Requests per second; 2000 if absent, 0 for no limit.
    pub requests_per_second: Option<u64>,
    /// Steps per second; 100000 if absent, 0 for no limit.
    pub steps_per_second: Option<u64>,
    /// How many seconds' worth of these two a key may use at once after a pause, at least 1; 10 if absent.
    pub burst: Option<u64>,
    /// Connections on which requests were served; 8192 if absent. The one that is idle longest makes room for another.
    pub connections: Option<u64>,
    /// Connections of one address on which no request was served yet; 4096 if absent. The oldest makes room for another.
    pub connections_per_address: Option<u64>,
    /// Connections of one key; 4096 if absent. The one that is idle longest makes room for another.
    pub connections_per_key: Option<u64>,
    /// Sessions, and subagents of sessions, that a key may start per minute; 6000 if absent, 0 for no limit. Steps of
    /// further ones get `continue` and aren't stored.
    pub new_agents_per_minute: Option<u64>,
    /// Swarms that a key may use within an hour; 1000 if absent, 0 for no limit. Steps of further ones are judged without
    /// their swarm.
    pub swarms_per_hour: Option<u64>,
    /// Clients that may listen for events with one key at the same time; 32 if absent, 0 for no limit.
    pub listeners: Option<u64>,
}

/// How the audit log of `deloop serve` is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AuditBlock {
    /// How much of a stopped session's turns is recorded.
    pub keep: AuditKeep,
    /// Delete records older than this many days. Without it, nothing is deleted because of its age.
    pub keep_days: Option<u32>,
    /// Delete the oldest records while the log is larger than this, in MiB. Without it, the log grows without limit.
    pub keep_mib: Option<u32>,
    /// A file with a secret of at least 32 bytes, outside of the state folder. Every record is authenticated with it.
    pub key_file: Option<String>,
}

/// How much of a stopped session's turns is recorded. Secrets are masked either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum AuditKeep {
    /// The beginning of the text, and each call's tool and most telling argument.
    #[default]
    Short,
    /// The text and the arguments, up to 4 KiB per turn.
    Text,
}

/// What sessions and projects may spend on models. A budget that is absent doesn't limit anything. Days are UTC days.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BudgetsBlock {
    /// What one session may spend, in dollars.
    pub session_usd: Option<f64>,
    /// What one project may spend per day, in dollars.
    pub project_usd: Option<f64>,
    /// What all projects together may spend per day, in dollars.
    pub day_usd: Option<f64>,
    /// The most that one request counts, in dollars; 100 if absent. What a `usage` step reports beyond it doesn't count.
    pub request_usd: Option<f64>,
    /// The share of a budget at which people are warned, 0 to 1; 0.8 if absent.
    pub warn_at: Option<f64>,
    /// What happens while the server can't find out what was spent.
    pub when_unknown: WhenUnknown,
    /// Budgets of single projects, by name. They replace those above.
    pub projects: BTreeMap<String, ProjectBudgetBlock>,
}

/// The budgets of one project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ProjectBudgetBlock {
    /// What one session of the project may spend, in dollars.
    pub session_usd: Option<f64>,
    /// What the project may spend per day, in dollars.
    pub project_usd: Option<f64>,
}

/// What happens while a server can't find out what was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WhenUnknown {
    /// Agents continue. What this server itself counted still applies.
    #[default]
    Continue,
    /// Agents whose budgets are unknown for more than five seconds are stopped.
    Stop,
}
