//! The tables of SECURITY.md say who may do what. A server is asked about every request and every step.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::client::{Client, Server, add_key};
use super::ownership::steps;
use super::stops::{next, stop, turn};

const SECURITY: &str = include_str!("../../../../SECURITY.md");

/// The rows of the table whose first column has this name: the cells by the names of their columns.
fn table(first: &str) -> BTreeMap<String, BTreeMap<&'static str, &'static str>> {
    let cells = |line: &'static str| -> Vec<&'static str> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect()
    };
    let mut lines = SECURITY.lines().skip_while(|line| !line.starts_with(&format!("| {first} |")));
    let columns = cells(lines.next().unwrap_or_else(|| panic!("SECURITY.md has no table of `{first}`")));
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells);
    rows.map(|row| (row[0].to_owned(), columns.iter().copied().zip(row).skip(1).collect())).collect()
}

/// Every request of the OpenAPI document: its row, its method and its path.
fn requests(document: &Value) -> Vec<(String, String, String)> {
    let paths = document["paths"].as_object().unwrap();
    let each = |(path, operations): (&String, &Value)| {
        let methods: Vec<String> = operations.as_object().unwrap().keys().map(|m| m.to_uppercase()).collect();
        let real = path.replace("{session}", "s1").replace("{swarm}", "w1").replace("{id}", "o1");
        let row = |method: String| (format!("{method} {path}"), method, real.clone());
        methods.into_iter().map(row).collect::<Vec<_>>()
    };
    paths.iter().flat_map(each).collect()
}

fn status(client: &mut Client, method: &str, path: &str) -> u16 {
    // Without the header, the stream of events wouldn't end.
    client.send(method, path, &[("last-event-id", "nonsense")], b"").unwrap().status
}

#[test]
fn every_request_answers_whom_the_table_says() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let scopes = ["ingest", "attend", "read", "operate", "admin"];
    let all = scopes.map(|scope| add_key(home, &[scope, "--scope", scope, "--all-projects"]));
    let web =
        scopes.map(|scope| add_key(home, &[&format!("web-{scope}"), "--scope", scope, "--project", "web"]));
    let server = Server::start(home, &[]);
    let document = server.client_with(&all[2]).get("/v1/openapi.json").json();
    let (requests, mut table) = (requests(&document), table("request"));
    for (row, method, path) in &requests {
        let expected = table.remove(row).unwrap_or_else(|| panic!("SECURITY.md says nothing of `{row}`"));
        let found = status(&mut server.client(), method, path);
        assert_eq!(
            if found == 401 { "no" } else { "yes" },
            expected["no key"],
            "{row} without a key: {found}"
        );
        for ((scope, key), own) in scopes.iter().zip(&all).zip(&web) {
            let found = status(&mut server.client_with(key), method, path);
            let says = if found == 403 { "no" } else { "yes" };
            assert_eq!(says, expected[scope], "{row} with `{scope}`: {found}");
            assert_ne!(found, 401, "{row} with `{scope}`");
            let foreign = status(&mut server.client_with(own), method, &format!("{path}?project=other"));
            assert_eq!(foreign == 403, row != "GET /healthz", "{row} of another project, with `{scope}`");
        }
    }
    assert!(table.is_empty(), "the server has no such request: {:?}", table.keys());
}

/// The name of a step in the table.
fn name(step: &Value) -> String {
    let text = |key: &str| step[key].as_str();
    let kind = text("type").unwrap();
    if kind == "user" { format!("{kind} {}", text("origin").unwrap_or("human")) } else { kind.to_owned() }
}

/// All types of steps that the OpenAPI document names.
fn kinds(document: &Value) -> Vec<String> {
    let forms = document["components"]["schemas"]["Step"]["anyOf"].as_array().unwrap();
    let of_form = |form: &Value| {
        let kind = &form["properties"]["type"];
        let listed = kind["enum"].as_array().cloned().unwrap_or_default();
        listed.into_iter().chain(kind.get("const").cloned()).collect::<Vec<_>>()
    };
    forms.iter().flat_map(of_form).map(|kind| kind.as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_step_does_to_a_stop_what_the_table_says() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let scopes = ["ingest", "ingest,attend", "admin"];
    let keys = [("ci", 0), ("alice", 1), ("root", 2)]
        .map(|(name, at)| add_key(home, &[name, "--scope", scopes[at]]));
    let other = add_key(home, &["other", "--scope", "ingest,attend,read,operate"]);
    let server = Server::start(home, &[]);
    let document = server.client_with(&other).get("/v1/openapi.json").json();
    let mut table = table("step");
    let kinds = kinds(&document);
    let tried = steps("s1");
    for kind in &kinds {
        assert!(tried.iter().any(|step| step["type"] == **kind), "no step of type `{kind}` is tried");
    }
    for step in tried {
        let name = name(&step);
        let expected = table.remove(&name).unwrap_or_else(|| panic!("SECURITY.md says nothing of `{name}`"));
        for (scope, key) in scopes.iter().zip(&keys) {
            let session = format!("{name}-{scope}");
            let mut client = server.client_with(key);
            stop(&mut client, &session, None);
            let mut step = step.clone();
            step["session"] = json!(session);
            let refused = server.client_with(&other).post("/v1/steps", &step.to_string());
            let says = if refused.status == 403 { "refused" } else { "accepted" };
            assert_eq!(says, expected["session of another key"], "{name}: {refused:?}");
            assert_eq!(client.post("/v1/steps", &step.to_string()).status, 200, "{name} with `{scope}`");
            let says = if next(&mut client, &session) == "stop" { "stays" } else { "lifts" };
            assert_eq!(says, expected[scope], "{name} with `{scope}`");
        }
    }
    assert!(table.is_empty(), "there are no such steps: {:?}", table.keys());
}

/// Keys of these scopes can't send steps at all.
#[test]
fn a_key_needs_ingest_to_send_steps() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let key = add_key(home, &["hook", "--scope", "attend,read,operate"]);
    let server = Server::start(home, &[]);
    let refused = server.client_with(&key).post("/v1/steps", &turn("s1").to_string());
    assert!(refused.status == 403 && refused.error().contains("the scope `ingest`"), "{refused:?}");
}

#[test]
fn a_key_can_ask_what_it_is() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let server = Server::start(home, &["--state", home.join("open").to_str().unwrap()]);
    let own = server.client().get("/v1/key").json();
    assert_eq!(
        (&own["name"], &own["group"], &own["lifts_stops"]),
        (&json!("local"), &Value::Null, &json!(true))
    );
    drop(server);
    let ci = add_key(home, &["ci", "--scope", "ingest", "--project", "web"]);
    let alice = add_key(home, &["alice", "--scope", "attend,ingest", "--all-projects", "--group", "people"]);
    let server = Server::start(home, &[]);
    assert_eq!(
        server.client_with(&ci).get("/v1/key").json(),
        json!({"name": "ci", "project": "web", "group": "ci", "scopes": ["ingest"], "lifts_stops": false})
    );
    assert_eq!(
        server.client_with(&alice).get("/v1/key").json(),
        json!({"name": "alice", "project": null, "group": "people", "scopes": ["ingest", "attend"], "lifts_stops": true})
    );
    assert_eq!(server.client().get("/v1/key").status, 401);
}
