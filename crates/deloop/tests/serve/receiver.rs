//! A receiver of alerts that answers as a test says and keeps what it got.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("no {name} in {:?}", self.headers)).1
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// What the receiver does with its n-th request: a status line with headers, and a body; or nothing, for ever.
pub(crate) type AnswerFn = fn(usize) -> Option<(&'static str, &'static str)>;

/// A receiver on a free port, until the test's process ends.
pub(crate) struct AlertReceiver {
    pub(crate) address: SocketAddr,
    requests: Receiver<ReceivedRequest>,
}

impl AlertReceiver {
    pub(crate) fn start(answer: AnswerFn) -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap(), answer)
    }

    pub(crate) fn start_at(address: SocketAddr, answer: AnswerFn) -> Self {
        let listener = TcpListener::bind(address).expect("a port");
        let address = listener.local_addr().unwrap();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for (n, stream) in listener.incoming().enumerate() {
                let Ok(stream) = stream else { return };
                serve(&stream, answer(n), &sender);
                if answer(n).is_none() {
                    open.push(stream);
                }
            }
        });
        Self { address, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for the next request.
    pub(crate) fn next(&self) -> ReceivedRequest {
        self.requests.recv().expect("a request")
    }
}

fn serve(stream: &TcpStream, answer: Option<(&str, &str)>, sender: &Sender<ReceivedRequest>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request line");
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().expect("a number"))];
    reader.read_exact(&mut body).expect("a body");
    let _ = sender.send(ReceivedRequest { method, path, headers, body });
    if let Some((head, text)) = answer {
        let answer =
            format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len());
        let _ = (&mut &*stream).write_all(answer.as_bytes());
    }
}
