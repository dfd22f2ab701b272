//! `deloop say`: an operator writes to an agent through a server.

use serde_json::{Value, json};

use super::client::{Server, add_key};
use super::fake_server::{FakeServer, answer};
use super::hook::Guarded;
use crate::binary::{deloop, lines, run, said};

const TEXT: &str = "Use the staging database.";

/// Somebody with a configuration and a key of their own.
struct Operator {
    home: tempfile::TempDir,
}

impl Operator {
    fn new(server: &Server, key: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let settings = format!("[server]\nurl = \"http://{}\"\nkey_file = \"~/key\"\n", server.address);
        super::access::configure(home.path(), &settings);
        std::fs::write(home.path().join("key"), key).unwrap();
        Self { home }
    }

    /// Returns the exit code, and what was printed.
    fn say_with(&self, arguments: &[&str], input: &[u8]) -> (Option<i32>, String) {
        let output = run(deloop(self.home.path()).arg("say").args(arguments), input);
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output))
    }

    fn say(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.say_with(arguments, b"")
    }
}

fn turn(session: &str) -> Value {
    json!({"type": "turn", "session": session, "text": "Let me look."})
}

#[test]
fn an_agent_reads_what_an_operator_says_once_and_the_audit_log_names_the_operator() {
    let home = tempfile::tempdir().unwrap();
    let ci = add_key(home.path(), &["ci", "--scope", "ingest", "--project", "web"]);
    let alice = add_key(home.path(), &["alice", "--scope", "operate", "--project", "web"]);
    let server = Server::start(home.path(), &[]);
    let settings = format!("[server]\nurl = \"http://{}\"\nkey_file = \"~/key\"\n", server.address);
    let agent = Guarded::new(&[]).configured(&settings);
    std::fs::write(agent.home.path().join("key"), ci).unwrap();
    assert_eq!(agent.event("PreToolUse", &json!({})), Value::Null);

    let operator = Operator::new(&server, &alice);
    let (code, printed) = operator.say(&["s1", TEXT]);
    assert_eq!(
        (code, printed.as_str()),
        (Some(0), "Sent. The agent of session s1 gets the message with its next step.\n")
    );
    let told = agent.event("PostToolUse", &json!({"tool_response": {"stdout": "ok"}}));
    let context = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap_or_default();
    assert_eq!(context, format!("[deloop] Message from the operator: {TEXT}"), "{told}");
    assert_eq!(agent.event("PreToolUse", &json!({"tool_use_id": "c9"})), Value::Null, "it is given once");

    let audit = |arguments: &[&str]| run(deloop(home.path()).arg("audit").args(arguments), b"");
    assert_eq!(audit(&["verify"]).status.code(), Some(0));
    let records = lines(&audit(&["query", "--action", "session.message", "--json"]).stdout);
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(
        (&record["actor"], &record["session"], &record["project"]),
        (&json!("alice"), &json!("s1"), &json!("web"))
    );
    let delivered = lines(&audit(&["query", "--action", "nudge", "--json"]).stdout);
    assert_eq!(delivered.len(), 1, "{delivered:?}");
}

#[test]
fn a_message_can_come_from_stdin_and_names_its_project() {
    let home = tempfile::tempdir().unwrap();
    let key = add_key(home.path(), &["alice", "--scope", "ingest,operate", "--all-projects"]);
    let server = Server::start(home.path(), &[]);
    let mut client = server.client_with(&key);
    let operator = Operator::new(&server, &key);
    for session in ["a/b", "..", "näme ?#%"] {
        client.post("/v1/steps?project=web", &turn(session).to_string());
        let (code, printed) = operator.say(&[session, TEXT]);
        assert!(code == Some(2) && printed.contains(&format!("no session `{session}`")), "{printed}");
        let (code, printed) =
            operator.say_with(&[session, "-", "--project", "web", "--json"], b"First line.\nSecond line.\n");
        assert_eq!(code, Some(0), "{printed}");
        let server = format!("http://{}", server.address);
        assert_eq!(
            serde_json::from_str::<Value>(&printed).unwrap(),
            json!({"session": session, "queued": true, "server": server})
        );
        let decision = client.post("/v1/steps?project=web", &turn(session).to_string()).json();
        let message = decision["message"].as_str().unwrap_or_default();
        assert!(message.ends_with("operator: First line.\nSecond line."), "{decision}");
    }
    for (input, why) in [
        (&b" \n"[..], "`text` must have 1 to "),
        (&[b'x'; 9_000][..], "`text` must have 1 to "),
        (b"\xff\xfe", "UTF-8"),
    ] {
        let (code, printed) = operator.say_with(&["..", "-", "--project", "web"], input);
        assert!(code == Some(2) && printed.contains(why), "{printed}");
    }
}

#[test]
fn whatever_keeps_a_message_from_being_sent_is_named_with_its_fix() {
    let home = tempfile::tempdir().unwrap();
    let ci = add_key(home.path(), &["ci", "--scope", "ingest"]);
    let web = add_key(home.path(), &["web", "--scope", "operate", "--project", "web"]);
    let server = Server::start(home.path(), &[]);
    server.client_with(&ci).step(&turn("s1"));
    let url = format!("http://{}", server.address);
    let nobody = Operator { home: tempfile::tempdir().unwrap() };
    let told = |operator: &Operator, arguments: &[&str], why: &str| {
        let (code, printed) = operator.say(&[&["s1", TEXT], arguments].concat());
        assert!(code == Some(2) && printed.contains(why), "{why}: {printed}");
        assert!(!printed.contains(&ci) && !printed.contains(&web), "{printed}");
    };
    told(&nobody, &[], "name one with `--server URL`");
    told(&nobody, &["--server", &url], "set `key_file` under `[server]`");
    told(&nobody, &["--server", "http://example.com"], "Use https");
    told(&nobody, &["--server", "http://127.0.0.1:1"], "http://127.0.0.1:1 didn't answer");
    told(&Operator::new(&server, &ci), &[], "`deloop keys add NAME --scope operate` creates one");
    told(&Operator::new(&server, "dlp_unknown"), &[], "unknown, expired or revoked");
    let foreign = Operator::new(&server, &web);
    told(&foreign, &[], "there is no session `s1`");
    told(&foreign, &["--project", "default"], "this key is for another project");
    let off = run(deloop(foreign.home.path()).env("DELOOP_SERVER", "off").args(["say", "s1", TEXT]), b"");
    assert!(off.status.code() == Some(2) && said(&off).contains("DELOOP_SERVER=off"), "{}", said(&off));

    let other = FakeServer::always(answer("200 OK", "", b"<html>\x1b[31mhello</html>"));
    told(&foreign, &["--server", &other.url], "this isn't a deloop server");
    assert!(
        !other.received.lock().unwrap()[0].0.contains(&web),
        "a key is for the server it was configured with"
    );
    let missing = FakeServer::always(answer("404 Not Found", "", b""));
    told(&foreign, &["--server", &missing.url], "this isn't a deloop server");
    let (code, printed) = foreign.say(&["", TEXT]);
    assert!(code == Some(2) && printed.contains("SESSION"), "{printed}");
}
