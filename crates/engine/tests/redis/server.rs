//! A Redis server on a free port, which ends with the test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::wait::wait_for;

pub(crate) struct RedisServer {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl RedisServer {
    /// Starts a server.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more options.
    pub(crate) fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..5 {
            let port = free_port();
            let mut process = launch(port, folder.path(), options);
            if is_up(&mut process, port) {
                return Self { process, port, folder };
            }
            let _ = process.kill();
            let _ = process.wait();
        }
        panic!("redis-server doesn't start");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends a signal: `STOP` or `CONT`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Ends the server.
    pub(crate) fn end(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again, empty, on the same port.
    pub(crate) fn start_again(&mut self) {
        self.launch_again(&[]);
        assert!(is_up(&mut self.process, self.port));
    }

    /// Starts it again with options, and doesn't wait for it.
    pub(crate) fn launch_again(&mut self, options: &[&str]) {
        self.process = launch(self.port, self.folder.path(), options);
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a free port whose companion, on which the nodes of a cluster talk to each other, is free, too.
fn free_port() -> u16 {
    let mut ports = std::iter::repeat_with(|| TcpListener::bind("127.0.0.1:0").unwrap());
    let fits = |port: &u16| *port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok();
    ports.by_ref().take(200).map(|free| free.local_addr().unwrap().port()).find(fits).unwrap()
}

fn launch(port: u16, folder: &std::path::Path, options: &[&str]) -> Child {
    Command::new("redis-server")
        .args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
        ])
        .arg(folder)
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed: `cargo xtask setup`")
}

/// Waits until the server answers; returns whether it does, which it doesn't if it ended.
fn is_up(process: &mut Child, port: u16) -> bool {
    let mut is_up = false;
    wait_for("redis-server answers", || {
        is_up = answers(port);
        is_up || process.try_wait().unwrap().is_some()
    });
    is_up
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut answer = [0; 5];
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let read = stream.write_all(b"PING\r\n").and_then(|()| stream.read_exact(&mut answer));
    // A server with a password answers, too.
    read.is_ok() && matches!(&answer, b"+PONG" | b"-NOAU")
}
