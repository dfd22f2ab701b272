//! Sends a request to a sink: never to a refused address, never further than the first answer, never for long.

use std::io::Read;
use std::time::Duration;

use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Timeout};

use super::outcome::AlertOutcome;
use super::sink_url::{CheckedResolver, RefusedAddress, SinkUrl};

const CONNECT: Duration = Duration::from_secs(5);
const TOTAL: Duration = Duration::from_secs(10);
/// How much of an answer is read, in bytes.
const ANSWER: u64 = 64 << 10;
/// How much of an answer is shown, in characters.
const SHOWN: usize = 200;
/// The longest wait that a receiver can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Sends requests to one URL.
pub(crate) struct HttpPost {
    url: SinkUrl,
    agent: Agent,
}

impl std::fmt::Debug for HttpPost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.url.fmt(f)
    }
}

impl HttpPost {
    pub(crate) fn new(url: SinkUrl, allow_private: bool) -> Self {
        let config = Agent::config_builder()
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(TOTAL))
            .https_only(!allow_private)
            .http_status_as_error(false)
            // A redirect could lead elsewhere, and a proxy would resolve the name itself.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_idle_connections(0)
            .user_agent(concat!("deloop/", env!("CARGO_PKG_VERSION")))
            .build();
        let resolver = CheckedResolver { allow_private };
        Self { url, agent: Agent::with_parts(config, DefaultConnector::default(), resolver) }
    }

    pub(crate) fn url(&self) -> &SinkUrl {
        &self.url
    }

    /// Sends JSON. `wait_in` finds how long to wait in the text of an answer.
    pub(crate) fn send(
        &self,
        headers: &[(&str, String)],
        body: &[u8],
        wait_in: impl Fn(&str) -> Option<f64>,
    ) -> AlertOutcome {
        let mut post = self.agent.post(self.url.uri().clone()).header("content-type", "application/json");
        for (name, value) in headers {
            post = post.header(*name, value);
        }
        let mut answer = match post.send(body) {
            Ok(answer) => answer,
            Err(error) => return failed(&error),
        };
        let status = answer.status().as_u16();
        let header = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let header = header.and_then(|text| text.trim().parse::<f64>().ok());
        let mut text = Vec::new();
        // The status says whether the alert arrived; the rest is for people.
        let _ = answer.body_mut().as_reader().take(ANSWER).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        let shown = super::sink_text::plain(&text, SHOWN);
        let said =
            if shown.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {shown}") };
        match status {
            200..=299 => AlertOutcome::Accepted(said),
            300..=399 => {
                AlertOutcome::Refused(format!("{said}; redirects aren't followed, use the final URL"))
            }
            408 | 429 | 500.. => {
                AlertOutcome::Retry { why: said, wait: wait_in(&text).or(header).and_then(bounded) }
            }
            _ => AlertOutcome::Refused(said),
        }
    }
}

fn bounded(seconds: f64) -> Option<Duration> {
    let seconds = seconds.max(0.0).min(LONGEST_WAIT.as_secs_f64());
    Duration::try_from_secs_f64(seconds).ok()
}

/// Describes an error without the URL.
fn failed(error: &ureq::Error) -> AlertOutcome {
    let why = match error {
        ureq::Error::Other(inner) => {
            if let Some(refused) = inner.downcast_ref::<RefusedAddress>() {
                return AlertOutcome::Refused(refused.to_string());
            }
            "the request failed".to_owned()
        }
        ureq::Error::Timeout(Timeout::Resolve) => "the host's name wasn't resolved in time".to_owned(),
        ureq::Error::Timeout(Timeout::Connect) => format!("no connection within {} s", CONNECT.as_secs()),
        ureq::Error::Timeout(_) => format!("no answer within {} s", TOTAL.as_secs()),
        ureq::Error::HostNotFound => "the host's name has no address".to_owned(),
        ureq::Error::Io(error) => deloop_detect::clean(&error.to_string(), SHOWN),
        ureq::Error::Rustls(error) => format!("TLS: {}", deloop_detect::clean(&error.to_string(), SHOWN)),
        ureq::Error::BadUri(_) | ureq::Error::RequireHttpsOnly(_) => {
            return AlertOutcome::Refused("the URL can't be used".to_owned());
        }
        _ => "the receiver doesn't answer with HTTP".to_owned(),
    };
    AlertOutcome::Retry { why, wait: None }
}
