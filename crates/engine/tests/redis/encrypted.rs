use deloop_store::contract::{Numbers, check};
use deloop_store::{RedisOptions, RedisStore, RedisTls, Store, StoreError};

use crate::encrypted_server::encrypted_redis;

#[test]
#[ignore = "needs redis-server, openssl"]
fn an_encrypted_connection_is_used_if_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = encrypted_redis(folder.path(), "hunter2");
    let url = url.replace("://", "://:hunter2@");
    let open = |tls| {
        let options = RedisOptions { tls, deadline: crate::PATIENT, ..RedisOptions::default() };
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
