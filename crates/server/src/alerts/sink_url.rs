//! URLs that alerts are sent to, and the resolver that only returns addresses they may be sent to.

use std::fmt;
use std::net::IpAddr;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use super::address::{AddressClass, refused};

/// Maximum length of a URL, in bytes.
const LONGEST: usize = 2048;

/// A checked URL. It is a secret: only [`SinkUrl::masked`] may be shown.
#[derive(Clone)]
pub(crate) struct SinkUrl {
    uri: Uri,
}

impl fmt::Debug for SinkUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl SinkUrl {
    /// Reads a URL. The error names the fix, and nothing of the URL but its host.
    pub(crate) fn parse(text: &str, allow_private: bool) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("the URL is longer than {LONGEST} bytes"));
        }
        let uri: Uri = text.parse().map_err(|_| "the URL isn't one; it starts with https://".to_owned())?;
        match (uri.scheme_str(), allow_private) {
            (Some("https"), _) | (Some("http"), true) => {}
            (Some("http"), false) => {
                return Err("the URL must start with https://; `allow_private = true` allows http".to_owned());
            }
            _ => return Err("the URL must start with https://".to_owned()),
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("the URL has a user name or password; remove the part before `@`".to_owned());
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or("the URL has no host")?;
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        if let Some(reason) = literal.and_then(|address| RefusedAddress::check(host, address, allow_private))
        {
            return Err(reason.to_string());
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        if !allow_private && (name == "localhost" || name.ends_with(".localhost")) {
            return Err(format!("{name} is this machine; `allow_private = true` allows that"));
        }
        Ok(Self { uri })
    }

    /// Returns the URL, for the request.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Returns the URL without its path and query, which are often secrets.
    pub(crate) fn masked(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let rest =
            if self.uri.path_and_query().is_some_and(|path| path.as_str() != "/") { "…" } else { "" };
        format!("{scheme}://{authority}/{rest}")
    }
}

/// A host resolves to an address that alerts may not be sent to.
#[derive(Debug)]
pub(crate) struct RefusedAddress {
    host: String,
    address: IpAddr,
    class: AddressClass,
}

impl RefusedAddress {
    fn check(host: &str, address: IpAddr, allow_private: bool) -> Option<Self> {
        let class = refused(address)?;
        let is_allowed = allow_private && class.can_be_allowed();
        (!is_allowed).then(|| Self { host: host.to_owned(), address, class })
    }
}

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address, class } = self;
        let literal = host.trim_start_matches('[').trim_end_matches(']') == address.to_string();
        if literal {
            write!(f, "{address} is {}", class.words())?;
        } else {
            write!(f, "{} resolves to {address}, {}", deloop_detect::clean(host, 255), class.words())?;
        }
        if class.can_be_allowed() {
            f.write_str("; `allow_private = true` allows that")
        } else {
            f.write_str(", which no route may use")
        }
    }
}

impl std::error::Error for RefusedAddress {}

/// Resolves names, and fails if one of the addresses is refused. The connection is made to the addresses that it
/// returns, so a name that resolves differently the next time changes nothing.
#[derive(Debug)]
pub(crate) struct CheckedResolver {
    pub(crate) allow_private: bool,
}

impl Resolver for CheckedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let addresses = DefaultResolver::default().resolve(uri, config, timeout)?;
        let host = uri.host().unwrap_or_default();
        let reason =
            addresses.iter().find_map(|found| RefusedAddress::check(host, found.ip(), self.allow_private));
        match reason {
            None => Ok(addresses),
            Some(reason) => Err(ureq::Error::Other(Box::new(reason))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SinkUrl;

    fn error(url: &str, allow_private: bool) -> String {
        SinkUrl::parse(url, allow_private).map(|url| url.masked()).expect_err(url)
    }

    #[test]
    fn a_url_must_be_public_and_https() {
        assert!(SinkUrl::parse("https://hooks.example.com/services/T0/B0/x", false).is_ok());
        assert!(error("http://hooks.example.com/x", false).contains("https://"));
        for scheme in
            ["file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "example.com/x", "/x"]
        {
            assert!(error(scheme, true).contains("https://"), "{scheme}");
        }
        for host in
            ["127.0.0.1", "10.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "localhost", "LOCALHOST.", "a.localhost"]
        {
            assert!(error(&format!("https://{host}/x"), false).contains("allow_private"), "{host}");
            assert!(SinkUrl::parse(&format!("http://{host}/x"), true).is_ok(), "{host}");
        }
        for host in ["169.254.169.254", "[fe80::1]", "0.0.0.0", "[::]", "[fd00:ec2::254]", "224.0.0.1"] {
            for allow_private in [false, true] {
                assert!(error(&format!("https://{host}/x"), allow_private).contains("no route"), "{host}");
            }
        }
        assert!(error("https://user:pass@example.com/x", false).contains("before `@`"));
        assert!(error("https://example.com@10.0.0.1/x", true).contains("before `@`"));
    }

    #[test]
    fn only_the_host_is_shown() {
        let url = SinkUrl::parse("https://discord.com/api/webhooks/1/secret?wait=true", false).unwrap();
        assert_eq!(format!("{url:?}"), "https://discord.com/…");
    }
}
