//! Clients that send one request after the other over a connection that they keep.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::{BATCH, steps};

/// How many steps a session has before the next one begins.
const SESSION: usize = 40;
/// Batches of different clients are this far apart, so that they have different sessions.
const FAR_APART: usize = 1_000_000;

/// A load on a server.
pub(crate) struct Load {
    port: u16,
    connections: usize,
    kind: LoadKind,
    /// A header line, or nothing.
    key: String,
}

#[derive(Clone, Copy)]
enum LoadKind {
    Single(u32),
    Batches,
}

/// How long each request took, the fastest first.
#[derive(Default)]
pub(crate) struct Measured {
    times: Vec<Duration>,
    took: Duration,
    cpu_time: Duration,
}

impl Measured {
    /// Adds the processor time that the server needed for them.
    pub(crate) fn with_cpu_time(self, cpu_time: Duration) -> Self {
        Self { cpu_time, ..self }
    }

    /// Returns the server's processor time per request, in microseconds.
    pub(crate) fn cpu_per_request(&self) -> f64 {
        self.cpu_time.as_secs_f64() * 1_000_000.0 / self.times.len() as f64
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.times.sort_unstable();
        self.took += other.took;
        self.cpu_time += other.cpu_time;
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.took.as_secs_f64()
    }

    /// Returns the number of requests.
    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }

    /// Returns a percentile in milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let at = (self.times.len() * percent / 100).min(self.times.len().saturating_sub(1));
        self.times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
    }
}

impl Load {
    /// Single steps. Each load has sessions of its own.
    pub(crate) fn single(port: u16, connections: usize, load: u32) -> Self {
        Self { port, connections, kind: LoadKind::Single(load), key: String::new() }
    }

    pub(crate) fn batches(port: u16) -> Self {
        Self { port, connections: 2, kind: LoadKind::Batches, key: String::new() }
    }

    /// Sends this key with each request.
    pub(crate) fn with_key(self, key: &str) -> Self {
        Self { key: format!("authorization: Bearer {key}\r\n"), ..self }
    }

    /// Sends requests for this long.
    pub(crate) fn run(&self, time: Duration) -> Measured {
        let begun = Instant::now();
        let mut times: Vec<Duration> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..self.connections)
                .map(|client| {
                    scope.spawn(move || {
                        let mut connection = Connection::open(self.port);
                        connection.key.clone_from(&self.key);
                        let (mut times, mut n) = (Vec::new(), 0);
                        while begun.elapsed() < time {
                            let body = match self.kind {
                                LoadKind::Single(load) => {
                                    let session =
                                        format!("c{load}-{client}-{}-{}", self.connections, n / SESSION);
                                    steps::step(&session, n % SESSION).into_bytes()
                                }
                                // A session's steps come from one client, in order.
                                LoadKind::Batches => steps::batch(client * FAR_APART + n, BATCH),
                            };
                            let sent = Instant::now();
                            connection.send(&body, matches!(self.kind, LoadKind::Batches));
                            times.push(sent.elapsed());
                            n += 1;
                        }
                        times
                    })
                })
                .collect();
            clients.into_iter().flat_map(|client| client.join().expect("the client ends")).collect()
        });
        times.sort_unstable();
        Measured { times, took: begun.elapsed(), cpu_time: Duration::ZERO }
    }
}

/// A connection that is kept.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
    key: String,
}

impl Connection {
    pub(crate) fn open(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server answers");
        stream.set_nodelay(true).expect("a socket");
        Self { stream: BufReader::new(stream), body: Vec::new(), key: String::new() }
    }

    /// Sends steps and waits for the answer.
    pub(crate) fn send(&mut self, body: &[u8], lines: bool) {
        let kind = if lines { "application/x-ndjson" } else { "application/json" };
        let mut request = format!(
            "POST /v1/steps HTTP/1.1\r\nhost: 127.0.0.1\r\n{}content-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            self.key,
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request).expect("it is sent");
        let (mut line, mut length, mut first) = (String::new(), 0, true);
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("an answer");
            if first {
                assert!(line.starts_with("HTTP/1.1 200"), "{line}");
                first = false;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).expect("the body");
    }
}
