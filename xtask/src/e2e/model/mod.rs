//! The fake model: a server on loopback that says what a script says and remembers what it was asked.

mod anthropic;
mod chat;
mod gemini;
pub(super) mod http;
mod responses;
pub(super) mod script;

use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

use self::http::{Reply, Request};
use self::script::{Act, Call, Script, Turn};

/// One answer, with the tools of the agent filled in.
enum Said {
    Text {
        id: String,
        text: String,
    },
    /// Calls, with words before them or without.
    Calls {
        id: String,
        text: Option<String>,
        calls: Vec<Call>,
    },
}

impl Said {
    fn id(&self) -> &str {
        match self {
            Self::Text { id, .. } | Self::Calls { id, .. } => id,
        }
    }
}

/// A request of the session proper: one that offered a shell.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) body: Value,
    /// How many calls the answer held.
    pub(super) calls: usize,
}

impl Asked {
    /// Returns every text in the request, as the model reads them.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        collect(&self.body, &mut text);
        text
    }
}

fn collect(value: &Value, text: &mut String) {
    match value {
        Value::String(part) => {
            text.push_str(part);
            text.push('\n');
        }
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, text)),
        Value::Object(parts) => parts.values().for_each(|part| collect(part, text)),
        _ => {}
    }
}

/// What happened at the server during a run.
#[derive(Debug, Default, Clone)]
pub(super) struct Record {
    /// The requests of the session, in order.
    pub(super) session: Vec<Asked>,
    /// Method, path and body of everything that was asked, side errands included.
    pub(super) all: Vec<Value>,
}

/// A running fake model; it ends when dropped.
pub(super) struct FakeModel {
    port: u16,
    record: Arc<Mutex<Record>>,
    closing: Arc<AtomicBool>,
}

impl FakeModel {
    /// Listens on a free port of loopback.
    pub(super) fn start(script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let record = Arc::new(Mutex::new(Record::default()));
        let closing = Arc::new(AtomicBool::new(false));
        let (shared, stop, script) = (Arc::clone(&record), Arc::clone(&closing), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let (Ok(stream), record, script) = (stream, Arc::clone(&shared), Arc::clone(&script)) else {
                    continue;
                };
                // An agent that goes away in the middle is no concern of the server.
                thread::spawn(move || drop(serve(&stream, &record, &script)));
            }
        });
        Ok(Self { port, record, closing })
    }

    /// Where it listens, on 127.0.0.1.
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What it was asked so far.
    pub(super) fn record(&self) -> Record {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the listener, which sees the flag.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

fn serve(mut stream: &TcpStream, record: &Mutex<Record>, script: &Script) -> io::Result<()> {
    if let Some(request) = http::read(stream)? {
        let reply = answer(&request, record, script);
        if matches!(script, Script::Silent) && request.method == "POST" {
            // The connection stays open until the agent closes it.
            let _ = stream.read(&mut [0]);
            return Ok(());
        }
        http::write(stream, &reply)?;
    }
    Ok(())
}

fn answer(request: &Request, record: &Mutex<Record>, script: &Script) -> Reply {
    let Request { method, path, body } = request;
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    record.all.push(json!({"method": method, "path": path, "body": body}));
    if method != "POST" {
        return if path.ends_with("/models") {
            Reply::Json(
                200,
                json!({"object": "list", "data": [{"id": "fake-model", "object": "model"}], "models": []}),
            )
        } else {
            Reply::Json(404, json!({}))
        };
    }
    if path.ends_with("/count_tokens") || path.ends_with(":countTokens") {
        return Reply::Json(200, json!({"input_tokens": 10, "totalTokens": 10}));
    }
    if path.ends_with("/messages") {
        anthropic::reply(&say(body, &mut record, script), body)
    } else if path.ends_with("/responses") {
        responses::reply(&say(body, &mut record, script), body)
    } else if path.ends_with("/chat/completions") {
        chat::reply(&say(body, &mut record, script), body)
    } else if path.ends_with(":generateContent") {
        gemini::reply(&say(body, &mut record, script), body, false)
    } else if path.ends_with(":streamGenerateContent") {
        gemini::reply(&say(body, &mut record, script), body, true)
    } else {
        Reply::Json(404, json!({"error": {"message": format!("the fake model has no {path}")}}))
    }
}

/// The next turn of the script, or a word for a request that is not of the session.
fn say(body: &Value, record: &mut Record, script: &Script) -> Said {
    let id = format!("{:04}", record.all.len());
    let tools = tools(body);
    if !script::has_shell(&tools) {
        return Said::Text { id, text: "A short title".to_owned() };
    }
    let calls = |acts: &[Act]| {
        let calls = acts.iter().enumerate();
        calls.filter_map(|(n, act)| script::call(act, &tools, format!("{id}_{n}"))).collect()
    };
    let said = match script.turn(record.session.len(), body) {
        Turn::Text(text) => Said::Text { id, text },
        Turn::Acts(acts) => Said::Calls { text: None, calls: calls(&acts), id },
        Turn::Both(text, acts) => Said::Calls { text: Some(text), calls: calls(&acts), id },
    };
    let made: &[Call] = if let Said::Calls { calls, .. } = &said { calls } else { &[] };
    record.session.push(Asked { body: body.clone(), calls: made.len() });
    said
}

/// The names of the tools a request offers, in any of the four dialects.
fn tools(body: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let declared = tool["functionDeclarations"].as_array().or(tool["function_declarations"].as_array());
        let named = declared.into_iter().flatten().chain([tool, &tool["function"]]);
        // Codex groups the tools of servers in namespaces, which are not callable themselves.
        names.extend(
            named
                .filter(|tool| tool["type"] != "namespace")
                .filter_map(|tool| tool["name"].as_str())
                .map(str::to_owned),
        );
    }
    names
}
