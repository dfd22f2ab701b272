//! Receivers that accept only what the services accept, by their documentation.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::receiver::ReceivedRequest;

fn keys(value: &Value, known: &[&str]) {
    let map = value.as_object().unwrap_or_else(|| panic!("not an object: {value}"));
    for key in map.keys() {
        assert!(known.contains(&key.as_str()), "unknown key {key}: {value}");
    }
}

fn text(value: &Value, longest: usize) -> usize {
    let text = value.as_str().unwrap_or_else(|| panic!("not a text: {value}"));
    let units = text.encode_utf16().count();
    assert!((1..=longest).contains(&units), "1 to {longest}: {text}");
    units
}

/// Discord's `POST /webhooks/ID/TOKEN`: the keys of a message, an embed and a field, and their limits.
pub(crate) fn check_discord(request: &ReceivedRequest) -> Value {
    assert_eq!((request.method.as_str(), request.header("content-type")), ("POST", "application/json"));
    let body = request.json();
    keys(&body, &["content", "username", "avatar_url", "tts", "embeds", "allowed_mentions"]);
    let embeds = body["embeds"].as_array().unwrap();
    assert!((1..=10).contains(&embeds.len()));
    assert_eq!(body["allowed_mentions"], json!({"parse": []}), "nobody is mentioned");
    for embed in embeds {
        keys(embed, &["title", "description", "url", "timestamp", "color", "footer", "author", "fields"]);
        let mut total = text(&embed["title"], 256) + text(&embed["description"], 4096);
        total += text(&embed["footer"]["text"], 2048);
        let time = embed["timestamp"].as_str().unwrap();
        assert!(time.len() >= 20 && time.as_bytes()[10] == b'T' && time.ends_with('Z'), "ISO 8601: {time}");
        assert!(embed["color"].as_u64().unwrap() <= 0xff_ff_ff);
        let fields = embed["fields"].as_array().unwrap();
        assert!(fields.len() <= 25);
        for field in fields {
            keys(field, &["name", "value", "inline"]);
            total += text(&field["name"], 256) + text(&field["value"], 1024);
        }
        assert!(total <= 6000);
    }
    body["embeds"][0].clone()
}

/// The fields of an embed, by name.
pub(crate) fn discord_field<'a>(embed: &'a Value, name: &str) -> &'a str {
    let fields = embed["fields"].as_array().unwrap();
    let field = fields.iter().find(|field| field["name"] == name);
    field.unwrap_or_else(|| panic!("no {name}: {embed}"))["value"].as_str().unwrap()
}

/// An incoming webhook of Slack: a text, and blocks with their limits.
pub(crate) fn check_slack(request: &ReceivedRequest) -> Value {
    assert_eq!((request.method.as_str(), request.header("content-type")), ("POST", "application/json"));
    let body = request.json();
    let known =
        ["text", "blocks", "mrkdwn", "parse", "link_names", "unfurl_links", "unfurl_media", "thread_ts"];
    keys(&body, &known);
    let mut texts = vec![(&body["text"], 40_000)];
    let blocks = body["blocks"].as_array().unwrap();
    assert!((1..=50).contains(&blocks.len()));
    for block in blocks {
        match block["type"].as_str().unwrap() {
            "header" => {
                keys(block, &["type", "text", "block_id"]);
                assert_eq!(block["text"]["type"], "plain_text");
                texts.push((&block["text"]["text"], 150));
            }
            "section" => {
                keys(block, &["type", "text", "fields", "block_id", "accessory"]);
                let fields = block["fields"].as_array().map_or(&[][..], Vec::as_slice);
                assert!(block.get("text").is_some() || !fields.is_empty(), "a section has one of them");
                assert!(fields.len() <= 10);
                texts.extend(block.get("text").map(|text| (&text["text"], 3000)));
                texts.extend(fields.iter().map(|field| (&field["text"], 2000)));
            }
            "context" => {
                keys(block, &["type", "elements", "block_id"]);
                let elements = block["elements"].as_array().unwrap();
                assert!((1..=10).contains(&elements.len()));
                texts.extend(elements.iter().map(|element| (&element["text"], 3000)));
            }
            other => panic!("unknown block {other}"),
        }
    }
    for (value, longest) in texts {
        text(value, longest);
        let unescaped = value.as_str().unwrap();
        assert!(!unescaped.contains(['<', '>']), "control characters: {unescaped}");
    }
    body
}

/// A receiver that follows the documentation: the headers, the age and the signature. Returns the alert.
#[expect(clippy::disallowed_methods, reason = "a signature has a time")]
pub(crate) fn check_webhook(request: &ReceivedRequest, secret: &str) -> Value {
    assert_eq!((request.method.as_str(), request.header("content-type")), ("POST", "application/json"));
    let (time, signature) = request.header("deloop-signature").split_once(",v1=").expect("t=…,v1=…");
    let seconds: u64 = time.strip_prefix("t=").expect("t=").parse().expect("seconds");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(seconds) < 60, "{seconds} at {now}");
    let mut signed = format!("{seconds}.").into_bytes();
    signed.extend_from_slice(&request.body);
    assert_eq!(signature, hmac(secret, &signed));
    let alert = request.json();
    let known = [
        "id", "ts", "level", "kind", "project", "session", "agent", "swarm", "model", "title", "reason",
        "details",
    ];
    keys(&alert, &known);
    assert!(known.iter().all(|key| alert.get(key).is_some()), "{alert}");
    assert_eq!(request.header("deloop-idempotency-key"), alert["id"]);
    alert
}

/// HMAC-SHA256 as RFC 2104 defines it, in hexadecimal.
fn hmac(secret: &str, signed: &[u8]) -> String {
    let mut key = [0_u8; 64];
    key[..secret.len()].copy_from_slice(secret.as_bytes());
    let padded = |byte: u8| key.map(|k| k ^ byte);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(signed).finalize();
    let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs the example of docs/alerts.md on a request; `None` if there is no Python.
pub(crate) fn python_accepts(request: &ReceivedRequest, secret: &str, body: &[u8]) -> bool {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/alerts.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example =
        page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let driver = format!(
        "{example}\nimport sys\nsys.exit(0 if verify(sys.argv[1], sys.argv[2], sys.stdin.buffer.read()) else 3)\n"
    );
    let mut command = Command::new("python3");
    command.args(["-c", &driver, secret, request.header("deloop-signature")]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(body).unwrap();
    match child.wait().unwrap().code() {
        Some(0) => true,
        Some(3) => false,
        other => panic!("the example failed: {other:?}"),
    }
}
