//! Turns compared by meaning: with a local model, with an endpoint, in every live path.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::binary::{deloop, run, said, stream};
use crate::wait::wait_for;

/// Two of these are the document's own example. The model of the test knows all of their words.
const REPHRASED: [&str; 6] = [
    "analyze the price movement",
    "examine how prices changed",
    "analyze how the cost changed",
    "examine the movement of prices",
    "analyze a change in the price",
    "examine the cost movement",
];

fn tiny_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../embed/fixtures/tiny").canonicalize().unwrap()
}

/// A user's own configuration, which may name a model or an endpoint.
fn configure(home: &Path, embeddings: &str) {
    let folder = home.join(".config/deloop");
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!(
        "profile = \"turn-similarity\"\nmode = \"enforce\"\n[detectors.similar-turn]\nby = \"embeddings\"\n[embeddings]\n{embeddings}\n"
    );
    std::fs::write(folder.join("deloop.toml"), text).unwrap();
}

fn with_model(home: &Path) {
    configure(home, &format!("model = {:?}", tiny_model()));
}

fn turns(texts: &[&str]) -> Vec<u8> {
    texts
        .iter()
        .flat_map(|text| format!("{}\n", json!({"type": "turn", "text": text})).into_bytes())
        .collect()
}

fn actions(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["action"].as_str().unwrap()).collect()
}

const FOUND: [&str; 6] = ["continue", "continue", "continue", "warn", "warn", "stop"];

#[test]
fn the_documents_example_is_similar_by_meaning_and_not_by_words() {
    let home = tempfile::tempdir().unwrap();
    let compare = || {
        let output = run(deloop(home.path()).args(["similarity", REPHRASED[0], REPHRASED[1], "--json"]), b"");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(compare(), json!({"words": 0.0, "embeddings": null}));
    with_model(home.path());
    let both = compare();
    assert!(both["words"] == 0.0 && both["embeddings"].as_f64().unwrap() > 0.99, "{both}");
}

#[test]
fn a_local_model_finds_rephrased_turns_in_a_stream() {
    let home = tempfile::tempdir().unwrap();
    with_model(home.path());
    assert_eq!(actions(&stream(home.path(), &[], &turns(&REPHRASED))), FOUND);
    assert_eq!(actions(&stream(home.path(), &["--agent", "opencode"], &turns(&REPHRASED))), FOUND);
}

#[test]
fn the_profiles_decide_by_words_unless_told_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".config/deloop");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("deloop.toml"), format!("[embeddings]\nmodel = {:?}\n", tiny_model()))
        .unwrap();
    for profile in ["behavioral", "signature", "doom-loop", "turn-similarity", "turn-hash", "default"] {
        // A profile that looks at text alone says nothing here; doom-loop counts talk.
        let plain = tempfile::tempdir().unwrap();
        let expected = stream(plain.path(), &["-p", profile], &turns(&REPHRASED));
        assert_eq!(stream(home.path(), &["-p", profile], &turns(&REPHRASED)), expected, "{profile}");
        assert!(!actions(&expected).contains(&"stop"), "{profile}");
    }
}

#[test]
fn finished_sessions_are_judged_the_same_way() {
    let home = tempfile::tempdir().unwrap();
    with_model(home.path());
    std::fs::write(home.path().join("s.jsonl"), turns(&REPHRASED)).unwrap();
    let scan = |home: &Path| {
        let output = run(deloop(home).args(["scan", "s.jsonl", "--json"]), b"");
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["loops"].as_array().unwrap().len()
    };
    assert_eq!(scan(home.path()), 1);
    std::fs::remove_file(home.path().join(".config/deloop/deloop.toml")).unwrap();
    assert_eq!(scan(home.path()), 0);
}

#[test]
fn errors_name_the_fix() {
    let home = tempfile::tempdir().unwrap();
    let fails = |embeddings: &str| {
        configure(home.path(), embeddings);
        let output = run(deloop(home.path()).arg("stream"), &turns(&REPHRASED[..1]));
        assert_eq!(output.status.code(), Some(2), "{embeddings}");
        said(&output)
    };
    assert!(fails("model = \"/no/such/model\"").contains("/no/such/model/config.json"));
    assert!(fails("model = \"/m\"\nendpoint = \"http://127.0.0.1:1\"").contains("remove one of them"));
    assert!(fails("endpoint = \"http://127.0.0.1:1\"").contains("`embeddings.name`"));
    assert!(
        fails("endpoint = \"http://127.0.0.1:1\"\nname = \"m\"\nkey_variable = \"NO_SUCH_KEY\"")
            .contains("NO_SUCH_KEY isn't set")
    );
}

