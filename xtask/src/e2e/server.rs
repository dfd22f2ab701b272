//! A `deloop serve` beside a run. It enforces, the hooks only nudge: what is blocked or stopped was decided by it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::agents::Agent;
use super::place::Place;

/// A running server. It ends when dropped.
pub(super) struct RunServer {
    child: Child,
    address: String,
}

impl RunServer {
    /// Starts a server and installs the agent's hooks again, so that they report to it.
    pub(super) fn start(agent: &dyn Agent, place: &Place) -> Result<Self, String> {
        let deloop = || {
            let mut command = Command::new(place.deloop());
            command.current_dir(&place.work).env_clear().env("HOME", &place.home);
            command
        };
        let state = place.root.join("server");
        let mut serve = deloop();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--profile", "default", "--state"]).arg(state);
        let broken = |e: std::io::Error| format!("the server: {e}");
        let mut child = serve
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(broken)?;
        let mut line = String::new();
        if let Some(stderr) = child.stderr.take() {
            BufReader::new(stderr).read_line(&mut line).map_err(broken)?;
        }
        let address = line.trim().strip_prefix("deloop: listening on http://").map(str::to_owned);
        let server = Self { child, address: address.ok_or(format!("the server says {line:?}"))? };
        let url = format!("http://{}", server.address);
        let mut install = deloop();
        install.args(["install", agent.name(), "--mode", "nudge", "--server", &url]);
        match install.output().map_err(broken)? {
            output if output.status.success() => Ok(server),
            output => Err(format!("{install:?}: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// Whether it has one session, which it stopped.
    pub(super) fn stopped(&self) -> Result<bool, String> {
        let sessions = self.get("/v1/sessions")?;
        let [session] = sessions["sessions"].as_array().map(Vec::as_slice).unwrap_or_default() else {
            return Err(format!("the server's sessions are {sessions}"));
        };
        let session = self.get(&format!("/v1/sessions/{}", session.as_str().unwrap_or_default()))?;
        Ok(session["agents"][0]["stop"]["action"] == "stop")
    }

    fn get(&self, path: &str) -> Result<Value, String> {
        let broken = |e: std::io::Error| format!("the server: {e}");
        let mut stream = TcpStream::connect(&self.address).map_err(broken)?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).map_err(broken)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(broken)?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        serde_json::from_str(body).map_err(|e| format!("the server answered {answer:?}: {e}"))
    }
}

impl Drop for RunServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
