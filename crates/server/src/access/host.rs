use std::net::IpAddr;

use axum::http::{HeaderMap, Request, StatusCode, Version, header};

use crate::http_error::HttpError;

/// Refuses requests that a web page could have sent, and those for a host that this server isn't.
///
/// Any page can send requests to this machine, and a page whose host name resolves to this machine can also read the
/// answers. With keys, `names` are the hosts of this server, and an IP address is one, too: no page can have that name
/// and another content. Without keys (`names` is `None`) only names of the machine itself are.
pub(super) fn check_host<B>(request: &Request<B>, names: Option<&[String]>) -> Result<(), HttpError> {
    let headers = request.headers();
    let written = host_header(headers)?;
    if written.is_none() && request.version() >= Version::HTTP_11 {
        return Err(HttpError::bad_request("the request has no `Host`"));
    }
    let hosts = written.into_iter().chain(request.uri().authority().map(axum::http::uri::Authority::as_str));
    let is_allowed = |authority: &str| {
        let host = host_of(authority);
        match names {
            None => names_this_machine(host),
            Some(names) => {
                names_this_machine(host)
                    || host.parse::<IpAddr>().is_ok()
                    || names.iter().any(|name| name.eq_ignore_ascii_case(host))
            }
        }
    };
    let refuse = |message| Err(HttpError::new(StatusCode::FORBIDDEN, message));
    if headers.contains_key(header::ORIGIN) {
        return refuse(
            "the request comes from a web page; only programs may use this server, without an `Origin` header",
        );
    }
    if hosts.into_iter().all(is_allowed) {
        return Ok(());
    }
    refuse(match names {
        None => {
            "the request comes from a web page or names another host; only programs on this machine may use this \
             server, by its address"
        }
        Some(_) => {
            "the request names another host; add the name to `hosts` under `[serve]` if it is this server's"
        }
    })
}

/// Returns the `Host` header. Two of them could mean one thing to a proxy and another to the server.
fn host_header(headers: &HeaderMap) -> Result<Option<&str>, HttpError> {
    let mut all = headers.get_all(header::HOST).iter();
    match (all.next(), all.next()) {
        (_, Some(_)) => Err(HttpError::bad_request("the request has more than one `Host`")),
        (host, None) => Ok(host.map(|host| host.to_str().unwrap_or_default())),
    }
}

fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    }
}

fn names_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn allowed(uri: &str, host: &str, names: Option<&[String]>) -> bool {
        let request = Request::builder().uri(uri).header("host", host).body(Body::empty()).unwrap();
        check_host(&request, names).is_ok()
    }

    #[test]
    fn without_keys_only_loopback_names_are_this_machine() {
        for host in ["127.0.0.1:7430", "localhost", "LocalHost:1", "[::1]:7430", "127.9.9.9"] {
            assert!(allowed("/", host, None), "{host}");
        }
        for host in [
            "evil.example:7430",
            "127.0.0.1.evil.example",
            "",
            "localhost.evil.example:7430",
            "[::2]:1",
            "localhost@evil.example",
            "192.0.2.1:7430",
        ] {
            assert!(!allowed("/", host, None), "{host}");
        }
    }

    #[test]
    fn with_keys_addresses_and_configured_names_are_this_server() {
        let names = ["deloop.example".to_owned()];
        for host in ["deloop.example", "DELOOP.example:443", "192.0.2.1:7430", "[2001:db8::1]", "localhost:1"]
        {
            assert!(allowed("/", host, Some(&names)), "{host}");
        }
        for host in ["evil.example", "deloop.example.evil", "", "a.deloop.example"] {
            assert!(!allowed("/", host, Some(&names)), "{host}");
        }
        assert!(!allowed("http://evil.example/v1/sessions", "deloop.example", Some(&names)));
    }
}
