//! Hooks that report to a server with keys, over TLS, or whose store is away.

use serde_json::json;

use super::client::{Server, add_key};
use super::fake_server::{FakeServer, answer, decisions};
use super::hook::{Guarded, PATIENT, TOLD};
use super::tls;

/// Commands that ask the server for people, and what they print.
const PEOPLE: [(&[&str], &str); 3] = [
    (&["report", "--daily"], "(UTC)"),
    (&["report", "--weekly"], "week"),
    (&["budget", "show"], "Budgets on"),
];

/// An agent whose user configured this server, with a key in a file.
fn reporting(url: &str, key: &str, more: &str) -> Guarded {
    let settings =
        format!("profile = \"doom-loop\"\n{PATIENT}url = \"{url}\"\nkey_file = \"~/server.key\"\n{more}");
    let agent = Guarded::new(&[]).configured(&settings);
    std::fs::write(agent.home.path().join("server.key"), format!("{key}\n")).unwrap();
    agent
}

fn certificate(name: &str) -> String {
    tls::certificate(name).to_str().unwrap().to_owned()
}

/// Makes the call that the server's profile finds repeated at the third time.
fn repeat(agent: &mut Guarded) -> Vec<(bool, bool)> {
    (0..3).map(|_| agent.fail()).collect()
}

#[test]
fn a_key_in_a_file_lets_the_hook_report_to_its_project() {
    let home = tempfile::tempdir().unwrap();
    let key = add_key(home.path(), &["ci", "--scope", "ingest", "--project", "web"]);
    let reader = add_key(home.path(), &["grafana", "--scope", "read", "--all-projects"]);
    let server = Server::start(home.path(), &["--profile", "doom-loop"]);
    let url = format!("http://{}", server.address);
    let mut agent = reporting(&url, &key, "");
    assert_eq!(repeat(&mut agent), TOLD[..3]);
    let mut client = server.client_with(&reader);
    assert_eq!(client.get("/v1/sessions?project=web").json()["sessions"], json!(["s1"]));
    assert_eq!(client.get("/v1/sessions").json()["sessions"], json!([]), "of the project default");
    assert_eq!(agent.count("SELECT count(*) FROM sessions"), 0, "the engine here has no history");
    assert_eq!(agent.log(), "");
    let (_, said) = agent.command(&["doctor"]);
    assert!(said.contains(&format!("ok    server: {url} decides (deloop ")), "{said}");
    assert!(
        said.contains("note  server: key ci: ingest (project web); nothing sent from here lifts a stop"),
        "{said}"
    );
    assert!(said.contains("`ingest,attend`"), "{said}");
}

#[test]
fn installing_hooks_for_a_server_shows_what_the_key_allows() {
    let home = tempfile::tempdir().unwrap();
    let key = add_key(home.path(), &["alice", "--scope", "ingest,attend", "--group", "people"]);
    let server = Server::start(home.path(), &["--profile", "doom-loop"]);
    let url = format!("http://{}", server.address);
    let agent = reporting(&url, &key, "");
    let (code, said) = agent.command(&["install", "claude-code", "--server", &url]);
    let expected = format!(
        "Server {url}: key alice: ingest, attend (project default, group people); what a person writes here lifts a stop"
    );
    assert!(code == Some(0) && said.contains(&expected), "{said}");
    drop(server);
    let (code, said) = agent.command(&["install", "claude-code", "--server", &url, "--mode", "enforce"]);
    assert!(code == Some(0) && said.contains("Until it works, deloop decides on this machine"), "{said}");
}

/// What one agent reports isn't mixed with the session of another. The agent is guarded all the same.
#[test]
fn a_hook_whose_session_belongs_to_another_key_is_decided_here() {
    let home = tempfile::tempdir().unwrap();
    let [owner, other] = ["owner", "other"].map(|name| add_key(home.path(), &[name, "--scope", "ingest"]));
    let server = Server::start(home.path(), &["--profile", "turn-hash"]);
    server.client_with(&owner).step(&json!({"type": "turn", "session": "s1", "text": "Hello."}));
    let mut agent = reporting(&format!("http://{}", server.address), &other, "");
    assert_eq!(repeat(&mut agent), TOLD[..3], "by the profile of this machine");
    let log = agent.log();
    assert!(log.contains("belongs to another key") && log.contains("--group GROUP"), "{log}");
}

