//! TLS: the same server and limits behind a certificate.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, SupportedProtocolVersion};

use super::access::configure;
use super::client::{Server, add_key};
use super::test_clock::TestClock;
use crate::binary::{deloop, run, said};
use crate::wait::wait_for;

/// Returns a certificate or key for localhost that the test authority signed.
pub(super) fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/certificates").join(name)
}

/// What a client saw of a server.
struct TlsAnswer {
    text: String,
    certificate: Vec<u8>,
    version: Option<ProtocolVersion>,
    protocol: Option<Vec<u8>>,
}

/// Sends one request to the server, which must have a certificate that the test authority signed.
fn request(
    server: &Server,
    versions: &[&'static SupportedProtocolVersion],
    head: &str,
) -> std::io::Result<TlsAnswer> {
    let mut connection = connection(versions);
    let mut socket = TcpStream::connect(server.address)?;
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    stream.write_all(
        format!("GET {head}\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address).as_bytes(),
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let certificate = connection.peer_certificates().map_or(Vec::new(), |chain| chain[0].to_vec());
    let protocol = connection.alpn_protocol().map(<[u8]>::to_vec);
    Ok(TlsAnswer { text, certificate, version: connection.protocol_version(), protocol })
}

fn connection(versions: &[&'static SupportedProtocolVersion]) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate("authority.pem")).unwrap()).unwrap();
    let config =
        ClientConfig::builder_with_provider(Arc::new(default_provider())).with_protocol_versions(versions);
    let mut config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    ClientConnection::new(Arc::new(config), name).unwrap()
}

fn der(name: &str) -> Vec<u8> {
    CertificateDer::from_pem_file(certificate(name)).unwrap().to_vec()
}

#[test]
fn requests_are_answered_over_tls() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let key = add_key(home, &["ci", "--scope", "read"]);
    let (pem, secret) = (certificate("one.pem"), certificate("one.key"));
    let arguments = ["--tls-cert", pem.to_str().unwrap(), "--tls-key", secret.to_str().unwrap()];
    let server = Server::start(home, &[&["--listen", "0.0.0.0:0"][..], &arguments].concat());
    let with_key = format!("/v1/sessions HTTP/1.1\r\nauthorization: Bearer {key}");
    for (version, expected) in [
        (&rustls::version::TLS12, ProtocolVersion::TLSv1_2),
        (&rustls::version::TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let answer = request(&server, &[version], &with_key).unwrap();
        assert!(answer.text.starts_with("HTTP/1.1 200 ") && answer.text.contains("\"sessions\":[]"));
        assert_eq!((answer.version, answer.protocol.as_deref()), (Some(expected), Some(&b"http/1.1"[..])));
        assert_eq!(answer.certificate, der("one.pem"));
    }
    let refused = request(&server, rustls::ALL_VERSIONS, "/v1/sessions HTTP/1.1").unwrap();
    assert!(refused.text.starts_with("HTTP/1.1 401 "), "{}", refused.text);

    // Plain HTTP gets no answer in plain text.
    let mut plain = TcpStream::connect(server.address).unwrap();
    plain.write_all(format!("GET {with_key}\r\nhost: localhost\r\n\r\n").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&bytes));
    server.signal("TERM");
    let (code, said) = server.wait();
    assert_eq!((code, said.as_str()), (Some(0), "deloop: finishing requests\n"));
}

#[test]
fn a_renewed_certificate_is_used_without_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    configure(home, "[serve.tls]\ncertificate = \"server.pem\"\nkey = \"server.key\"\n");
    let put = |from: &str, to: &str| {
        std::fs::copy(certificate(from), home.join(".config/deloop").join(to)).unwrap();
    };
    put("one.pem", "server.pem");
    put("one.key", "server.key");
    let clock = TestClock::new(home);
    let server = Server::start_with(clock.deloop(home), &[]);
    let seen = || request(&server, rustls::ALL_VERSIONS, "/healthz HTTP/1.1").unwrap().certificate;
    assert_eq!(seen(), der("one.pem"));
    put("two.pem", "server.pem");
    clock.advance(Duration::from_secs(1));
    assert_eq!(seen(), der("one.pem"), "as long as the key doesn't fit, the old pair is used");
    put("two.key", "server.key");
    clock.advance(Duration::from_secs(1));
    assert_eq!(seen(), der("two.pem"));
    server.signal("TERM");
    let (code, said) = server.wait();
    assert!(code == Some(0) && said.contains("server.pem") && said.contains("stays in use"), "{said}");
}

#[test]
fn a_certificate_that_cannot_be_used_names_the_file_and_the_fix() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let [one, one_key, two_key] = ["one.pem", "one.key", "two.key"].map(certificate);
    let missing = home.join("missing.pem");
    for (pem, secret, why) in [
        (&missing, &one_key, "missing.pem"),
        (&one, &missing, "missing.pem"),
        (&one_key, &one_key, "one.key: not a certificate in PEM"),
        (&one, &one, "one.pem: not an unencrypted private key in PEM"),
        (&one, &two_key, "must belong to the first certificate"),
    ] {
        let arguments = ["serve", "--tls-cert", pem.to_str().unwrap(), "--tls-key", secret.to_str().unwrap()];
        let output = run(deloop(home).args(arguments), b"");
        let said = said(&output);
        assert!(output.status.code() == Some(2) && said.contains(why), "{why}: {said}");
        assert!(!said.contains("MIG"), "no part of a key: {said}");
    }
    configure(home, "[serve.tls]\ncertificate = \"server.pem\"\n");
    let output = run(deloop(home).arg("serve"), b"");
    assert!(said(&output).contains("needs both `certificate` and `key`"), "{}", said(&output));
}

/// Returns whether the other side has closed this.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

/// A connection on which the server has answered the first message of a handshake, and waits for the next.
fn unfinished_handshake(server: &Server) -> TcpStream {
    let mut connection = connection(rustls::ALL_VERSIONS);
    let mut socket = TcpStream::connect(server.address).unwrap();
    connection.write_tls(&mut socket).unwrap();
    socket.read_exact(&mut [0]).unwrap();
    socket
}

#[test]
fn half_a_handshake_is_given_up_on() {
    let home = tempfile::tempdir().unwrap();
    let (pem, secret) = (certificate("one.pem"), certificate("one.key"));
    let arguments = ["--tls-cert", pem.to_str().unwrap(), "--tls-key", secret.to_str().unwrap()];
    let clock = TestClock::new(home.path());
    let server = Server::start_with(clock.deloop(home.path()), &arguments);
    let late = unfinished_handshake(&server);
    let waiting: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    let answer = request(&server, rustls::ALL_VERSIONS, "/healthz HTTP/1.1").unwrap();
    assert!(answer.text.starts_with("HTTP/1.1 200 "), "others go on");
    clock.advance(Duration::from_secs(10));
    // Blocks until the server closes.
    let _ = (&late).read_to_end(&mut Vec::new());
    drop(waiting);

    let begun = clock.now();
    let silent = TcpStream::connect(server.address).unwrap();
    let mut half = TcpStream::connect(server.address).unwrap();
    // The head of a ClientHello of 512 bytes, and none of them.
    half.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252]).unwrap();
    // The server doesn't say when it has accepted these.
    wait_for("both are closed", || {
        clock.advance(Duration::from_secs(1));
        is_closed(&silent) && is_closed(&half)
    });
    assert!(clock.now().since(begun) >= 10_000, "it waits for ten seconds");

    // The clock stands still, so the server doesn't end because a handshake took too long.
    let open = unfinished_handshake(&server);
    server.signal("TERM");
    assert_eq!(server.wait().0, Some(0), "a handshake doesn't delay the end");
    drop(open);
}
