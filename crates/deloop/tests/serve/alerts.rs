//! Alerts, sent by a real server to receivers that check what they get.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::alert_formats::{check_discord, check_slack, check_webhook, discord_field, python_accepts};
use super::binary::{deloop, run};
use super::client::{Client, Server};
use super::receiver::{AlertReceiver, AnswerFn};
use super::wait::wait_for;

pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const ACCEPT: AnswerFn = |_| Some(("200 OK", "ok"));

/// Writes a configuration with these routes.
pub(crate) fn config(home: &Path, routes: &str) -> String {
    let file = home.join("serve.toml");
    std::fs::write(&file, format!("profile = \"turn-similarity\"\n{routes}")).unwrap();
    file.to_str().unwrap().to_owned()
}

pub(crate) fn route(name: &str, sink: &str, url: &str, more: &str) -> String {
    format!(
        "[[serve.alerts]]\nname = \"{name}\"\nsink = \"{sink}\"\nurl = \"{url}\"\nallow_private = true\n{more}\n"
    )
}

fn start(home: &Path, routes: &str) -> Server {
    let mut command = deloop(home);
    command.env("ALERT_SECRET", SECRET);
    Server::start_with(command, &["--config", &config(home, routes)])
}

/// Sends turns that are all alike: the fourth leads to a warning, the sixth ends the session.
pub(crate) fn similar_turns(client: &mut Client, session: &str, turns: usize) -> Vec<Value> {
    let step = json!({"type": "turn", "session": session, "text": "check price and decide trade"});
    (0..turns).map(|_| client.step(&step)["action"].clone()).collect()
}