#[test]
fn a_key_that_is_refused_leaves_the_decision_here_and_doctor_says_why() {
    let home = tempfile::tempdir().unwrap();
    let reader = add_key(home.path(), &["grafana", "--scope", "read"]);
    let web = add_key(home.path(), &["web", "--scope", "ingest", "--project", "web"]);
    let server = Server::start(home.path(), &["--profile", "turn-hash"]);
    let url = format!("http://{}", server.address);
    let unknown = "status 401: it doesn't accept your key, which is unknown, expired or revoked";
    for (key, more, why, reported) in [
        (reader.as_str(), "", "status 403: this request needs a key with the scope `ingest`", "(UTC)"),
        (web.as_str(), "project = \"shop\"\n", "status 403: this key is for another project", "scope `read`"),
        ("dlp_nobody", "", unknown, "401 it doesn't accept your key"),
    ] {
        let mut agent = reporting(&url, key, more);
        assert_eq!(repeat(&mut agent), TOLD[..3], "by the profile of this machine");
        let log = agent.log();
        assert!(log.contains(why) && log.contains("decided on this machine"), "{log}");
        let (code, said) = agent.command(&["doctor"]);
        assert!(code == Some(1) && said.contains("WRONG server:") && said.contains(why), "{said}");
        assert!(said.contains("deloop decides on this machine"), "{said}");
        let (_, report) = agent.command(&["report", "--daily"]);
        assert!(report.contains(reported), "{report}");
        for text in [&log, &said, &report] {
            assert!(!text.contains(key), "the key isn't shown: {text}");
        }
    }
    assert_eq!(server.client_with(&reader).get("/v1/sessions").json()["sessions"], json!([]));
}

#[test]
fn a_hook_trusts_the_certificates_of_the_configuration_and_no_others() {
    let home = tempfile::tempdir().unwrap();
    let key = add_key(home.path(), &["ci", "--scope", "ingest,operate,read"]);
    let (pem, secret) = (certificate("one.pem"), certificate("one.key"));
    let arguments = ["--profile", "doom-loop", "--tls-cert", &pem, "--tls-key", &secret];
    let server = Server::start(home.path(), &arguments);
    let url = format!("https://localhost:{}", server.address.port());
    let trusted = format!("ca_file = \"{}\"\n", certificate("authority.pem"));
    let mut agent = reporting(&url, &key, &trusted);
    agent.has_proxy = false;
    assert_eq!((repeat(&mut agent), agent.log()), (TOLD[..3].to_vec(), String::new()));
    assert_eq!(agent.count("SELECT count(*) FROM sessions"), 0, "the server decided");
    let (_, said) = agent.command(&["doctor"]);
    assert!(said.contains(&format!("ok    server: {url} decides (deloop ")), "{said}");
    let (code, said) = agent.command(&["say", "s1", "Hello."]);
    assert!(code == Some(0) && said.starts_with("Sent."), "{said}");
    for (arguments, heading) in PEOPLE {
        let (code, said) = agent.command(arguments);
        assert!(code == Some(0) && said.contains(heading), "{arguments:?}: {said}");
    }

    // Neither the public authorities nor another certificate vouch for it.
    let other = format!("ca_file = \"{}\"\n", certificate("two.pem"));
    for more in ["", &other] {
        let mut agent = reporting(&url, &key, more);
        agent.has_proxy = false;
        assert_eq!(repeat(&mut agent), TOLD[..3], "decided here");
        assert!(agent.count("SELECT count(*) FROM sessions") > 0);
        let log = agent.log();
        assert!(log.contains("certificate") && log.contains("decided on this machine"), "{log}");
        let (code, said) = agent.command(&["say", "s1", "Hello."]);
        assert!(code == Some(2) && said.contains("certificate"), "{said}");
        for (arguments, _) in PEOPLE {
            let (code, said) = agent.command(arguments);
            assert!(code == Some(2) && said.contains("certificate"), "{arguments:?}: {said}");
        }
    }
}

/// The server answers `continue` for everything while its store is away. This machine can do better.
#[test]
fn an_answer_without_a_store_is_decided_here() {
    let server = FakeServer::start(Box::new(|_, steps| {
        let sent = String::from_utf8(decisions(steps, &json!({}))).unwrap();
        let (_, body) = sent.split_once("\r\n\r\n").unwrap();
        answer("200 OK", "deloop-failed-open: 1\r\n", body.as_bytes())
    }));
    let mut agent = Guarded::new(&["--profile", "doom-loop", "--server", &server.url]);
    assert_eq!(repeat(&mut agent), TOLD[..3], "decided here");
    assert_eq!(server.requests(), 1, "it isn't asked again for a while");
    let log = agent.log();
    assert!(log.contains("its store is away; decided on this machine"), "{log}");
    let (_, said) = agent.command(&["status"]);
    assert!(said.contains("events were decided on this machine"), "{said}");
}
