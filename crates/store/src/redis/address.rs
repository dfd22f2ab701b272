use redis::io::tcp::TcpSettings;
use redis::{Client, ClientTlsConfig, ConnectionAddr, IntoConnectionInfo, RedisError, TlsCertificates};

use super::slots::NodeAddress;
use crate::{RedisOptions, StoreError};

/// Where the servers are, and how to sign in.
pub(super) struct RedisAddress {
    /// The servers that the URL names. At least one.
    seeds: Vec<Client>,
}

impl RedisAddress {
    /// Parses `redis[s]://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…][/DATABASE]`.
    pub(super) fn parse(url: &str, options: &RedisOptions) -> Result<Self, StoreError> {
        if url.starts_with("rediss:") {
            // Without a provider, rustls would panic. If the program has chosen one, that one stays.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let seeds = urls(url).into_iter().map(|url| client(&url, options));
        Ok(Self { seeds: seeds.collect::<Result<_, _>>().map_err(StoreError::address)? })
    }

    /// Returns the servers that the URL names.
    pub(super) fn seeds(&self) -> impl Iterator<Item = NodeAddress> {
        self.seeds.iter().map(|client| match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                (host.clone(), *port)
            }
            // A socket in the file system.
            other => (other.to_string(), 0),
        })
    }

    /// Returns the name of the first server, for messages.
    pub(super) fn shown(&self) -> String {
        self.seeds.first().map(|client| client.get_connection_info().addr().to_string()).unwrap_or_default()
    }

    /// Returns how to connect to a server: as to the first that the URL names, with the same password.
    pub(super) fn client(&self, node: &NodeAddress) -> Result<Client, RedisError> {
        let named = self.seeds().position(|seed| seed == *node);
        let like = &self.seeds[named.unwrap_or(0)];
        if named.is_some() {
            return Ok(like.clone());
        }
        let info = like.get_connection_info().clone();
        let (host, port) = node.clone();
        let address = match info.addr().clone() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
                ConnectionAddr::TcpTls { host, port, insecure, tls_params }
            }
            _ => ConnectionAddr::Tcp(host, port),
        };
        Client::open(info.set_addr(address))
    }
}

/// Returns a URL per host.
fn urls(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| scheme.starts_with("redis")) else {
        return vec![url.to_owned()];
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    let at = if user.is_empty() { "" } else { "@" };
    hosts.split(',').map(|host| format!("{scheme}://{user}{at}{host}{tail}")).collect()
}

fn client(url: &str, options: &RedisOptions) -> Result<Client, RedisError> {
    // Otherwise the end of a long pipeline waits until the server confirms what came before.
    let at_once = TcpSettings::default().set_nodelay(true);
    let mut info = url.into_connection_info()?.set_tcp_settings(at_once);
    if let Some(password) = &options.password {
        let settings = info.redis_settings().clone().set_password(password.expose());
        info = info.set_redis_settings(settings);
    }
    let tls = &options.tls;
    if tls.root_cert.is_none() && tls.client.is_none() {
        return Client::open(info);
    }
    let client_tls = tls.client.as_ref().map(|(cert, key)| ClientTlsConfig {
        client_cert: cert.clone(),
        client_key: key.expose().as_bytes().to_vec(),
    });
    Client::build_with_tls(info, TlsCertificates { client_tls, root_cert: tls.root_cert.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_one_or_more_servers() {
        let seeds = |url: &str| -> Vec<NodeAddress> {
            RedisAddress::parse(url, &RedisOptions::default()).unwrap().seeds().collect()
        };
        let node = |host: &str, port| (host.to_owned(), port);
        assert_eq!(seeds("redis://localhost"), [node("localhost", 6379)]);
        assert_eq!(seeds("redis://u:p@a:1,b,c:3/0"), [node("a", 1), node("b", 6379), node("c", 3)]);
        assert_eq!(seeds("rediss://:p@a:1,b:2"), [node("a", 1), node("b", 2)]);
        for url in ["redis://", "redis://a,,b", "redis://a,b:x", "http://a,b"] {
            assert!(RedisAddress::parse(url, &RedisOptions::default()).is_err(), "{url}");
        }
    }

    #[test]
    fn other_nodes_are_reached_as_the_first_is() {
        let options = RedisOptions { password: Some("hunter2".into()), ..RedisOptions::default() };
        let address = RedisAddress::parse("rediss://u@a:1", &options).unwrap();
        let other = address.client(&("b".to_owned(), 2)).unwrap();
        let info = other.get_connection_info();
        assert_eq!(info.redis_settings().username(), Some("u"));
        assert_eq!(info.redis_settings().password(), Some("hunter2"));
        assert!(matches!(info.addr(), ConnectionAddr::TcpTls { port: 2, .. }));
        assert!(!format!("{options:?} {}", address.shown()).contains("hunter2"));
    }
}
