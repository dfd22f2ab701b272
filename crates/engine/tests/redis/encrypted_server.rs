//! A Redis that is reached over TLS.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::redis_server::RedisServer;

/// Starts a Redis with a password that asks its clients for a certificate; the URL of its encrypted port. The certificates
/// are in `folder`: `ca.crt`, and `server.crt` with `server.key`, which also identify a client.
pub(crate) fn encrypted_redis(folder: &Path, password: &str) -> (RedisServer, String) {
    certificates(folder);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (certificate, key, authority) = (file("server.crt"), file("server.key"), file("ca.crt"));
    let options = [
        ["--tls-port", &port],
        ["--tls-cert-file", &certificate],
        ["--tls-key-file", &key],
        ["--tls-ca-cert-file", &authority],
        ["--requirepass", password],
    ];
    let server = RedisServer::start_with(&options.concat());
    (server, format!("rediss://127.0.0.1:{port}"))
}

/// Makes an authority and a certificate for 127.0.0.1.
fn certificates(folder: &Path) {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(
            command.status().is_ok_and(|status| status.success()),
            "openssl {arguments}: `cargo xtask setup`"
        );
    };
    std::fs::write(folder.join("san"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!("req -x509 {key} -keyout ca.key -out ca.crt -subj /CN=authority -days 2"));
    openssl(&format!("req {key} -keyout server.key -out server.csr -subj /CN=server"));
    openssl(
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile san",
    );
}
