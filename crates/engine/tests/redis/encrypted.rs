use std::time::Duration;

use deloop_store::contract::{Numbers, check};
use deloop_store::{RedisOptions, RedisStore, RedisTls, Store, StoreError};

use crate::certificates::certificates;
use crate::redis_server::RedisServer;

#[test]
fn an_encrypted_connection_is_used_if_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    if certificates(folder.path()).is_none() {
        return;
    }
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (certificate, key, authority) = (file("server.crt"), file("server.key"), file("ca.crt"));
    let options = [
        ["--tls-port", &port],
        ["--tls-cert-file", &certificate],
        ["--tls-key-file", &key],
        ["--tls-ca-cert-file", &authority],
        ["--requirepass", "hunter2"],
    ];
    let Some(_server) = RedisServer::start_with(&options.concat()) else { return };
    let url = format!("rediss://:hunter2@127.0.0.1:{port}");
    let open = |tls| {
        let options = RedisOptions { tls, deadline: Duration::from_secs(10), ..RedisOptions::default() };
        RedisStore::open(&url, options)
    };
    let root_cert = Some(std::fs::read(folder.path().join("ca.crt")).unwrap());
    // The server asks for a certificate of the client.
    let anonymous = open(RedisTls { root_cert: root_cert.clone(), client: None }).unwrap();
    let push = |store: &RedisStore| store.update(&Numbers, &"a".into(), None, |s| s.push(1));
    assert!(push(&anonymous).is_err());
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let client = Some((read("server.crt").into_bytes(), read("server.key").into()));
    let store = open(RedisTls { root_cert, client: client.clone() }).unwrap();
    check(&store);
    let error = push(&open(RedisTls { root_cert: None, client }).unwrap()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    assert!(matches!(error, StoreError::Unavailable { .. } | StoreError::Refused { .. }), "{error}");
    let error = open(RedisTls { root_cert: Some(b"nonsense".to_vec()), client: None }).err();
    assert!(error.is_none_or(|error| matches!(error, StoreError::Address(_))));
}
