//! Which Redis the server uses, and how: from the command line and `[serve.redis]`.

use std::path::Path;
use std::time::Duration;

use deloop_policy::ServeRedisBlock;
use deloop_server::{TlsFiles, check_certificates};
use deloop_store::{RedisOptions, RedisSecret, RedisTls};

use super::ServeArgs;
use crate::exit::Failure;
use crate::safe_file::{self, Links};
use crate::stream_sessions::redis_password;

/// Connections to each node of Redis: as many requests can wait for it at the same time.
const CONNECTIONS: usize = 16;
/// Maximum size of a file with a password, in bytes.
const LONGEST_PASSWORD: u64 = 4 << 10;
/// Maximum size of a file with certificates or a key, in bytes.
const LONGEST_CERTIFICATES: u64 = 1 << 20;

pub(crate) struct RedisSettings {
    pub(crate) url: String,
    pub(crate) options: RedisOptions,
    pub(crate) allow_eviction: bool,
}

impl RedisSettings {
    /// Returns the settings of the Redis that is configured; `None` if there is none. Flags override the configuration.
    pub(super) fn of(args: &ServeArgs, block: &ServeRedisBlock) -> Result<Option<Self>, Failure> {
        let Some(url) = args.store.as_ref().or(block.url.as_ref()) else {
            return no_redis(args, block).map(|()| None);
        };
        // A password is for the Redis it was configured with.
        let configured = if args.store.is_none() { password(block)? } else { None };
        let mut settings = Self::named(url, configured, block)?;
        let options = &mut settings.options;
        options.deadline = args.store_timeout.map_or(options.deadline, Duration::from_millis);
        options.wait_replicas = args.store_wait_replicas.unwrap_or(options.wait_replicas);
        Ok(Some(settings))
    }

    /// Returns the settings of the Redis at `url`, which is on the command line.
    pub(crate) fn at(url: &str, block: &ServeRedisBlock) -> Result<Self, Failure> {
        Self::named(url, None, block)
    }

    fn named(url: &str, configured: Option<RedisSecret>, block: &ServeRedisBlock) -> Result<Self, Failure> {
        let usual = RedisOptions::default();
        let options = RedisOptions {
            prefix: block.prefix.clone().filter(|prefix| !prefix.is_empty()).unwrap_or(usual.prefix),
            deadline: block.timeout_ms.map_or(usual.deadline, Duration::from_millis),
            connections: CONNECTIONS,
            wait_replicas: block.wait_replicas.unwrap_or(usual.wait_replicas),
            password: redis_password().or(configured),
            tls: tls(block, url)?,
            ..RedisOptions::default()
        };
        Ok(Self { url: url.to_owned(), options, allow_eviction: block.allow_eviction })
    }
}

/// Refuses settings that would do nothing: whoever made them expects Redis.
fn no_redis(args: &ServeArgs, block: &ServeRedisBlock) -> Result<(), Failure> {
    if args.store_timeout.is_some() || args.store_wait_replicas.is_some() {
        return Err(Failure::new(
            "`--store-timeout` and `--store-wait-replicas` are for Redis; add `--store redis://HOST`",
        ));
    }
    if *block != ServeRedisBlock::default() {
        return Err(Failure::new("`[serve.redis]` has no `url`; add `url = \"redis://HOST\"`, or `--store`"));
    }
    Ok(())
}

fn password(block: &ServeRedisBlock) -> Result<Option<RedisSecret>, Failure> {
    let password = match (&block.password_env, &block.password_file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(Failure::new(
                "`[serve.redis]` names a `password_env` and a `password_file`; remove one of them",
            ));
        }
        (Some(name), None) => std::env::var(name)
            .map_err(|_| Failure::new(format!("`serve.redis.password_env`: {name} isn't set")))?,
        (None, Some(file)) => text("password_file", file, LONGEST_PASSWORD)?,
    };
    // Editors end a file with a line break, which is no part of the password.
    let password = password.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(Failure::new("the password in `[serve.redis]` is empty"));
    }
    Ok(Some(password.into()))
}

fn tls(block: &ServeRedisBlock, url: &str) -> Result<RedisTls, Failure> {
    let wrong = |why: String| Failure::new(format!("`[serve.redis]`: {why}"));
    let mut tls = RedisTls::default();
    if let Some(file) = &block.ca_file {
        check_certificates(Path::new(file)).map_err(wrong)?;
        tls.root_cert = Some(text("ca_file", file, LONGEST_CERTIFICATES)?.into_bytes());
    }
    match (&block.certificate, &block.key) {
        (None, None) => {}
        (Some(certificate), Some(key)) => {
            TlsFiles { certificate: certificate.into(), key: key.into() }.check().map_err(wrong)?;
            let certificate = text("certificate", certificate, LONGEST_CERTIFICATES)?;
            let key = text("key", key, LONGEST_CERTIFICATES)?;
            tls.client = Some((certificate.into_bytes(), key.as_str().into()));
        }
        _ => return Err(wrong("`certificate` and `key` belong together; add the other one".to_owned())),
    }
    if tls != RedisTls::default() && !url.starts_with("rediss://") {
        let why =
            "there are certificates, but the connection isn't encrypted; write the address as rediss://HOST";
        return Err(wrong(why.to_owned()));
    }
    Ok(tls)
}

fn text(key: &str, file: &str, longest: u64) -> Result<String, Failure> {
    safe_file::read_text(Path::new(file), longest, Links::Follow)
        .map_err(|error| Failure::new(format!("`serve.redis.{key}`: {file}: {error}")))
}
