//! A server with something to lose.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::json;

use super::client::{Client, Server, add_key};
use super::test_clock::TestClock;

/// A text that must appear nowhere but in its own session.
pub(super) const MARK: &str = "zanzibar-marmalade";

/// A server with one session, and a key that may do everything in its project.
pub(super) struct Target {
    // Ended before its home is removed.
    pub(super) server: Server,
    home: tempfile::TempDir,
    pub(super) clock: TestClock,
    pub(super) key: String,
}

impl Target {
    pub(super) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let key = add_key(home.path(), &["owner", "--scope", "admin", "--project", "a"]);
        let clock = TestClock::new(home.path());
        let server = Server::start_with(clock.deloop(home.path()), &["--profile", "turn-hash"]);
        let target = Self { server, home, clock, key };
        let step = json!({"type": "turn", "session": "victim", "swarm": "w", "text": MARK});
        assert_eq!(target.client().step(&step)["action"], "continue");
        target
    }

    pub(super) fn client(&self) -> Client {
        self.server.client_with(&self.key)
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Sends bytes as they are; returns everything that comes back until the server closes or waits for more. A last
    /// request behind them shows which: if it is answered, nothing of the others is still to come.
    pub(super) fn raw(&self, bytes: &[u8]) -> String {
        let last =
            format!("GET /healthz HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.server.address);
        let mut stream = TcpStream::connect(self.server.address).unwrap();
        // The server may close before it has read all.
        let _ = stream.write_all(&[bytes, last.as_bytes()].concat());
        let mut back = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            back.extend_from_slice(&buffer[..read]);
        }
        let back = String::from_utf8_lossy(&back).into_owned();
        match back.rfind("HTTP/1.1 ") {
            Some(start) if back[start..].ends_with("{\"status\":\"ok\"}") => back[..start].to_owned(),
            _ => back,
        }
    }

    /// The session is as it was, the server works, and it logged nothing about it.
    pub(super) fn unharmed(self) {
        let victim = self.client().get("/v1/sessions/victim");
        assert_eq!((victim.status, &victim.json()["steps"]), (200, &json!(1)), "{victim:?}");
        self.server.signal("TERM");
        let (code, said) = self.server.wait();
        assert_eq!((code, said.as_str()), (Some(0), "deloop: finishing requests\n"));
    }
}

pub(super) fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

/// An answer that has nothing of what the server keeps.
pub(super) fn tells_nothing(answer: &str, key: &str) {
    for secret in [MARK, "\"steps\"", "\"hash\"", "root:", &key[17..], "owner"] {
        assert!(!answer.contains(secret), "{secret}: {answer}");
    }
}
