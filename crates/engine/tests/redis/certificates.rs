//! Certificates for a Redis that is reached over TLS.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// Makes an authority, `ca.crt`, and a certificate for 127.0.0.1, `server.crt` with `server.key`, which also identifies a
/// client. `None`, and says so, where there is no openssl.
#[expect(clippy::print_stderr, reason = "a test that doesn't run must say so")]
pub(crate) fn certificates(folder: &Path) -> Option<()> {
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
