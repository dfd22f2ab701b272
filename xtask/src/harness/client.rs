//! One request to a model that speaks Chat Completions on loopback.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use serde_json::{Value, json};

/// Asks for the next message of the conversation.
pub(super) fn complete(port: u16, messages: &[Value]) -> io::Result<Value> {
    let tool = json!({"type": "function", "function": {
        "name": "bash", "description": "Run a command",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}
    }});
    let body = json!({"model": "fake-model", "messages": messages, "tools": [tool]}).to_string();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let body = reply.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let mut reply: Value = serde_json::from_str(body)?;
    Ok(reply["choices"][0]["message"].take())
}
