//! A Redis that is reached over TLS.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use crate::redis_server::RedisServer;

/// Starts a Redis with a password that asks its clients for a certificate; the URL of its encrypted port. The certificates
/// are in `folder`: `ca.crt`, and `server.crt` with `server.key`, which also identify a client. `None`, and says so, where
/// there is no openssl or no Redis.
pub(crate) fn encrypted_redis(folder: &Path, password: &str) -> Option<(RedisServer, String)> {
    certificates(folder)?;
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
    let server = RedisServer::start_with(&options.concat())?;
    Some((server, format!("rediss://127.0.0.1:{port}")))
}

/// Makes an authority and a certificate for 127.0.0.1.
#[expect(clippy::print_stderr, reason = "a test that doesn't run must say so")]
fn certificates(folder: &Path) -> Option<()> {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().ok().filter(ExitStatus::success)
    };
    std::fs::write(folder.join("san"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let made = openssl(&format!("req -x509 {key} -keyout ca.key -out ca.crt -subj /CN=authority -days 2"))
        .and_then(|_| openssl(&format!("req {key} -keyout server.key -out server.csr -subj /CN=server")))
        .and_then(|_| {
            openssl("x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile san")
        });
    if made.is_none() {
        eprintln!("skipped: no openssl; install it to run this test");
    }
    made.map(drop)
}
