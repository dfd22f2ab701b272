//! `deloop serve`: Steps in, Decisions out, over HTTP.

pub(crate) mod redis;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use deloop_engine::Engine;
use deloop_policy::{AuditBlock, AuditKeep, ServeBlock};
use deloop_server::{
    AccessSettings, AuditEntry, AuditKey, AuditLog, AuditSettings, Broker, BrokerStore, BudgetLimits, Clock,
    ConnectionLimits, KEY_FILE, RateLimits, ServerAccess, ServerNotice, TellFn, TlsFiles, TurnForm,
    configuration_hash,
};
use deloop_types::Millis;
use serde_json::json;

use crate::alerts;
use crate::args::RuleArgs;
use crate::audit::{AUDIT_FOLDER, person};
use crate::config::{self, Config};
use crate::exit::{self, Failure};
use crate::hook;
use crate::print;
use crate::state::{SERVER_DATABASE, State};
use redis::RedisSettings;

/// Maximum length of a reported error, in characters.
const LONGEST_ERROR: usize = 2000;

pub(crate) const SERVE_HELP: &str = "\
Examples:
  deloop serve
  deloop serve --listen 127.0.0.1:8080 --profile doom-loop --state /var/lib/deloop
  deloop serve --store redis://redis.internal:6379
  deloop serve --listen 0.0.0.0:7430 --tls-cert deloop.pem --tls-key deloop.key
  curl -d '{\"type\":\"turn\",\"session\":\"s1\",\"text\":\"Again.\"}' http://127.0.0.1:7430/v1/steps
  curl http://127.0.0.1:7430/v1/sessions/s1

To listen on an address that other machines can reach, create a key first (`deloop keys add`) and
give a certificate. Prints its address on stderr when it is ready. SIGINT and SIGTERM finish the requests in progress
and close the database. SIGHUP reads the keys and the certificate again.

Exit codes: 0 after a signal; 2 the server couldn't start.";

/// `deloop serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    /// The address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7430")]
    pub(crate) listen: SocketAddr,
    /// Keep sessions in Redis, which several servers can share: `redis://HOST[:PORT]`, or `rediss://` for TLS
    #[arg(long, value_name = "URL", env = "DELOOP_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// How long a request may wait for Redis, in milliseconds; then the agent continues [default: 300]
    #[arg(long, value_name = "MS")]
    pub(crate) store_timeout: Option<u64>,
    /// How many replicas must have a change before the step is answered; if fewer confirm it in time, the agent continues [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) store_wait_replicas: Option<u32>,
    /// The folder of the database, `server.db`, the keys, `keys.json`, and the audit log [default: your state folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// Certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen without TLS on an address that other machines can reach, because a proxy in front of it speaks TLS
    #[arg(long)]
    pub(crate) allow_plain_http: bool,
}

