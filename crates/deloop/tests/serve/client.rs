//! A running server, and the smallest client that can talk to it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;

use crate::binary::{deloop, run, said};

/// A server on a free port, ended with the test.
pub(crate) struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// What it said before it was ready.
    earlier: String,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts a server with its state in this home.
    pub(crate) fn start(home: &Path, arguments: &[&str]) -> Self {
        Self::start_with(deloop(home), arguments)
    }

    /// Starts a server with this command, which has no arguments yet.
    pub(crate) fn start_with(mut command: Command, arguments: &[&str]) -> Self {
        command.arg("serve").args(arguments);
        if !arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("its errors"));
        let mut earlier = String::new();
        let line = loop {
            let line = next_line(&mut stderr);
            if line.is_empty() || line.starts_with("deloop: listening on ") {
                break line;
            }
            earlier += &line;
        };
        let address = line.trim().strip_prefix("deloop: listening on http");
        let address = address.unwrap_or_else(|| panic!("{earlier}{line}")).trim_start_matches('s');
        let address: SocketAddr = address.trim_start_matches("://").parse().expect("an address");
        // A server on all addresses is reached on this one.
        let address = SocketAddr::from(([127, 0, 0, 1], address.port()));
        Self { child, stderr, earlier, address }
    }

    /// Waits for the next line that it says.
    pub(crate) fn says(&mut self) -> String {
        next_line(&mut self.stderr)
    }

    /// Waits until it says something with this text, and returns the line.
    pub(crate) fn says_about(&mut self, text: &str) -> String {
        if let Some(line) = self.earlier.lines().find(|line| line.contains(text)) {
            return line.to_owned();
        }
        loop {
            let line = self.says();
            assert!(!line.is_empty(), "it says nothing about {text}");
            if line.contains(text) {
                return line;
            }
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address).expect("a connection")
    }

    /// A connection whose requests have this key.
    pub(crate) fn client_with(&self, key: &str) -> Client {
        Client { key: format!("authorization: Bearer {key}\r\n"), ..self.client() }
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(self) {
        self.signal("KILL");
        self.wait();
    }

    /// The most memory that it ever used, in MiB.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak_memory(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("/bin/sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Waits until it ends. Returns its exit code, and what it said since it was ready.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).expect("its errors");
        (self.child.wait().expect("it ends").code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next_line(stderr: &mut BufReader<ChildStderr>) -> String {
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    line
}

/// A connection that is kept open.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
    host: String,
    /// A header line, or nothing.
    key: String,
}

/// What a request was answered.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl HttpAnswer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Everything but the time of the answer.
    pub(crate) fn whole(&self) -> (u16, Vec<(String, String)>, String) {
        let headers = self.headers.iter().filter(|(name, _)| name != "date").cloned().collect();
        (self.status, headers, self.text())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }
}

impl Client {
    /// Connects to a server that may be away.
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_string(), key: String::new() })
    }

    /// Sends one step to a server that may be away.
    pub(crate) fn try_step(&mut self, step: &Value) -> io::Result<Value> {
        let answer = self.send("POST", "/v1/steps", &[], step.to_string().as_bytes())?;
        assert_eq!(answer.status, 200, "{answer:?}");
        Ok(answer.json())
    }

    /// Sends bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends the beginning of a request, without its body of this length, and waits until the server has let it in.
    /// Returns the answer if it doesn't.
    pub(crate) fn begin(&mut self, method: &str, path: &str, length: usize) -> Result<(), HttpAnswer> {
        let head = self.head(method, path, length, &[("expect", "100-continue")]);
        self.write(head.as_bytes()).expect("the server reads");
        let begins_with_100 = |bytes: &[u8]| bytes.get(..12).map(|start| start == b"HTTP/1.1 100");
        let seen = self.stream.fill_buf().expect("an answer");
        if begins_with_100(seen).expect("a status line") {
            let mut line = String::new();
            while self.stream.read_line(&mut line).expect("a line") > 2 {}
            return Ok(());
        }
        Err(self.read().expect("an answer"))
    }

    /// Reads the answer to a request that was written.
    pub(crate) fn read(&mut self) -> io::Result<HttpAnswer> {
        let mut line = String::new();
        let mut next = |line: &mut String| -> io::Result<()> {
            line.clear();
            if self.stream.read_line(line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(())
        };
        next(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let mut headers = Vec::new();
        loop {
            next(&mut line)?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let mut body = vec![0; length.expect("a length").1.parse().expect("a number")];
        self.stream.read_exact(&mut body)?;
        Ok(HttpAnswer { status, headers, body })
    }

    pub(crate) fn head(&self, method: &str, path: &str, length: usize, more: &[(&str, &str)]) -> String {
        let host = if more.iter().any(|(name, _)| *name == "host") {
            String::new()
        } else {
            format!("host: {}\r\n", self.host)
        };
        let more: String = more.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let key = &self.key;
        format!("{method} {path} HTTP/1.1\r\n{host}{key}content-length: {length}\r\n{more}\r\n")
    }

    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<HttpAnswer> {
        let mut request = self.head(method, path, body.len(), headers).into_bytes();
        request.extend_from_slice(body);
        self.write(&request)?;
        self.read()
    }

    pub(crate) fn get(&mut self, path: &str) -> HttpAnswer {
        self.send("GET", path, &[], b"").expect("an answer")
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> HttpAnswer {
        self.send("POST", path, &[], body.as_bytes()).expect("an answer")
    }

    /// Sends one step and returns the decision.
    pub(crate) fn step(&mut self, step: &Value) -> Value {
        let answer = self.post("/v1/steps", &step.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Sends one step a line and returns the answers.
    pub(crate) fn lines(&mut self, lines: &str) -> Vec<Value> {
        let kind = [("content-type", "application/x-ndjson")];
        let answer = self.send("POST", "/v1/steps", &kind, lines.as_bytes()).expect("an answer");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
        crate::binary::lines(&answer.body)
    }
}

/// A name as one segment of a path.
pub(crate) fn segment(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Creates a key with `deloop keys add` and returns it.
pub(crate) fn add_key(home: &Path, arguments: &[&str]) -> String {
    let output = run(deloop(home).args(["keys", "add"]).args(arguments), b"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}
