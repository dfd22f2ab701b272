//! What an attacker sends: each is refused, none costs others anything, and no secret gets out.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::attack_target::{MARK, Target, statuses, tells_nothing};
use crate::wait::wait_for;

#[test]
fn paths_lead_nowhere_else() {
    let target = Target::new();
    let long = "a".repeat(60_000);
    let names = [
        "..%2f..%2fkeys.json",
        "%2e%2e",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..",
        "%00",
        "victim%00",
        "victim%0d%0a",
        "%ff%fe",
        "%c0%ae%c0%ae",
        "%",
        "%zz",
        "victim%2f..%2fvictim",
        "victim/../victim",
        "*",
        "victim;x=1",
        "victim%23",
        "%25%32%65",
        long.as_str(),
    ];
    for name in names {
        for rest in ["", "/checkpoint"] {
            let answer = target.client().get(&format!("/v1/sessions/{name}{rest}"));
            assert!([400, 404, 414].contains(&answer.status), "{name}: {answer:?}");
            tells_nothing(&answer.text(), &target.key);
        }
        let answer = target.client().get(&format!("/v1/swarms/{name}"));
        assert!([400, 404, 414].contains(&answer.status), "{name}: {answer:?}");
        let answer = target.client().post(&format!("/v1/sessions/{name}/reset"), "");
        assert!(
            [400, 404, 414].contains(&answer.status) || answer.json()["existed"] == false,
            "{name}: {answer:?}"
        );
    }
    for path in [
        "//v1/sessions",
        "/v1//sessions",
        "/v1/./sessions",
        "/V1/sessions",
        "/v1/%73essions",
        "/v1/x/../sessions",
    ] {
        assert_eq!(target.client().get(path).status, 404, "{path}");
    }
    // What needs no key is one path, and nothing that looks like it.
    for path in [
        "/healthz/",
        "//healthz",
        "/healthz/../v1/sessions",
        "/healthz%2f..%2fv1/sessions",
        "/%68ealthz",
        "/healthz;/v1/sessions",
        "/v1/sessions?/healthz",
        "/v1/sessions#/healthz",
    ] {
        let answer = target.server.client().get(path);
        assert_eq!(answer.status, 401, "{path}: {answer:?}");
        tells_nothing(&answer.text(), &target.key);
    }
    target.unharmed();
}

#[test]
fn a_key_counts_in_its_one_place_only() {
    let target = Target::new();
    let key = &target.key;
    let (good, upper, cut) = (format!("Bearer {key}"), key.to_uppercase(), &key[..key.len() - 1]);
    let spellings = [
        key.clone(),
        format!("Basic {key}"),
        format!("Token {key}"),
        format!("Bearer{key}"),
        format!("Bearer: {key}"),
        format!("Bearer \"{key}\""),
        format!("Bearer {key} x"),
        format!("Bearer {key}, Bearer {key}"),
        format!("Bearer {key}\u{e9}"),
        format!("Bearer {upper}"),
        format!("Bearer {cut}"),
        format!("Bearer {key}0"),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
    ];
    for value in &spellings {
        let answer =
            target.server.client().send("GET", "/v1/sessions", &[("authorization", value)], b"").unwrap();
        assert_eq!(answer.status, 401, "{value}");
        tells_nothing(&answer.text(), key);
    }
    for (name, value) in [
        ("x-api-key", key.as_str()),
        ("proxy-authorization", &good),
        ("cookie", &good),
        ("x-authorization", &good),
        ("x-forwarded-authorization", &good),
    ] {
        let answer = target.server.client().send("GET", "/v1/sessions", &[(name, value)], b"").unwrap();
        assert_eq!(answer.status, 401, "{name}");
    }
    for query in ["key", "api_key", "token", "access_token", "authorization"] {
        let answer = target.server.client().get(&format!("/v1/sessions?{query}={key}"));
        assert_eq!(answer.status, 401, "{query}");
        tells_nothing(&answer.text(), key);
    }
    let twice = [("authorization", good.as_str()), ("authorization", "Bearer x")];
    assert_eq!(target.server.client().send("GET", "/v1/sessions", &twice, b"").unwrap().status, 401);
    let lower = [("authorization", good.replacen("Bearer", "bearer", 1))];
    let lower = [(lower[0].0, lower[0].1.as_str())];
    assert_eq!(target.server.client().send("GET", "/v1/sessions", &lower, b"").unwrap().status, 200);
    target.unharmed();
}