pub(crate) fn run(args: &ServeArgs) -> Result<u8, Failure> {
    let (address, clock) = (args.listen, Clock::new());
    let config = config::load(&args.rules)?;
    let price = Arc::new(hook::price_with(config.prices()?));
    let routes = alerts::routes(&config)?;
    let block = config.serve()?;
    let budgets = BudgetLimits::new(&block.budgets).map_err(Failure::new)?;
    let keep = block.audit.clone();
    let redis = RedisSettings::of(args, &block.redis)?;
    let configuration = configuration_hash(config.document(), &config.options);
    let about = json!({
        "version": env!("CARGO_PKG_VERSION"), "profile": config.profile.name, "mode": config.options.mode,
        "attended": config.options.attended, "off": config.off,
    });
    let Config { profile, options, off, .. } = config;
    let file = match &args.state {
        // The user's own folder keeps its permissions. A new one, and the file, are private.
        Some(folder) => folder.join(SERVER_DATABASE),
        None => State::here()?.server_database()?,
    };
    let access = settings(args, block, &file.with_file_name(KEY_FILE), clock.clone())?;
    let access = ServerAccess::open(access, address).map_err(Failure::new)?;
    let scheme = access.scheme();
    let tell: TellFn = Arc::new(move |notice| match notice {
        ServerNotice::Ready(address) => {
            print::tell(format_args!("deloop: listening on {scheme}://{address}"));
        }
        ServerNotice::Stopping => print::tell("deloop: finishing requests"),
        ServerNotice::Reloaded => print::tell("deloop: read the keys and the certificate again"),
        ServerNotice::Failed(reason) => {
            print::tell(format_args!("deloop: {}", print::log_line(&reason, LONGEST_ERROR)));
        }
        _ => {}
    });
    let store = match &redis {
        Some(RedisSettings { url, options, allow_eviction }) => {
            BrokerStore::Redis { url, options: options.clone(), allow_eviction: *allow_eviction }
        }
        None => BrokerStore::File(&file),
    };
    let engine = Engine::new(profile, options);
    let mut broker = Broker::open(store, engine, price, budgets, off, clock.now(), Arc::clone(&tell))
        .map_err(|error| Failure::new(error.to_string()))?;
    let audit = open_audit(&file, configuration, &keep, clock.now())?;
    let started = AuditEntry::new(clock.now(), &person(), "server.start").with_detail(about);
    audit.append(&[started]).map_err(|error| Failure::new(error.to_string()))?;
    let turns = if keep.keep == AuditKeep::Text { TurnForm::Text } else { TurnForm::Short };
    broker = broker.with_audit(Arc::new(audit), turns);
    let folder = file.parent().unwrap_or(Path::new(""));
    let claims = broker.alert_claims(clock.clone());
    if let Some(alerts) = alerts::start(routes, folder, claims, clock, Arc::clone(&tell))? {
        broker = broker.with_alerts(alerts);
    }
    deloop_server::serve(broker, address, access, tell)
        .map_err(|error| Failure::new(format!("{address}: {error}")))?;
    Ok(exit::OK)
}

/// Returns who may use the server. Flags override the configuration.
fn settings(
    args: &ServeArgs,
    block: ServeBlock,
    key_file: &Path,
    clock: Clock,
) -> Result<AccessSettings, Failure> {
    let ServeBlock { hosts, tls, limits, .. } = block;
    let given = args.tls_cert.clone().zip(args.tls_key.clone());
    let configured = match (tls.certificate, tls.key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Some((certificate.into(), key.into())),
        _ => return Err(Failure::new("`[serve.tls]` needs both `certificate` and `key`")),
    };
    let tls = given.or(configured).map(|(certificate, key)| TlsFiles { certificate, key });
    let usual = ConnectionLimits::default();
    let given = |limit: Option<u64>, usual| limit.map_or(usual, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let connections = ConnectionLimits {
        connections: given(limits.connections, usual.connections),
        per_address: given(limits.connections_per_address, usual.per_address),
        per_key: given(limits.connections_per_key, usual.per_key),
    };
    let usual = RateLimits::default();
    let limits = RateLimits {
        requests_per_second: limits.requests_per_second.unwrap_or(usual.requests_per_second),
        steps_per_second: limits.steps_per_second.unwrap_or(usual.steps_per_second),
        burst: limits.burst.unwrap_or(usual.burst),
        new_agents_per_minute: limits.new_agents_per_minute.unwrap_or(usual.new_agents_per_minute),
        swarms_per_hour: limits.swarms_per_hour.unwrap_or(usual.swarms_per_hour),
        listeners: limits.listeners.unwrap_or(usual.listeners),
    };
    let allow_plain_http = args.allow_plain_http;
    let key_file = key_file.to_owned();
    Ok(AccessSettings { key_file, hosts, tls, allow_plain_http, limits, connections, clock })
}

/// Opens the audit log beside the database.
fn open_audit(
    database: &Path,
    configuration: String,
    keep: &AuditBlock,
    now: Millis,
) -> Result<AuditLog, Failure> {
    let folder = database.with_file_name(AUDIT_FOLDER);
    let state = folder.parent().unwrap_or(Path::new(""));
    let wrong = |why: String| Failure::new(format!("`serve.audit.key_file`: {why}"));
    let read = |file: &String| AuditKey::read(Path::new(file), state).map_err(wrong);
    let mut settings = AuditSettings::default();
    settings.configuration = Some(configuration);
    (settings.keep_days, settings.keep_mib) = (keep.keep_days, keep.keep_mib);
    settings.key = keep.key_file.as_ref().map(read).transpose()?;
    AuditLog::open(&folder, settings, now).map_err(|error| Failure::new(error.to_string()))
}