/// Returns a number of `/metrics`.
pub(crate) fn metric(client: &mut Client, name: &str) -> u64 {
    let text = client.get("/metrics").text();
    let row = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    row.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// Waits until the server has counted it.
pub(crate) fn wait_for_metric(client: &mut Client, name: &str, value: u64) {
    wait_for(&format!("{name} is {value}"), || metric(client, name) == value);
}

#[test]
fn discord_gets_one_alert_per_level_and_episode_with_the_sessions_details() {
    let home = tempfile::tempdir().unwrap();
    let receiver = AlertReceiver::start(|_| Some(("204 No Content", "")));
    let server = start(home.path(), &route("ops", "discord", &receiver.url("/api/webhooks/1/token"), ""));
    let mut client = server.client();
    let usage = json!({"type": "usage", "session": "trader-7", "input_tokens": 1000, "output_tokens": 20, "cost_usd": 0.27});
    client.step(&usage);
    let actions = similar_turns(&mut client, "trader-7", 9);
    assert_eq!(actions[3..6], [json!("warn"), json!("warn"), json!("stop")]);

    let warning = receiver.next();
    assert_eq!(warning.path, "/api/webhooks/1/token");
    let warning = check_discord(&warning);
    assert_eq!(warning["title"], "Loop warning\\: trader-7");
    let document = "Loop warning\\: 3 consecutive similar turns. VP will be notified.";
    assert_eq!(warning["description"], document);
    let stop = check_discord(&receiver.next());
    assert_eq!(stop["title"], "Session terminated\\: trader-7");
    assert!(
        stop["description"].as_str().unwrap().starts_with("Loop detected\\: 5 consecutive similar turns")
    );
    let expected = [
        ("project", "default"),
        ("session", "trader-7"),
        ("detector", "similar-turn"),
        ("count", "5"),
        ("steps", "7"),
        ("tokens", "1020"),
        ("cost", "$0.2700"),
    ];
    for (name, value) in expected {
        assert_eq!(discord_field(&stop, name), value, "{name}");
    }
    assert!(!discord_field(&stop, "server").is_empty());
    assert_ne!(warning["footer"], stop["footer"], "each has a key of its own");
    // A session that is reset and loops again is another episode. Its alert is the next one.
    assert_eq!(client.post("/v1/sessions/trader-7/reset", "").status, 200);
    similar_turns(&mut client, "trader-7", 4);
    let next = check_discord(&receiver.next());
    assert_eq!(next["title"], warning["title"]);
    assert!(next["footer"] != warning["footer"] && next["footer"] != stop["footer"], "{next}");
    wait_for_metric(&mut client, "deloop_alerts_sent_total{route=\"ops\"}", 3);
    assert_eq!(metric(&mut client, "deloop_alerts_backlog{route=\"ops\"}"), 0);
}

#[test]
fn slack_gets_blocks_without_markup_from_names() {
    let home = tempfile::tempdir().unwrap();
    let (all, critical) = (AlertReceiver::start(ACCEPT), AlertReceiver::start(ACCEPT));
    let routes = route("all", "slack", &all.url("/services/T0/B0/x"), "")
        + &route("pager", "slack", &critical.url("/services/T0/B0/y"), "levels = [\"critical\"]");
    let server = start(home.path(), &routes);
    let session = "<!channel> & *bold* https://evil.example AKIAIOSFODNN7EXAMPLE\u{202e}";
    similar_turns(&mut server.client(), session, 6);
    similar_turns(&mut server.client(), "last", 6);
    let warning = check_slack(&all.next());
    let title = warning["blocks"][0]["text"]["text"].as_str().unwrap();
    assert!(title.starts_with("Loop warning: &lt;!channel&gt; &amp; *bold* https://evil.example"), "{title}");
    assert!(!warning.to_string().contains("AKIAIOSFODNN7EXAMPLE"), "{warning}");
    let stop = check_slack(&all.next());
    assert_eq!(check_slack(&critical.next()), stop, "the same alert on both routes");
    let next = check_slack(&critical.next())["blocks"][0]["text"]["text"].clone();
    assert_eq!(next, "Session terminated: last", "and no warning");
}

#[test]
#[ignore = "needs python3"]
fn a_webhook_is_signed_and_the_documented_example_verifies_it() {
    let home = tempfile::tempdir().unwrap();
    let receiver = AlertReceiver::start(ACCEPT);
    let server = start(
        home.path(),
        &route("hook", "webhook", &receiver.url("/alerts?team=a"), "secret_env = \"ALERT_SECRET\""),
    );
    let mut client = server.client();
    similar_turns(&mut client, "s1", 6);
    let request = receiver.next();
    assert_eq!(request.path, "/alerts?team=a");
    let alert = check_webhook(&request, SECRET);
    assert_eq!((&alert["level"], &alert["kind"]), (&json!("warning"), &json!("loop.warning")));
    assert_eq!((&alert["session"], &alert["project"]), (&json!("s1"), &json!("default")));
    let stop = check_webhook(&receiver.next(), SECRET);
    assert_eq!((&stop["level"], &stop["kind"]), (&json!("critical"), &json!("session.terminated")));
    assert!(python_accepts(&request, SECRET, &request.body));
    assert!(!python_accepts(&request, "another secret, as long", &request.body));
    assert!(!python_accepts(&request, SECRET, b"{}"));
}

#[test]
fn a_sink_that_never_answers_delays_nothing_and_gets_its_alerts_after_a_restart() {
    static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);
    let home = tempfile::tempdir().unwrap();
    let hangs: AnswerFn = |n| {
        ATTEMPTS.store(n + 1, Ordering::Relaxed);
        None
    };
    let (dead, other) = (AlertReceiver::start(hangs), AlertReceiver::start(ACCEPT));
    let secret = "secret_env = \"ALERT_SECRET\"";
    let routes =
        |url: String| route("dead", "webhook", &url, secret) + &route("other", "slack", &other.url("/x"), "");
    let server = start(home.path(), &routes(dead.url("/")));
    let mut client = server.client();
    similar_turns(&mut client, "s1", 6);
    let unanswered = check_webhook(&dead.next(), SECRET);
    check_slack(&other.next());
    check_slack(&other.next());
    for n in 0..10 {
        similar_turns(&mut client, &format!("more-{n}"), 6);
    }
    (0..20).for_each(|_| drop(check_slack(&other.next())));
    wait_for_metric(&mut client, "deloop_alerts_backlog{route=\"dead\"}", 22);
    drop(client);
    server.signal("TERM");
    assert_eq!(server.wait().0, Some(0));
    // Each attempt lasts until the server gives up on it.
    let attempts = ATTEMPTS.load(Ordering::Relaxed);
    assert!(attempts < 22, "neither steps nor the end wait for the alerts: {attempts} attempts");

    let alive = AlertReceiver::start(ACCEPT);
    let server = start(home.path(), &routes(alive.url("/")));
    let arrived: Vec<Value> = (0..22).map(|_| check_webhook(&alive.next(), SECRET)).collect();
    assert_eq!(arrived[0], unanswered, "the same alert with the same key");
    let mut keys: Vec<&str> = arrived.iter().map(|alert| alert["id"].as_str().unwrap()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 22);
    let mut client = server.client();
    wait_for_metric(&mut client, "deloop_alerts_backlog{route=\"dead\"}", 0);
    similar_turns(&mut client, "last", 4);
    assert_eq!(check_webhook(&alive.next(), SECRET)["session"], "last", "nothing is sent twice");
    assert_eq!(check_slack(&other.next())["blocks"][0]["text"]["text"], "Loop warning: last");
}

