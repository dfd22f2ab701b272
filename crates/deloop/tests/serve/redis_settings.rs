//! `[serve.redis]`: which Redis a server uses, and how.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::json;

use super::access::configure;
use super::client::Server;
use super::tls::certificate;
use crate::binary::{deloop, run, said};
use crate::encrypted_server::encrypted_redis;
use crate::redis_server::RedisServer;

const PASSWORD: &str = "hunter2 of Redis";

/// Asks Redis over its plain port for the names of its keys.
fn keys(redis: &RedisServer) -> String {
    let mut stream = TcpStream::connect(redis.url().trim_start_matches("redis://")).unwrap();
    write!(stream, "AUTH \"{PASSWORD}\"\r\nKEYS *\r\nQUIT\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Starts a server of the user's configuration, with a state folder of its own.
fn start(home: &Path, name: &str) -> Server {
    Server::start(home, &["--state", home.join(name).to_str().unwrap()])
}

/// An encrypted Redis with a password that asks for a certificate, as hosted ones do.
#[test]
#[ignore = "needs redis-server, openssl"]
fn servers_share_the_redis_that_their_configuration_describes() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let folder = home.join(".config/deloop");
    std::fs::create_dir_all(&folder).unwrap();
    let (redis, url) = encrypted_redis(&folder, PASSWORD);
    std::fs::write(folder.join("redis.password"), format!("{PASSWORD}\n")).unwrap();
    let settings = format!(
        "[serve.redis]\nurl = \"{url}\"\npassword_file = \"redis.password\"\nprefix = \"team-a\"\n\
         timeout_ms = 10000\nca_file = \"~/.config/deloop/ca.crt\"\ncertificate = \"server.crt\"\nkey = \"server.key\"\n"
    );
    configure(home, &settings);
    let (one, two) = (start(home, "one"), start(home, "two"));
    let step = json!({"type": "turn", "session": "s1", "text": "Let me look."});
    let answer = one.client().post("/v1/steps", &step.to_string());
    assert_eq!((answer.status, answer.header("deloop-failed-open")), (200, None));
    assert_eq!(two.client().get("/v1/sessions/s1").json()["steps"], 1);
    let keys = keys(&redis);
    assert!(keys.contains("{team-a:") && !keys.contains("{deloop:"), "{keys}");

    let fails_open = |server: &Server| {
        let answer = server.client().post("/v1/steps", &step.to_string());
        answer.header("deloop-failed-open") == Some("true")
    };
    let state = home.join("three");
    let named = ["--store", &url, "--state", state.to_str().unwrap()];
    assert!(
        fails_open(&Server::start(home, &named)),
        "the password is for the address it was configured with"
    );
    let mut command = deloop(home);
    command.env("DELOOP_REDIS_PASSWORD", PASSWORD);
    assert!(!fails_open(&Server::start_with(command, &named)));
    configure(home, &settings.replace("ca_file = \"~/.config/deloop/ca.crt\"\n", ""));
    let server = start(home, "four");
    assert!(fails_open(&server), "the authority isn't one of the system's");
    server.signal("TERM");
    let (_, said) = server.wait();
    assert!(!said.contains(PASSWORD), "{said}");
}

#[test]
fn settings_that_cannot_work_name_the_fix() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    configure(home, "");
    let folder = home.join(".config/deloop");
    std::fs::write(folder.join("empty"), "\n").unwrap();
    for name in ["authority.pem", "one.pem", "one.key", "two.key"] {
        std::fs::copy(certificate(name), folder.join(name)).unwrap();
    }
    for (settings, why) in [
        ("prefix = 'a'", "add `url = \"redis://HOST\"`"),
        ("url = 'http://h'", "write redis://HOST[:PORT]"),
        ("sentinel = 'h'", "sentinel"),
        ("url = 'redis://h'\nca_file = 'authority.pem'", "write the address as rediss://HOST"),
        ("url = 'rediss://h'\nca_file = 'missing'", "deloop/missing: "),
        ("url = 'rediss://h'\nca_file = 'one.key'", "one.key: not a certificate in PEM"),
        ("url = 'rediss://h'\ncertificate = 'one.pem'", "add the other one"),
        (
            "url = 'rediss://h'\ncertificate = 'one.pem'\nkey = 'two.key'",
            "must belong to the first certificate",
        ),
        ("url = 'redis://h'\npassword_file = 'empty'", "the password in `[serve.redis]` is empty"),
        ("url = 'redis://h'\npassword_env = 'NO_SUCH_NAME'", "NO_SUCH_NAME isn't set"),
        ("url = 'redis://h'\npassword_env = 'A'\npassword_file = 'b'", "remove one of them"),
    ] {
        configure(home, &format!("[serve.redis]\n{settings}\n"));
        let output = run(deloop(home).arg("serve"), b"");
        let said = said(&output);
        assert!(output.status.code() == Some(2) && said.contains(why), "{settings}: {said}");
        assert!(!said.contains("MIG"), "no part of a key: {said}");
    }
    configure(home, "");
    for flag in ["--store-timeout", "--store-wait-replicas"] {
        let output = run(deloop(home).args(["serve", flag, "1"]), b"");
        assert!(said(&output).contains("add `--store redis://HOST`"), "{}", said(&output));
    }
}

#[test]
fn the_password_in_an_address_is_not_printed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for address in ["redis://:hunter2@redis.internal:6379", "rediss://me:hunter2@a,b:7000/1"] {
        configure(home, &format!("[serve]\nhosts = ['deloop.example']\n[serve.redis]\nurl = '{address}'\n"));
        let output = run(deloop(home).arg("config"), b"");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("[secret]@") && printed.contains("deloop.example"), "{printed}");
        assert!(
            printed.contains("# passwords in addresses are shown as [secret]")
                && !printed.contains("hunter2"),
            "{printed}"
        );
    }
}