/// A request inside another's body must not become one of its own: behind a proxy that shares connections, it would be
/// sent in the name of the next client.
#[test]
fn no_request_hides_in_another() {
    let target = Target::new();
    let (host, key) = (target.server.address.to_string(), &target.key);
    let hidden = format!(
        "POST /v1/sessions/victim/reset HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\r\n"
    );
    let both = |first: &str, second: &str| {
        let head = format!("POST /v1/steps HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n");
        format!("{head}{first}\r\n{second}\r\n\r\n0\r\n\r\n{hidden}")
    };
    let length = format!("content-length: {}", hidden.len() + 5);
    let chunked = "transfer-encoding: chunked";
    for (first, second) in [
        (length.as_str(), chunked),
        (chunked, &length),
        ("content-length: 3", chunked),
        (chunked, "content-length: 0"),
        (chunked, chunked),
        ("transfer-encoding: Chunked", &length),
        ("transfer-encoding:chunked", &length),
        ("transfer-encoding: \tchunked ", &length),
        ("x: y", chunked),
        // Not chunked, or not a header at all: refused.
        ("transfer-encoding: xchunked", &length),
        ("transfer-encoding: chunked, identity", &length),
        ("transfer-encoding: identity", &length),
        ("transfer-encoding: \"chunked\"", &length),
        ("transfer-encoding: \u{b}chunked", &length),
        ("transfer-encoding : chunked", &length),
        (" transfer-encoding: chunked", &length),
        ("x: y\r\n transfer-encoding: chunked", &length),
        ("content-length: 1", "content-length: 5"),
        ("content-length: 5, 5", "x: y"),
        ("content-length: +5", "x: y"),
        ("content-length: -1", "x: y"),
        ("content-length: 0x5", "x: y"),
        ("content-length: 5 5", "x: y"),
        ("content-length: 99999999999999999999999", "x: y"),
        ("content-length\u{0}: 5", "x: y"),
        ("x: a\u{0}b", &length),
        ("x: a\rcontent-length: 5", "x: y"),
    ] {
        let answers = target.raw(both(first, second).as_bytes());
        let statuses = statuses(&answers);
        assert!(statuses.len() <= 1, "{first} + {second}: {answers}");
        assert!(statuses.iter().all(|status| status.starts_with('4')), "{first} + {second}: {answers}");
        assert!(!answers.contains("existed"), "{first} + {second}: {answers}");
    }
    // A body is a body, whatever it looks like and whatever the method is.
    let get = format!(
        "GET /v1/sessions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-length: {}\r\n\r\n{hidden}",
        hidden.len()
    );
    assert_eq!(statuses(&target.raw(get.as_bytes())), ["200"]);
    target.unharmed();
}

#[test]
fn odd_requests_get_one_answer_or_none() {
    let target = Target::new();
    let (host, key) = (target.server.address.to_string(), &target.key);
    let auth = format!("authorization: Bearer {key}");
    for (request, expected) in [
        (format!("GET http://evil.example/v1/sessions HTTP/1.1\r\nhost: {host}\r\n{auth}\r\n\r\n"), "403"),
        (
            format!("GET http://evil.example/v1/sessions HTTP/1.1\r\nhost: evil.example\r\n{auth}\r\n\r\n"),
            "403",
        ),
        (format!("GET /v1/sessions HTTP/1.1\r\nhost: {host}\r\nhost: evil.example\r\n{auth}\r\n\r\n"), "400"),
        (format!("GET /v1/sessions HTTP/1.1\r\n{auth}\r\n\r\n"), "400"),
        (format!("CONNECT evil.example:443 HTTP/1.1\r\nhost: {host}\r\n{auth}\r\n\r\n"), "40"),
        (format!("OPTIONS * HTTP/1.1\r\nhost: {host}\r\n{auth}\r\n\r\n"), "40"),
        (format!("TRACE /v1/sessions HTTP/1.1\r\nhost: {host}\r\n{auth}\r\n\r\n"), "405"),
        (format!("GET /v1/sessions HTTP/9.9\r\nhost: {host}\r\n{auth}\r\n\r\n"), ""),
        (format!("GET /v1/sessions\r\nhost: {host}\r\n{auth}\r\n\r\n"), ""),
        ("GET /v1/sessions\r\n".to_owned(), ""),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), ""),
        (format!("GET /v1/sessions/\u{0} HTTP/1.1\r\nhost: {host}\r\n{auth}\r\n\r\n"), "400"),
        (format!("GET /v1/sessions/é HTTP/1.1\r\nhost: {host}\r\n\r\n"), "40"),
        (format!("GET /v1/sessions HTTP/1.1\nhost: {host}\n\n"), "401"),
        (format!("G\u{0}T /v1/sessions HTTP/1.1\r\nhost: {host}\r\n{auth}\r\n\r\n"), "400"),
    ] {
        let answers = target.raw(request.as_bytes());
        let found = statuses(&answers);
        assert!(found.len() <= 1 && found.iter().all(|status| *status != "200"), "{request}: {answers}");
        assert!(found.first().copied().unwrap_or_default().starts_with(expected), "{request}: {answers}");
        tells_nothing(&answers, key);
    }
    let mut many = format!("GET /v1/sessions HTTP/1.1\r\nhost: {host}\r\n{auth}\r\n");
    for n in 0..10_000 {
        let _ = write!(many, "x-{n}: y\r\n");
    }
    let answers = target.raw(format!("{many}\r\n").as_bytes());
    assert!(answers.is_empty() || answers.starts_with("HTTP/1.1 431 "), "{answers}");
    let long = format!("GET /v1/sessions HTTP/1.1\r\nhost: {host}\r\nx: {}\r\n\r\n", "y".repeat(2 << 20));
    assert!(!target.raw(long.as_bytes()).contains("HTTP/1.1 200"));
    target.unharmed();
}