#[test]
fn doctor_says_whether_the_model_answers() {
    let home = tempfile::tempdir().unwrap();
    let doctor = || String::from_utf8(run(deloop(home.path()).arg("doctor"), b"").stdout).unwrap();
    assert!(!doctor().contains("embeddings"));
    with_model(home.path());
    assert!(doctor().contains("ok    embeddings: the model answers"), "{}", doctor());
    configure(home.path(), "endpoint = \"http://127.0.0.1:1\"\nname = \"m\"");
    assert!(doctor().contains("WRONG embeddings: the endpoint: "), "{}", doctor());
}

/// A folder that someone else wrote can't send the conversation anywhere.
#[test]
fn a_project_cannot_name_an_endpoint() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("project")).unwrap();
    let file = home.path().join("project/deloop.toml");
    std::fs::write(&file, "[embeddings]\nendpoint = \"http://127.0.0.1:1\"\nname = \"m\"\n").unwrap();
    let output = run(deloop(home.path()).args(["trust", "project/deloop.toml"]), b"");
    assert!(said(&output).contains("only your own configuration can set `embeddings`"), "{}", said(&output));
}

/// A small endpoint that embeds by the length of the first word, or never answers.
struct Endpoint {
    port: u16,
    requests: Arc<AtomicUsize>,
    received: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Endpoint {
    fn start(answers: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, received) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (count, seen) = (Arc::clone(&requests), Arc::clone(&received));
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                if answers {
                    let seen = Arc::clone(&seen);
                    std::thread::spawn(move || reply(stream, &seen));
                } else {
                    kept.push(stream);
                }
            }
        });
        Self { port, requests, received }
    }

    fn configuration(&self) -> String {
        format!(
            "endpoint = \"http://127.0.0.1:{}/v1/embeddings\"\nname = \"test-model\"\nkey_variable = \"TEST_KEY\"",
            self.port
        )
    }
}

fn reply(stream: TcpStream, seen: &Mutex<Vec<(String, Value)>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let data: Vec<Value> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let about_prices =
                text.as_str().unwrap().contains("pric") || text.as_str().unwrap().contains("cost");
            json!({"index": index, "embedding": if about_prices { [0.9, 0.1] } else { [0.1, 0.9] }})
        })
        .collect();
    let answer = json!({"object": "list", "data": data}).to_string();
    let mut stream = stream;
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
    // It has the answer when it closes the connection.
    let _ = reader.read_to_end(&mut Vec::new());
    seen.lock().unwrap().push((head, body));
}

/// The agent of a hook: it says something, which stands in its transcript, and calls a tool.
struct Talker {
    home: tempfile::TempDir,
    turns: usize,
}

impl Talker {
    fn new(embeddings: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        configure(home.path(), embeddings);
        Self { home, turns: 0 }
    }

