//! `deloop prices`, and what other commands do with the prices.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::binary::{deloop, run, said, stream, trusted_config};

/// A table in LiteLLM's format.
const TABLE: &str = r#"{
    "house-model": {"mode": "chat", "litellm_provider": "openai", "input_cost_per_token": 7e-06,
        "output_cost_per_token": 9e-06, "input_cost_per_token_above_200k_tokens": 1.4e-05,
        "output_cost_per_token_above_200k_tokens": 1.8e-05}
}"#;

fn prices(home: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = run(deloop(home).arg("prices").args(arguments), b"");
    (String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output), output.status.code())
}

fn listed(home: &Path, name: &str) -> Value {
    serde_json::from_str(&prices(home, &[name, "--json"]).0).unwrap()
}

/// Returns the cost of a request with this many input tokens.
fn cost(home: &Path, model: &str, tokens: u64) -> Value {
    let events = home.join("events.jsonl");
    let _ = std::fs::remove_file(&events);
    let step = json!({"type": "usage", "model": model, "input_tokens": tokens});
    stream(home, &["--events", "events.jsonl"], step.to_string().as_bytes());
    let event: Value =
        serde_json::from_str(std::fs::read_to_string(events).unwrap().lines().next().unwrap()).unwrap();
    event["cost_usd"].clone()
}

#[test]
fn prices_are_listed_with_their_source() {
    let home = tempfile::tempdir().unwrap();
    let (text, code) = prices(home.path(), &["Sonnet-4-5"]);
    assert_eq!(code, Some(0), "{text}");
    let row = text.lines().find(|line| line.starts_with("claude-sonnet-4-5 ")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["claude-sonnet-4-5", "3", "15", "0.3", "3.75", "6"]
    );
    assert!(text.contains(" of litellm ") && text.contains("dollars per million tokens"), "{text}");
    let all = listed(home.path(), "");
    assert!(all["models"].as_array().unwrap().len() > 300);
    let (text, code) = prices(home.path(), &["no-such-model"]);
    assert!(text.contains("No price for `no-such-model`") && code == Some(0), "{text}");
}

#[test]
fn a_file_replaces_the_prices_until_they_are_reset() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert_eq!(
        (cost(home, "house-model", 1_000_000), cost(home, "gpt-5", 1_000_000)),
        (Value::Null, json!(1.25))
    );
    std::fs::write(home.join("table.json"), TABLE).unwrap();
    let (text, code) = prices(home, &["update", "table.json"]);
    assert!(text.contains("Stored 1 price in ") && code == Some(0), "{text}");
    assert_eq!(
        (cost(home, "house-model", 1_000_000), cost(home, "gpt-5", 1_000_000)),
        (json!(14.0), Value::Null)
    );
    assert_eq!(cost(home, "house-model", 100_000), json!(0.7));
    let list = listed(home, "");
    assert_eq!((&list["source"], &list["models"][0]["price"]["output"]), (&json!("table.json"), &json!(9.0)));
    trusted_config(home, "deloop.toml", "[prices.house-model]\ninput = 1.0\noutput = 1.0");
    assert_eq!(cost(home, "house-model", 1_000_000), json!(1.0), "the user's own price wins");
    assert_eq!(listed(home, "house")["models"][0]["own"], json!(true));
    let (text, code) = prices(home, &["reset"]);
    assert!(text.starts_with("deloop uses its built-in prices (litellm ") && code == Some(0), "{text}");
    assert_eq!(cost(home, "gpt-5", 1_000_000), json!(1.25));
    assert!(prices(home, &["reset"]).0.starts_with("Nothing to reset"));
}

#[test]
fn an_address_on_this_machine_is_fetched() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (status, body) in [("200 OK", TABLE), ("404 Not Found", "")] {
                let (mut peer, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(peer.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                let length = body.len();
                write!(
                    peer,
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                )
                .unwrap();
            }
        });
        let url = format!("http://{address}/prices.json?token=secret");
        let (text, code) = prices(home.path(), &["update", &url]);
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(listed(home.path(), "")["source"], json!(format!("http://{address}/prices.json")));
        let (text, code) = prices(home.path(), &["update", &url]);
        assert!(text.contains("status 404; check the address") && code == Some(2), "{text}");
    });
    assert_eq!(cost(home.path(), "house-model", 100_000), json!(0.7), "a failed update changes nothing");
}

#[test]
fn errors_name_the_fix() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("other.json"), r#"{"models": []}"#).unwrap();
    std::fs::write(home.path().join("broken.json"), "{").unwrap();
    for (from, expected) in [
        ("http://example.com/prices.json", "use an https:// address"),
        ("ftp://example.com/prices.json", "use an https:// address"),
        ("missing.json", "missing.json: "),
        ("other.json", "deloop reads the format of LiteLLM's"),
        ("broken.json", "not a JSON object"),
    ] {
        let (text, code) = prices(home.path(), &["update", from]);
        assert!(text.contains(expected) && code == Some(2), "{from}: {text}");
    }
}