/// Requests behind one that is refused are answered on their own.
#[test]
fn what_follows_an_error_is_a_request_of_its_own() {
    let target = Target::new();
    let host = target.server.address.to_string();
    let plain = format!("GET /v1/sessions/victim HTTP/1.1\r\nhost: {host}\r\n");
    let with_key = format!("{plain}authorization: Bearer {}\r\n\r\n", target.key);
    let (refused, wrong) = (format!("{plain}\r\n"), format!("{plain}origin: null\r\n\r\n"));
    let answers = target.raw(format!("{refused}{with_key}{wrong}{refused}{with_key}").as_bytes());
    assert_eq!(statuses(&answers), ["401", "200", "403", "401", "200"], "{answers}");
    assert_eq!(answers.matches("\"session\":\"victim\"").count(), 2);
    // A key isn't remembered for the connection.
    assert_eq!(statuses(&target.raw(format!("{with_key}{refused}").as_bytes())), ["200", "401"]);
    // After bytes that aren't a request, nothing is.
    let answers = target.raw(format!("\u{1}\u{2} nonsense\r\n\r\n{with_key}").as_bytes());
    assert!(statuses(&answers).iter().all(|status| *status == "400"), "{answers}");
    target.unharmed();
}

#[test]
fn huge_bodies_are_not_kept() {
    let target = Target::new();
    let gigabyte = 1 << 30;
    for (mut client, expected) in [(target.client(), 413), (target.server.client(), 401)] {
        let head = client.head("POST", "/v1/steps", gigabyte, &[]);
        client.write(head.as_bytes()).unwrap();
        assert_eq!(client.read().unwrap().status, expected, "before any of it is sent");
    }
    let piece = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20));
    for (key, most) in [(format!("authorization: Bearer {}\r\n", target.key), 128), (String::new(), 64)] {
        let mut client = target.server.client();
        let host = target.server.address;
        let head =
            format!("POST /v1/steps HTTP/1.1\r\nhost: {host}\r\n{key}transfer-encoding: chunked\r\n\r\n");
        client.write(head.as_bytes()).unwrap();
        let sent = (0..1_024).take_while(|_| client.write(piece.as_bytes()).is_ok()).count();
        assert!(sent < most, "{sent} MiB were taken");
    }
    let gzip = [("content-encoding", "gzip")];
    let answer = target.client().send("POST", "/v1/steps", &gzip, b"\x1f\x8b\x08\0\0\0\0\0").unwrap();
    assert_eq!(answer.status, 415);
    let answer = target.client().send("POST", "/v1/steps", &[], b"\x1f\x8b\x08\0\0\0\0\0").unwrap();
    assert_eq!(answer.status, 400);
    #[cfg(target_os = "linux")]
    assert!(target.server.peak_memory() < 400, "{} MiB", target.server.peak_memory());
    target.unharmed();
}

/// Clients that ask for much and read nothing, and clients that send half a request, keep nobody waiting.
#[test]
fn slow_clients_wait_alone() {
    let target = Target::new();
    let names: Vec<Value> = (0..2_000)
        .map(|n| json!({"type": "turn", "session": format!("{n:04}{}", "x".repeat(200)), "text": "a"}))
        .collect();
    assert_eq!(target.client().post("/v1/steps", &Value::from(names).to_string()).status, 200);
    let mut unread = Vec::new();
    for _ in 0..50 {
        let mut client = target.client();
        let head = client.head("GET", "/v1/sessions?limit=1000", 0, &[]).repeat(20);
        client.write(head.as_bytes()).unwrap();
        unread.push(client);
    }
    for _ in 0..50 {
        let mut client = target.server.client();
        client.write(b"POST /v1/steps HTTP/1.1\r\nhost: 127").unwrap();
        unread.push(client);
    }
    for _ in 0..20 {
        let answer = target.client().get("/v1/sessions/victim");
        assert_eq!(answer.status, 200);
    }
    drop(unread);
    target.unharmed();
}

#[test]
fn secrets_stay_out_of_the_log() {
    let target = Target::new();
    let path = format!("/v1/sessions/{}?token={}", target.key, target.key);
    target.client().get(&path);
    target.client().post("/v1/steps", &format!("{{\"type\":\"{}\",\"text\":\"{MARK}\"", target.key));
    // Damages the key file, so that the server has something to log.
    std::fs::write(target.home().join(".local/state/deloop/keys.json"), format!("{{{}{MARK}", target.key))
        .unwrap();
    target.clock.advance(Duration::from_secs(1));
    wait_for("the server refuses requests", || target.client().get("/v1/sessions").status == 503);
    target.server.signal("TERM");
    let (_, said) = target.server.wait();
    assert!(
        said.contains("keys.json") && !said.contains(MARK) && !said.contains(&target.key[17..]),
        "{said}"
    );
}