    fn event(&self, mut event: Value) -> Value {
        event["session_id"] = "s1".into();
        event["transcript_path"] = self.home.path().join("t.jsonl").to_str().into();
        let mut command = deloop(self.home.path());
        let output =
            run(command.args(["hook", "claude-code"]).env("TEST_KEY", "k1"), event.to_string().as_bytes());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    /// One turn: text and a call. Returns the replies before and after the call.
    fn turn(&mut self, text: &str) -> (Value, Value) {
        self.turns += 1;
        let (n, id) = (self.turns, format!("c{}", self.turns));
        let input = json!({"command": format!("date +%{n}")});
        let line = json!({"type": "assistant", "uuid": format!("u{n}"), "sessionId": "s1", "message": {"id": format!("m{n}"), "role": "assistant",
            "content": [{"type": "text", "text": text}, {"type": "tool_use", "id": id, "name": "Bash", "input": input}]}});
        let path = self.home.path().join("t.jsonl");
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
        let call = json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": input});
        let mut before = call.clone();
        before["hook_event_name"] = "PreToolUse".into();
        let mut after = call;
        after["hook_event_name"] = "PostToolUse".into();
        after["tool_response"] = json!({"stdout": n.to_string()});
        (self.event(before), self.event(after))
    }

    fn log(&self) -> Vec<Value> {
        let output = run(deloop(self.home.path()).args(["log", "--json"]), b"");
        crate::binary::lines(&output.stdout)
    }

    fn stored(&self) -> u32 {
        let path = self.home.path().join(".local/state/deloop/deloop.db");
        let database = rusqlite::Connection::open(path).unwrap();
        database.query_row("SELECT count(*) FROM embeddings", [], |row| row.get(0)).unwrap_or(0)
    }

    /// Waits for the process in the background.
    fn wait_for(&self, embeddings: u32) {
        wait_for("the embeddings are stored", || self.stored() >= embeddings);
    }
}

/// Hooks don't wait for a model: its answer is there at the next event.
#[test]
fn hooks_get_embeddings_from_the_background() {
    let mut agent = Talker::new(&format!("model = {:?}", tiny_model()));
    let mut said = Vec::new();
    for (n, text) in REPHRASED.iter().enumerate() {
        let (before, after) = agent.turn(text);
        said.push((before, after));
        if n < 5 {
            agent.wait_for(u32::try_from(n).unwrap() + 1);
        }
    }
    // The fourth turn is the third similar one; the person learns of it at the next event after its embedding.
    let warned: Vec<bool> = said
        .iter()
        .map(|(before, after)| before["systemMessage"].is_string() || after["systemMessage"].is_string())
        .collect();
    assert!(warned[..3].iter().all(|warned| !warned) && warned[3..].contains(&true), "{said:#?}");
    let actions: Vec<Value> = agent.log().iter().map(|row| row["action"].clone()).collect();
    assert!(actions.contains(&json!("warn")), "{actions:?}");
}

#[test]
fn an_endpoint_is_asked_once_per_text_and_gets_no_secret() {
    let endpoint = Endpoint::start(true);
    let mut agent = Talker::new(&endpoint.configuration());
    agent.turn("look at the prices with sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789AAAA");
    agent.wait_for(1);
    agent.turn("look at the prices with sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789AAAA");
    agent.turn("another text");
    agent.wait_for(2);
    wait_for("the endpoint has answered", || endpoint.received.lock().unwrap().len() >= 2);
    let received = endpoint.received.lock().unwrap().clone();
    assert_eq!(received.len(), 2, "{received:?}");
    let (head, body) = &received[0];
    assert!(head.to_lowercase().contains("authorization: bearer k1"), "{head}");
    assert_eq!(body["model"], "test-model");
    let text = body["input"][0].as_str().unwrap();
    assert!(text.starts_with("look at the prices") && !text.contains("abcdefghij"), "{text}");
}

#[test]
fn an_endpoint_works_in_a_stream_one_step_later() {
    let endpoint = Endpoint::start(true);
    let home = tempfile::tempdir().unwrap();
    configure(home.path(), &endpoint.configuration());
    let mut child = deloop(home.path())
        .arg("stream")
        .env("TEST_KEY", "k1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut answers = Vec::new();
    // The answer to a turn may be late for the next one, so there are as many turns as it takes.
    for n in 1.. {
        let text = format!("{} {n}", ["prices rose", "costs went up", "what did pricing do"][n % 3]);
        writeln!(input, "{}", json!({"type": "turn", "text": text})).unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        answers.push(serde_json::from_str::<Value>(&line).unwrap());
        if answers.last().unwrap()["action"] == "stop" {
            break;
        }
        wait_for("the endpoint has answered", || endpoint.received.lock().unwrap().len() >= n);
    }
    drop(input);
    child.wait().unwrap();
    // The fourth turn is the third similar one. An endpoint that answers at once is in time for it.
    assert_eq!(actions(&answers)[..3], ["continue"; 3]);
    assert!(actions(&answers)[3..].contains(&"warn"), "{answers:#?}");
}

/// An endpoint that never answers costs an agent nothing: neither in a hook nor in a stream. Who waited for it would wait
/// for an hour.
#[test]
fn a_dead_endpoint_delays_nothing() {
    let dead = Endpoint::start(false);
    let configuration = format!("{}\ntimeout_ms = 3600000", dead.configuration());
    let mut agent = Talker::new(&configuration);
    for text in REPHRASED {
        agent.turn(text);
    }
    wait_for("it was asked", || dead.requests.load(Ordering::SeqCst) > 0);

    let home = tempfile::tempdir().unwrap();
    configure(home.path(), &configuration);
    let output = run(deloop(home.path()).arg("stream").env("TEST_KEY", "k1"), &turns(&REPHRASED));
    assert_eq!(crate::binary::lines(&output.stdout).len(), 6, "{}", said(&output));
}
