//! The OpenAPI document says what the server does. `cargo xtask openapi-test` compares them with many more requests.

use serde_json::{Value, json};

use super::client::{Client, Server, add_key};
use crate::binary::{deloop, run};

const METHODS: [&str; 5] = ["get", "post", "put", "delete", "patch"];
const SCOPES: [&str; 5] = ["ingest", "attend", "read", "operate", "admin"];

/// Every path and method, and its description if it has one.
fn operations(document: &Value) -> Vec<(String, &'static str, Option<Value>)> {
    let paths = document["paths"].as_object().unwrap();
    let each = |path: &String, described: &Value| {
        let path = path.replace("{session}", "s1").replace("{swarm}", "nightly");
        let described = described.clone();
        METHODS.map(|method| (path.clone(), method, described.get(method).cloned()))
    };
    paths.iter().flat_map(|(path, described)| each(path, described)).collect()
}

fn send(client: &mut Client, method: &str, path: &str) -> u16 {
    // Without the header, the stream of events wouldn't end.
    let headers = [("last-event-id", "nonsense")];
    client.send(&method.to_ascii_uppercase(), path, &headers, b"").unwrap().status
}

#[test]
fn the_server_has_exactly_the_operations_of_its_document() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    let served = client.get("/v1/openapi.json").json();
    let printed = run(deloop(home.path()).args(["schema", "openapi"]), b"").stdout;
    assert_eq!(served, serde_json::from_slice::<Value>(&printed).unwrap());
    let all = operations(&served);
    assert!(all.iter().filter(|(.., described)| described.is_some()).count() >= 17);
    for (path, method, described) in all {
        let status = send(&mut client, method, &path);
        match described {
            None => assert_eq!(status, 405, "{method} {path}"),
            Some(described) => {
                assert_ne!(status, 405, "{method} {path}");
                assert!(described["responses"][status.to_string()].is_object(), "{method} {path}: {status}");
            }
        }
    }
}

#[test]
fn a_request_needs_the_scope_that_the_document_names() {
    let home = tempfile::tempdir().unwrap();
    let keys =
        SCOPES.map(|scope| (scope, add_key(home.path(), &[scope, "--scope", scope, "--all-projects"])));
    let server = Server::start(home.path(), &[]);
    let mut reader = server.client_with(&keys[2].1);
    let document = reader.get("/v1/openapi.json").json();
    for (scope, key) in &keys {
        let (mut client, mut nobody) = (server.client_with(key), server.client());
        for (path, method, described) in operations(&document) {
            let Some(described) = described else { continue };
            let needed = described["security"].as_array().unwrap().first().map(|needed| &needed["key"][0]);
            // Any key will do if the list is empty.
            let is_other = |needed: &Value| !needed.is_null() && needed != *scope;
            let refused = needed.is_some_and(|needed| is_other(needed) && *scope != "admin");
            assert_eq!(send(&mut client, method, &path) == 403, refused, "{method} {path} with {scope}");
            if *scope == "ingest" {
                let expected = needed.is_some();
                assert_eq!(
                    send(&mut nobody, method, &path) == 401,
                    expected,
                    "{method} {path} without a key"
                );
            }
        }
    }
}

/// The names of all fields, those of the first item of a list included.
fn fields(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(name, value)| {
                std::iter::once(name.clone())
                    .chain(fields(value).into_iter().map(move |f| format!("{name}.{f}")))
            })
            .collect(),
        Value::Array(items) => items.first().map(fields).unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[test]
fn examples_look_like_real_answers() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    let document = client.get("/v1/openapi.json").json();
    let example = |path: &str, method: &str| {
        let content = &document["paths"][path][method]["responses"]["200"]["content"]["application/json"];
        content["examples"]["example"]["value"].clone()
    };
    let checkpoint = example("/v1/sessions/{session}/checkpoint", "get");
    let path = "/v1/sessions/example/checkpoint";
    let restored = client.send("PUT", path, &[], checkpoint.to_string().as_bytes()).unwrap();
    assert_eq!(restored.status, 200, "{restored:?}");
    assert_eq!(client.get(path).json(), checkpoint);

    for id in 0..3 {
        let (call, result) = (json!({"command": "npm test"}), json!({"exit": 1}));
        let swarm = "nightly";
        client.step(
            &json!({"type": "call", "session": "s1", "swarm": swarm, "id": id, "tool": "bash", "args": call}),
        );
        client.step(&json!({"type": "result", "session": "s1", "id": id, "ok": false, "output": result}));
    }
    let session = client.get("/v1/sessions/s1").json();
    assert_eq!(fields(&session), fields(&example("/v1/sessions/{session}", "get")), "{session}");
    let swarm = client.get("/v1/swarms/nightly").json();
    assert_eq!(fields(&swarm), fields(&example("/v1/swarms/{swarm}", "get")), "{swarm}");
}

/// serde would read a list as the fields of an object in their order, and the document says nothing of lists.
#[test]
fn a_list_is_no_message_and_no_checkpoint() {
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(home.path(), &[]);
    let mut client = server.client();
    client.step(&json!({"type": "turn", "session": "s1", "text": "Let me look."}));
    let path = "/v1/sessions/s1/message";
    assert_eq!(client.post(path, r#"["Use the staging database."]"#).status, 400);
    // The document counts characters, so the server does.
    for (length, status) in [(8_000, 200), (8_001, 400)] {
        let text = json!({"text": "é".repeat(length)}).to_string();
        assert_eq!(client.post(path, &text).status, status, "{length}");
    }
    let list = br#"[2, 0, {"steps": 0, "tokens": 0, "usd": 0.0}, null, null, [], []]"#;
    let answer = client.send("PUT", "/v1/sessions/s1/checkpoint", &[], list).unwrap();
    assert!(answer.status == 400 && answer.error().contains("isn't a JSON object"), "{answer:?}");
}