#[test]
fn a_sink_that_fails_twice_gets_the_alert_again_with_the_same_key() {
    let home = tempfile::tempdir().unwrap();
    let receiver = AlertReceiver::start(|n| match n {
        0 => Some(("500 Internal Server Error", "down")),
        // Discord's own number counts.
        1 => Some(("429 Too Many Requests\r\nretry-after: 3000", "{\"retry_after\": 2.5}")),
        _ => Some(("204 No Content", "")),
    });
    let server = start(home.path(), &route("ops", "discord", &receiver.url("/"), ""));
    let mut client = server.client();
    similar_turns(&mut client, "s1", 4);
    let first = check_discord(&receiver.next());
    let second = check_discord(&receiver.next());
    let third = check_discord(&receiver.next());
    assert_eq!((&first, &first), (&second, &third));
    wait_for_metric(&mut client, "deloop_alerts_sent_total{route=\"ops\"}", 1);
    server.signal("TERM");
    let (_, said) = server.wait();
    assert!(said.contains("alert route ops: HTTP 500: down; alerts wait and are sent again"), "{said}");
    assert!(said.contains("alert route ops: alerts arrive again"), "{said}");
    let backlog = rusqlite::Connection::open(home.path().join(".local/state/deloop/alerts.db")).unwrap();
    let waited = "SELECT attempts, due - created FROM alerts";
    let (failures, waited) = backlog.query_row(waited, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let (failures, waited): (u32, u32) = (failures, waited);
    // Half a second at least for the first failure, and what Discord asks for.
    assert!(failures == 2 && waited >= 3_000, "{failures} failures, {waited} ms");
}

#[test]
fn what_a_sink_refuses_is_recorded_and_not_sent_again() {
    let home = tempfile::tempdir().unwrap();
    let receiver = AlertReceiver::start(|n| match n {
        0 => Some(("404 Not Found", "no such webhook")),
        _ => Some(("302 Found\r\nlocation: http://127.0.0.1:1/elsewhere", "")),
    });
    let server = start(home.path(), &route("ops", "slack", &receiver.url("/services/token"), ""));
    let mut client = server.client();
    similar_turns(&mut client, "s1", 6);
    (0..2).for_each(|_| drop(check_slack(&receiver.next())));
    wait_for_metric(&mut client, "deloop_alerts_failed_total{route=\"ops\"}", 2);
    let listed = run(deloop(home.path()).args(["alerts", "list", "--config", "serve.toml"]), b"");
    let shown = String::from_utf8(listed.stdout).unwrap();
    let expected = format!(
        "ops: slack http://{}/…, all alerts\n  0 waiting; in the last week 0 sent, 2 failed, 0 dropped\n",
        receiver.address
    );
    assert!(shown.starts_with(&expected), "{shown}");
    assert!(shown.contains("last problem: HTTP 302; redirects aren't followed"), "{shown}");
    similar_turns(&mut client, "last", 4);
    let next = check_slack(&receiver.next())["blocks"][0]["text"]["text"].clone();
    assert_eq!(next, "Loop warning: last", "the others aren't sent again");
    server.signal("TERM");
    let (_, said) = server.wait();
    assert!(said.contains("HTTP 404: no such webhook"), "{said}");
    assert!(!shown.contains("token") && !said.contains("token"), "the path is a secret: {shown}{said}");
}

/// A script that keeps its input and arguments in files.
fn script(home: &Path, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let file = home.join("alert.sh");
    std::fs::write(&file, format!("#!/bin/sh\ncd {}\n{text}", home.display())).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn wait_for_file(file: &Path) -> String {
    let mut text = String::new();
    wait_for(&format!("{} is written", file.display()), || {
        text = std::fs::read_to_string(file).unwrap_or_default();
        text.ends_with('\n')
    });
    text
}

#[test]
fn a_command_gets_the_alert_on_its_input_and_nowhere_else() {
    let home = tempfile::tempdir().unwrap();
    let script = script(home.path(), "cat > input; echo >> input; echo \"$@\" > arguments\n");
    let route = format!(
        "[[serve.alerts]]\nname = \"run\"\nsink = \"command\"\ncommand = [\"{}\", \"--to\", \"ops\"]\n",
        script.display()
    );
    let server = start(home.path(), &route);
    let session = "$(touch pwned); `touch pwned`";
    similar_turns(&mut server.client(), session, 4);
    assert_eq!(wait_for_file(&home.path().join("arguments")), "--to ops\n");
    let alert: Value = serde_json::from_str(&wait_for_file(&home.path().join("input"))).unwrap();
    assert_eq!((&alert["kind"], &alert["session"]), (&json!("loop.warning"), &json!(session)));
    wait_for_metric(&mut server.client(), "deloop_alerts_sent_total{route=\"run\"}", 1);
    assert!(!home.path().join("pwned").exists());
}

#[test]
fn a_command_that_hangs_ends_with_the_server_and_runs_again() {
    let home = tempfile::tempdir().unwrap();
    // It runs for longer than a test may, so only the server can end it.
    let script = script(home.path(), "sleep 3600 &\necho $! > child\nwait\n");
    let route = format!(
        "[[serve.alerts]]\nname = \"run\"\nsink = \"command\"\ncommand = [\"{}\"]\n",
        script.display()
    );
    let server = start(home.path(), &route);
    similar_turns(&mut server.client(), "s1", 4);
    let child = wait_for_file(&home.path().join("child"));
    server.signal("TERM");
    assert_eq!(server.wait().0, Some(0));
    let is_alive = || Command::new("/bin/kill").args(["-0", child.trim()]).output().unwrap().status.success();
    wait_for("what the command started has ended", || !is_alive());
    self::script(home.path(), "cat > input; echo >> input\n");
    let _server = start(home.path(), &route);
    assert!(wait_for_file(&home.path().join("input")).contains("loop.warning"));
}

#[test]
#[ignore = "needs redis-server"]
fn one_of_the_servers_over_a_redis_sends_an_alert() {
    let redis = crate::redis_server::RedisServer::start();
    let home = tempfile::tempdir().unwrap();
    let receiver = AlertReceiver::start(ACCEPT);
    let config = home.path().join("routes.toml");
    std::fs::write(&config, route("ops", "slack", &receiver.url("/"), "")).unwrap();
    let server = |name: &str| {
        let state = home.path().join(name);
        let arguments = [
            ["--profile", "turn-similarity"],
            ["--config", config.to_str().unwrap()],
            ["--store", &redis.url()],
            ["--store-timeout", "10000"],
            ["--state", state.to_str().unwrap()],
        ];
        Server::start(home.path(), &arguments.concat())
    };
    let servers = [server("one"), server("two")];
    let mut clients = [servers[0].client(), servers[1].client()];
    for step in 0..6 {
        similar_turns(&mut clients[step % 2], "s1", 1);
    }
    let texts = [check_slack(&receiver.next()), check_slack(&receiver.next())].map(|alert| alert.to_string());
    assert!(texts.iter().any(|text| text.contains("warning")), "{texts:?}");
    for (client, session) in clients.iter_mut().zip(["last-one", "last-two"]) {
        similar_turns(client, session, 4);
        let next = check_slack(&receiver.next())["blocks"][0]["text"]["text"].clone();
        assert_eq!(next, format!("Loop warning: {session}"), "nothing else was sent");
    }
}

#[test]
fn a_backlog_that_fails_is_counted_and_agents_get_their_answers() {
    let home = tempfile::tempdir().unwrap();
    let receiver = AlertReceiver::start(ACCEPT);
    let server = start(home.path(), &route("ops", "slack", &receiver.url("/"), ""));
    let file = home.path().join(".local/state/deloop/alerts.db");
    rusqlite::Connection::open(file).unwrap().execute_batch("DROP TABLE alerts").unwrap();
    let mut client = server.client();
    assert_eq!(similar_turns(&mut client, "s1", 6)[3..], [json!("warn"), json!("warn"), json!("stop")]);
    assert!(metric(&mut client, "deloop_alert_backlog_errors_total") >= 2);
    server.signal("TERM");
    let (code, said) = server.wait();
    assert!(code == Some(0) && said.contains("an alert couldn't be stored"), "{code:?} {said}");
}
