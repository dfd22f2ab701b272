//! Servers that do what a real one never would, and remember what they were sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// What a fake server got: the request line with its headers, and the body.
pub(crate) type Received = Arc<Mutex<Vec<(String, Value)>>>;

/// Answers one request: its number, from 0, and its steps.
pub(crate) type Answer = Box<dyn Fn(usize, &Value) -> Vec<u8> + Send + Sync>;

/// A server on a free port. It lives as long as the test.
pub(crate) struct FakeServer {
    pub(crate) url: String,
    pub(crate) received: Received,
}

impl FakeServer {
    /// Starts a server with these answers. An empty answer means that it never answers.
    pub(crate) fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received = Received::default();
        let (requests, answer) = (Arc::clone(&received), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (requests, answer) = (Arc::clone(&requests), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &requests, &answer));
            }
        });
        Self { url, received }
    }

    /// Starts a server that gives every request the same answer.
    pub(crate) fn always(answer: Vec<u8>) -> Self {
        Self::start(Box::new(move |_, _| answer.clone()))
    }

    pub(crate) fn requests(&self) -> usize {
        self.received.lock().expect("the requests").len()
    }
}

fn serve(mut stream: TcpStream, requests: &Received, answer: &Answer) {
    let mut reader = BufReader::new(stream.try_clone().expect("a reader"));
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let steps: Value = serde_json::from_slice(&body).expect("steps");
    let number = {
        let mut requests = requests.lock().expect("the requests");
        requests.push((head, steps.clone()));
        requests.len() - 1
    };
    let answer = answer(number, &steps);
    if answer.is_empty() {
        // The client hangs up at some time.
        let _ = std::io::copy(&mut reader, &mut std::io::sink());
    }
    // A client that had enough closes the connection.
    let _ = stream.write_all(&answer);
}

/// An answer with this status, these headers and this body.
pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// One decision per step: `first` for the first of them, `continue` for the others.
pub(crate) fn decisions(steps: &Value, first: &Value) -> Vec<u8> {
    let count = steps.as_array().expect("an array").len();
    let decisions: Vec<Value> = (0..count)
        .map(|n| {
            let mut decision = json!({"session": "x", "step": n, "action": "continue", "level": 0, "message": null,
                "role": null, "calls": [], "status": null, "findings": []});
            if n == 0 {
                decision.as_object_mut().unwrap().extend(first.as_object().unwrap().clone());
            }
            decision
        })
        .collect();
    answer("200 OK", "", Value::from(decisions).to_string().as_bytes())
}
