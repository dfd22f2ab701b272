//! Fetches a price table from the address that the user named.

use std::time::Duration;

use ureq::Agent;
use ureq::http::Uri;

use super::update::LARGEST;
use crate::exit::Failure;

/// How long the whole download may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns whether this is an address and not a file.
pub(super) fn is_url(from: &str) -> bool {
    from.contains("://")
}

/// Fetches what is at an address: https, or http on this machine.
pub(super) fn fetch(url: &str) -> Result<Vec<u8>, Failure> {
    let shown = deloop_detect::clean(url, 200);
    let wrong = |why: &str| Failure::new(format!("{shown}: {why}"));
    let how = "use an https:// address, or download the file and name it";
    let uri: Uri = url.parse().map_err(|_| wrong(how))?;
    let is_here = matches!(uri.host(), Some("127.0.0.1" | "[::1]" | "localhost"));
    let is_https = match uri.scheme_str() {
        Some("https") => true,
        Some("http") if is_here => false,
        _ => return Err(wrong(how)),
    };
    let mut config = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .https_only(is_https)
        .http_status_as_error(false)
        .user_agent(concat!("deloop/", env!("CARGO_PKG_VERSION")));
    if !is_https {
        config = config.proxy(None).max_redirects(0).max_redirects_will_error(false);
    }
    let agent: Agent = config.build().into();
    let mut response =
        agent.get(url).call().map_err(|e| wrong(&format!("{e}; check the address and the network")))?;
    let status = response.status();
    if status != 200 {
        return Err(wrong(&format!(
            "the server answered with status {}; check the address",
            status.as_u16()
        )));
    }
    let body = response.body_mut().with_config().limit(LARGEST).read_to_vec();
    body.map_err(|e| wrong(&format!("{e}; a price table has at most {} MB", LARGEST >> 20)))
}
