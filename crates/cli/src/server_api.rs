//! Requests to a running `deloop serve`, for commands that show or change what it keeps.

use std::time::Duration;

use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{Response, Uri};
use ureq::{Agent, Body};

use crate::exit::Failure;

/// Holds the API key.
const KEY: &str = "DELOOP_SERVER_KEY";
/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of an answer, in bytes.
const ANSWER: u64 = 64 << 20;
/// Maximum length of an error that the server reports, in characters.
const ERROR: usize = 500;

/// Which server to ask, and about which project.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArgs {
    /// The address of the server; its API key comes from DELOOP_SERVER_KEY
    #[arg(long, value_name = "URL", env = "DELOOP_SERVER", default_value = "http://127.0.0.1:7430")]
    pub(crate) server: String,
    /// The project
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
}

/// A client of one server.
pub(crate) struct ServerApi {
    agent: Agent,
    url: String,
    authorization: Option<String>,
    project: Option<String>,
}

impl ServerApi {
    /// Prepares a client. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address isn't one that a key may be sent to.
    pub(crate) fn new(args: &ServerArgs) -> Result<Self, Failure> {
        let url = args.server.trim_end_matches('/');
        let is_plain = check(url)?;
        let mut config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // A redirect could lead the key elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("deloop/", env!("CARGO_PKG_VERSION")));
        if is_plain {
            // A proxy would read everything.
            config = config.proxy(None);
        }
        let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
        Ok(Self {
            agent: config.build().into(),
            url: url.to_owned(),
            authorization: key.map(|key| format!("Bearer {}", key.trim())),
            project: args.project.clone(),
        })
    }

    /// Returns what the server answers to a question.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Failure> {
        let mut request = self.agent.get(self.address(path, query));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        self.answer(request.call())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let mut request = self.agent.post(self.address(path, &[])).header("content-type", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        self.answer(request.send(body.to_string()))
    }

    pub(crate) fn delete(&self, path: &str) -> Result<Value, Failure> {
        let mut request = self.agent.delete(self.address(path, &[]));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        self.answer(request.call())
    }

    fn address(&self, path: &str, query: &[(&str, &str)]) -> String {
        let project = self.project.as_deref().map(|project| ("project", project));
        let query: Vec<String> = query
            .iter()
            .copied()
            .chain(project)
            .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
            .collect();
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{path}{mark}{}", self.url, query.join("&"))
    }

    fn answer<T: DeserializeOwned>(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<T, Failure> {
        let at = deloop_detect::clean(&self.url, 200);
        let unreachable = |error: ureq::Error| {
            let error = deloop_detect::clean(&error.to_string(), ERROR);
            Failure::new(format!("{at}: {error}; start `deloop serve`, or name another server with --server"))
        };
        let mut answer = answer.map_err(unreachable)?;
        let body = answer.body_mut().with_config().limit(ANSWER).read_to_vec();
        let body = body.map_err(|error| Failure::new(format!("{at}: {error}")))?;
        let status = answer.status();
        if status.is_success() {
            let wrong = |_| Failure::new(format!("{at}: the answer isn't one of `deloop serve`"));
            return serde_json::from_slice(&body).map_err(wrong);
        }
        let error: Value = serde_json::from_slice(&body).unwrap_or_default();
        let error = error["error"].as_str().unwrap_or("no reason given");
        Err(Failure::new(format!("{at}: {} {}", status.as_u16(), deloop_detect::clean(error, ERROR))))
    }
}

/// Checks the address. Returns whether it is plain HTTP.
fn check(url: &str) -> Result<bool, Failure> {
    let shown = deloop_detect::clean(url.rsplit('@').next().unwrap_or_default(), 200);
    let wrong = |why: &str| Failure::new(format!("--server {shown}: {why}"));
    let form = "write it as https://HOST[:PORT]";
    let uri: Uri = url.parse().map_err(|_| wrong(form))?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    if host.is_empty() || uri.query().is_some() {
        return Err(wrong(form));
    }
    if url.contains('@') {
        return Err(wrong("leave out the user; set the API key in DELOOP_SERVER_KEY"));
    }
    let is_here =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    match uri.scheme_str() {
        Some("https") => Ok(false),
        Some("http") if is_here => Ok(true),
        Some("http") => Err(wrong("anyone on the way could read the key and the answer; use https")),
        _ => Err(wrong(form)),
    }
}

/// Encodes a value of a query or a segment of a path.
pub(crate) fn percent_encoded(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_to_this_machine_or_over_tls() {
        for url in ["http://127.0.0.1:7430", "http://[::1]:1", "http://localhost", "https://deloop.example"] {
            assert!(check(url).is_ok(), "{url}");
        }
        for url in [
            "http://deloop.example",
            "ftp://localhost",
            "",
            "localhost:7430",
            "https://me:key@deloop.example",
        ] {
            assert!(check(url).is_err_and(|error| !format!("{error:?}").contains("me:key")), "{url}");
        }
        assert_eq!(percent_encoded("a b/ü"), "a%20b%2F%C3%BC");
    }
}
