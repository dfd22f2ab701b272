//! As much of HTTP/1.1 as the agents need: one request a connection, a reply of JSON or of server-sent events.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// A request, read to its end.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// Null when it is empty or no JSON.
    pub(crate) body: Value,
}

/// What goes back.
#[derive(Debug)]
pub(crate) enum Reply {
    Json(u16, Value),
    /// Events, each with the name of its `type` when `named`; `[DONE]` at the end when `done`.
    Events {
        events: Vec<Value>,
        named: bool,
        done: bool,
    },
}

/// Reads one request; none when the other side closed first.
pub(crate) fn read(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default().to_owned();
    let mut length = 0;
    let mut chunked = false;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().map_err(io::Error::other)?,
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "expect" => (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?,
            _ => {}
        }
    }
    let body = if chunked { read_chunks(&mut reader)? } else { read_exactly(&mut reader, length)? };
    Ok(Some(Request { method, path, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }))
}

fn read_exactly(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
        body.extend(read_exactly(reader, size)?);
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Sends the reply, after which the connection is to be dropped.
pub(crate) fn write(mut stream: &TcpStream, reply: &Reply) -> io::Result<()> {
    let (status, kind, body) = match reply {
        Reply::Json(status, value) => (*status, "application/json", value.to_string()),
        Reply::Events { events, named, done } => {
            let mut body = String::new();
            for event in events {
                if let Some(name) = event["type"].as_str().filter(|_| *named) {
                    body += &format!("event: {name}\n");
                }
                body += &format!("data: {event}\n\n");
            }
            if *done {
                body += "data: [DONE]\n\n";
            }
            (200, "text/event-stream", body)
        }
    };
    let reason = if status == 200 { "OK" } else { "Not Found" };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    stream.flush()
}
