//! Where the server is and how to reach it, from the user's configuration, environment and command line.

use std::time::Duration;

use deloop_policy::ServerBlock;
use ureq::http::Uri;

use crate::config::from_home;
use crate::exit::Failure;
use crate::hook;
use crate::safe_file::{self, Links};

/// Names the server in the environment; `off` turns a configured one off.
pub(crate) const SERVER: &str = "DELOOP_SERVER";
/// Holds the API key, unless the configuration names another variable or a file.
const KEY: &str = "DELOOP_SERVER_KEY";
/// The address of `deloop serve` without options.
#[cfg(feature = "serve")]
const HERE: &str = "http://127.0.0.1:7430";
/// How long an event waits for the server, in milliseconds.
const TIMEOUT: u64 = 300;
/// The longest that can be configured, in milliseconds. Agents give a hook a few seconds.
const LONGEST_TIMEOUT: u64 = 5_000;
/// Maximum size of a key file, in bytes.
const LONGEST_KEY: u64 = 4 << 10;
/// Maximum size of a file with certificates, in bytes.
const LONGEST_CERTIFICATES: u64 = 4 << 20;

/// How to reach the server.
pub(crate) struct ServerSettings {
    /// The address, without a slash at the end.
    pub(crate) url: String,
    pub(crate) key: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) timeout: Duration,
    /// The certificates to trust in place of the public ones, in PEM.
    pub(crate) certificates: Option<Vec<u8>>,
}

impl ServerSettings {
    /// Returns the settings of the server that applies: the one of the `deloop run` that started the agent, the one named
    /// on the command line, in the environment, or in the configuration. `None` if there is none.
    pub(crate) fn of(block: &ServerBlock, named: Option<&str>) -> Result<Option<Self>, Failure> {
        let variable = std::env::var(SERVER).ok().filter(|url| !url.is_empty());
        if variable.as_deref().is_some_and(is_off) {
            return Ok(None);
        }
        let of_run = variable.as_deref().filter(|_| hook::run_id().is_some());
        let url = of_run.or(named).or(variable.as_deref()).or(block.url.as_deref());
        let Some(url) = url.filter(|url| !is_off(url)) else { return Ok(None) };
        let uri = check_url(url, block.allow_http)?;
        let own = block.url.as_deref().and_then(|url| url.parse::<Uri>().ok());
        let is_own = own.is_none_or(|own| (own.scheme(), own.authority()) == (uri.scheme(), uri.authority()));
        let timeout = block.timeout_ms.unwrap_or(TIMEOUT).clamp(1, LONGEST_TIMEOUT);
        Ok(Some(Self {
            url: url.trim_end_matches('/').to_owned(),
            // A key is for the server it was configured with.
            key: if is_own { key(block)? } else { variable_key() },
            project: block.project.clone(),
            timeout: Duration::from_millis(timeout),
            certificates: block.ca_file.as_deref().map(certificates).transpose()?,
        }))
    }

    /// Returns the settings of the server that applies, or of one on this machine if none is configured.
    #[cfg(feature = "serve")]
    pub(crate) fn or_here(block: &ServerBlock, named: Option<&str>) -> Result<Self, Failure> {
        if let Some(settings) = Self::of(block, named)? {
            return Ok(settings);
        }
        // A key is for the server it was configured with, also while that one is turned off.
        let key = if block.url.is_none() { key(block)? } else { variable_key() };
        let timeout = Duration::from_millis(TIMEOUT);
        Ok(Self { url: HERE.to_owned(), key, project: None, timeout, certificates: None })
    }
}

/// Checks that steps and keys may be sent to this address.
pub(crate) fn check_url(url: &str, allow_http: bool) -> Result<Uri, Failure> {
    let shown = deloop_detect::clean(url.rsplit('@').next().unwrap_or_default(), 200);
    let wrong = |why: &str| Failure::new(format!("the server `{shown}`: {why}"));
    let uri: Uri = url.parse().map_err(|_| wrong("write it as https://HOST[:PORT]"))?;
    let host = uri.host().unwrap_or_default();
    if host.is_empty() || uri.query().is_some() {
        return Err(wrong("write it as https://HOST[:PORT]"));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(wrong("leave out the user; set the API key with `server.key_file` or DELOOP_SERVER_KEY"));
    }
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if allow_http || is_loopback(host) => Ok(uri),
        Some("http") => Err(wrong(
            "anyone on the way could read your sessions. Use https, or set `server.allow_http = true` in your own \
             configuration",
        )),
        _ => Err(wrong("write it as https://HOST[:PORT]")),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_off(url: &str) -> bool {
    url.eq_ignore_ascii_case("off")
}

fn key(block: &ServerBlock) -> Result<Option<String>, Failure> {
    let key = match (&block.key_env, &block.key_file) {
        (Some(_), Some(_)) => {
            return Err(Failure::new("`server` names a `key_env` and a `key_file`; remove one of them"));
        }
        (Some(name), None) => {
            let key = std::env::var(name);
            Some(key.map_err(|_| Failure::new(format!("`server.key_env`: {name} isn't set")))?)
        }
        (None, Some(file)) => {
            let text = safe_file::read_text(&from_home(file), LONGEST_KEY, Links::Follow);
            Some(text.map_err(|e| Failure::new(format!("`server.key_file`: {file}: {e}")))?)
        }
        (None, None) => return Ok(variable_key()),
    };
    let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    match key {
        Some(key) if key.chars().all(|c| c.is_ascii_graphic()) => Ok(Some(key)),
        _ => Err(Failure::new("the server's API key is empty or has characters that no key has")),
    }
}

fn variable_key() -> Option<String> {
    let key = std::env::var(KEY).ok().map(|key| key.trim().to_owned());
    key.filter(|key| !key.is_empty() && key.chars().all(|c| c.is_ascii_graphic()))
}

fn certificates(file: &str) -> Result<Vec<u8>, Failure> {
    safe_file::read(&from_home(file), LONGEST_CERTIFICATES, Links::Follow)
        .map_err(|e| Failure::new(format!("`server.ca_file`: {file}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "serve")]
    #[test]
    fn the_key_of_a_server_that_is_turned_off_stays_here() {
        let url = Some("https://deloop.example.com".to_owned());
        let key_file = Some("/no/such/key".to_owned());
        let block = ServerBlock { url, key_file, ..ServerBlock::default() };
        let settings = ServerSettings::or_here(&block, Some("off")).ok().unwrap();
        assert_eq!((settings.url.as_str(), settings.key), (HERE, variable_key()));
    }

    #[test]
    fn steps_leave_the_machine_over_https_only() {
        let works = |url: &str, allow_http| check_url(url, allow_http).is_ok();
        for url in
            ["https://deloop.example.com", "http://127.0.0.1:7430", "http://localhost/d", "http://[::1]:7"]
        {
            assert!(works(url, false), "{url}");
        }
        for url in ["http://10.0.0.1", "http://localhost.example.com", "http://127.0.0.1.example.com"] {
            assert!(!works(url, false) && works(url, true), "{url}");
        }
        for url in [
            "",
            "deloop.example.com",
            "/v1",
            "ftp://a",
            "https://",
            "https://user:secret@a",
            "http://localhost@example.com",
            "https://a?project=b",
        ] {
            assert!(!works(url, true), "{url}");
        }
        let Err(Failure::Message(why)) = check_url("https://user:secret@a", false) else { unreachable!() };
        assert!(!why.contains("secret"), "{why}");
    }
}
