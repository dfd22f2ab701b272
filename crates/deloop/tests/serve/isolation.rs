//! Projects: what belongs to another looks exactly like what doesn't exist.

use serde_json::json;

use super::client::{HttpAnswer, Server, add_key};

/// Every route that names something: method, path, and whether it names a session or a swarm.
const NAMED: [(&str, &str, &str); 7] = [
    ("GET", "/v1/sessions/NAME", "victim"),
    ("GET", "/v1/sessions/NAME/checkpoint", "victim"),
    ("GET", "/v1/swarms/NAME", "herd"),
    ("POST", "/v1/sessions/NAME/reset", "victim"),
    ("DELETE", "/v1/swarms/NAME", "herd"),
    ("POST", "/v1/sessions/NAME/end", "victim"),
    ("PUT", "/v1/sessions/NAME/checkpoint", "victim"),
];

#[test]
fn what_belongs_to_others_does_not_exist() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let [a, b] = ["a", "b"].map(|name| add_key(home, &[name, "--scope", "admin", "--project", name]));
    let server = Server::start(home, &["--profile", "doom-loop"]);
    let (mut owner, mut other) = (server.client_with(&a), server.client_with(&b));
    let call = |session: &str| json!({"type": "call", "session": session, "swarm": "herd", "tool": "bash", "args": {"command": "ls"}});
    owner.step(&call("victim"));
    let before = owner.get("/v1/sessions/victim").json();
    let checkpoint = owner.get("/v1/sessions/victim/checkpoint").text();
    let swarm = owner.get("/v1/swarms/herd").json();

    assert_eq!(other.get("/v1/sessions").json(), json!({"sessions": [], "next": null}));
    assert_eq!(other.get("/v1/swarms").json(), json!({"swarms": []}));
    for (method, path, name) in NAMED {
        let mut ask = |name: &str| -> (HttpAnswer, String) {
            let body = if method == "PUT" { checkpoint.as_bytes() } else { b"" };
            let answer = other.send(method, &path.replace("NAME", name), &[], body).unwrap();
            // Both names have the same length, so that the lengths of the answers agree.
            let text = answer.text().replace(&format!("\"{name}\""), "\"NAME\"");
            (answer, text)
        };
        let unknown = "n".repeat(name.len());
        let ((foreign, foreign_text), (nothing, nothing_text)) = (ask(name), ask(&unknown));
        assert_eq!(foreign_text, nothing_text, "{method} {path}");
        let (foreign, nothing) = (foreign.whole(), nothing.whole());
        assert_eq!((foreign.0, foreign.1), (nothing.0, nothing.1), "{method} {path}");
    }
    // The same names in another project are other sessions and another swarm.
    other.step(&call("second"));
    other.step(&call("victim"));
    assert_eq!(owner.get("/v1/sessions/victim").json(), before);
    assert_eq!(owner.get("/v1/swarms/herd").json(), swarm);
    assert_eq!(owner.get("/v1/sessions").json()["sessions"], json!(["victim"]));
}
