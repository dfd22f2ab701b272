//! Requests to the server, with its certificates, the key and the project.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::http::Response;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::WithBody;
use ureq::typestate::WithoutBody;
use ureq::{Agent, Body, RequestBuilder};

use super::settings::ServerSettings;
use crate::exit::Failure;

/// Maximum size of an answer, in bytes.
pub(super) const ANSWER: u64 = 1 << 20;

/// Where requests go, and what each of them carries.
pub(crate) struct ServerConnection {
    agent: Agent,
    url: String,
    project: Option<String>,
    authorization: Option<String>,
}

impl ServerConnection {
    /// Prepares requests that take at most `timeout`. Nothing is sent yet.
    ///
    /// # Errors
    /// When the certificates can't be read.
    pub(crate) fn new(settings: &ServerSettings, timeout: Duration) -> Result<Self, Failure> {
        let mut config = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            // A redirect could lead the steps and the key elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("deloop/", env!("CARGO_PKG_VERSION")));
        if settings.url.starts_with("http:") {
            // A proxy would read everything.
            config = config.proxy(None);
        }
        if let Some(pem) = &settings.certificates {
            let mut roots = Vec::new();
            for item in parse_pem(pem) {
                match item.map_err(|e| Failure::new(format!("`server.ca_file`: {e}")))? {
                    PemItem::Certificate(certificate) => roots.push(certificate),
                    _ => continue,
                }
            }
            if roots.is_empty() {
                return Err(Failure::new("`server.ca_file` holds no certificate in PEM form"));
            }
            let tls = TlsConfig::builder().root_certs(RootCerts::Specific(Arc::new(roots)));
            config = config.tls_config(tls.build());
        }
        Ok(Self {
            agent: config.build().into(),
            url: settings.url.clone(),
            project: settings.project.clone(),
            authorization: settings.key.as_ref().map(|key| format!("Bearer {key}")),
        })
    }

    /// Says why the server answers with status 401. Its own words are about a header that nobody writes by hand.
    pub(crate) fn refused_key(&self) -> &'static str {
        if self.authorization.is_some() {
            "it doesn't accept your key, which is unknown, expired or revoked"
        } else {
            "it needs a key, and none is configured for it; set `key_file` under `[server]` in your own configuration"
        }
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder<WithoutBody> {
        self.identified(self.agent.get(self.address(path)))
    }

    #[cfg(feature = "serve")]
    pub(crate) fn delete(&self, path: &str) -> RequestBuilder<WithoutBody> {
        self.identified(self.agent.delete(self.address(path)))
    }

    /// Returns a request with a JSON body to this path.
    pub(crate) fn post(&self, path: &str) -> RequestBuilder<WithBody> {
        self.identified(self.agent.post(self.address(path))).header("content-type", "application/json")
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Adds the project and the key.
    fn identified<B>(&self, mut request: RequestBuilder<B>) -> RequestBuilder<B> {
        if let Some(project) = &self.project {
            request = request.query("project", project);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        request
    }
}

/// Returns a name as one segment of a path. Dots are encoded, too, so that `..` stays a name.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let encoded = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(encoded).collect()
}

/// Returns the error that the server reports in the body of an answer, as it was sent.
pub(super) fn reported_error(response: &mut Response<Body>) -> Option<String> {
    let body = response.body_mut().with_config().limit(ANSWER).read_to_vec().ok()?;
    let said = serde_json::from_slice::<Value>(&body).ok()?;
    said["error"].as_str().filter(|error| !error.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_segment() {
        assert_eq!(segment("3f2a-1c_9e"), "3f2a-1c_9e");
        assert_eq!(segment("../a/b?c#d%e ü"), "%2E%2E%2Fa%2Fb%3Fc%23d%25e%20%C3%BC");
    }
}
