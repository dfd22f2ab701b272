//! Alerts, sent by a real server to receivers that check what they get.

#![expect(clippy::disallowed_methods, reason = "how long something takes is what is tested")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::alert_formats::{check_discord, check_slack, check_webhook, discord_field, python_accepts};
use super::binary::{deloop, run};
use super::client::{Client, Server};
use super::receiver::{AlertReceiver, AnswerFn};

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
fn similar_turns(client: &mut Client, session: &str, turns: usize) -> Vec<Value> {
    let step = json!({"type": "turn", "session": session, "text": "check price and decide trade"});
    (0..turns).map(|_| client.step(&step)["action"].clone()).collect()
}

fn metric(client: &mut Client, name: &str) -> u64 {
    let text = client.get("/metrics").text();
    let row = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    row.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// Waits until the server has counted it.
fn wait_for_metric(client: &mut Client, name: &str, value: u64) {
    let start = Instant::now();
    while metric(client, name) != value {
        assert!(start.elapsed() < Duration::from_secs(10), "{name} is {}", metric(client, name));
        std::thread::sleep(Duration::from_millis(20));
    }
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
    receiver.is_quiet();
    // A session that is reset and loops again is another episode.
    assert_eq!(client.post("/v1/sessions/trader-7/reset", "").status, 200);
    similar_turns(&mut client, "trader-7", 4);
    assert_eq!(check_discord(&receiver.next())["title"], warning["title"]);
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
    let warning = check_slack(&all.next());
    let title = warning["blocks"][0]["text"]["text"].as_str().unwrap();
    assert!(title.starts_with("Loop warning: &lt;!channel&gt; &amp; *bold* https://evil.example"), "{title}");
    assert!(!warning.to_string().contains("AKIAIOSFODNN7EXAMPLE"), "{warning}");
    let stop = check_slack(&all.next());
    assert_eq!(check_slack(&critical.next()), stop, "the same alert on both routes");
    critical.is_quiet();
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
    let home = tempfile::tempdir().unwrap();
    let (dead, other) = (AlertReceiver::start(|_| None), AlertReceiver::start(ACCEPT));
    let secret = "secret_env = \"ALERT_SECRET\"";
    let routes =
        |url: String| route("dead", "webhook", &url, secret) + &route("other", "slack", &other.url("/x"), "");
    let server = start(home.path(), &routes(dead.url("/")));
    let mut client = server.client();
    similar_turns(&mut client, "s1", 6);
    let unanswered = check_webhook(&dead.next(), SECRET);
    check_slack(&other.next());
    check_slack(&other.next());
    let begin = Instant::now();
    for n in 0..10 {
        similar_turns(&mut client, &format!("more-{n}"), 6);
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "60 steps took {:?}", begin.elapsed());
    (0..20).for_each(|_| drop(check_slack(&other.next())));
    wait_for_metric(&mut client, "deloop_alerts_backlog{route=\"dead\"}", 22);
    drop(client);
    let begin = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait().0, Some(0));
    assert!(begin.elapsed() < Duration::from_secs(2), "it took {:?} to stop", begin.elapsed());

    let alive = AlertReceiver::start(ACCEPT);
    let server = start(home.path(), &routes(alive.url("/")));
    let arrived: Vec<Value> = (0..22).map(|_| check_webhook(&alive.next(), SECRET)).collect();
    assert_eq!(arrived[0], unanswered, "the same alert with the same key");
    let mut keys: Vec<&str> = arrived.iter().map(|alert| alert["id"].as_str().unwrap()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 22);
    wait_for_metric(&mut server.client(), "deloop_alerts_backlog{route=\"dead\"}", 0);
    alive.is_quiet();
    other.is_quiet();
}

#[test]
fn a_sink_that_fails_twice_gets_the_alert_again_with_the_same_key() {
    let home = tempfile::tempdir().unwrap();
    let receiver = AlertReceiver::start(|n| match n {
        0 => Some(("500 Internal Server Error", "down")),
        1 => Some(("429 Too Many Requests\r\nretry-after: 3", "{\"retry_after\": 2.5}")),
        _ => Some(("204 No Content", "")),
    });
    let server = start(home.path(), &route("ops", "discord", &receiver.url("/"), ""));
    let mut client = server.client();
    similar_turns(&mut client, "s1", 4);
    let first = check_discord(&receiver.next());
    let second = check_discord(&receiver.next());
    let begin = Instant::now();
    let third = check_discord(&receiver.next());
    // Discord's own number counts, which the first `retry-after` only rounds.
    let waited = begin.elapsed();
    assert!((Duration::from_millis(2300)..Duration::from_millis(2950)).contains(&waited), "{waited:?}");
    assert_eq!((&first, &first), (&second, &third));
    wait_for_metric(&mut client, "deloop_alerts_sent_total{route=\"ops\"}", 1);
    server.signal("TERM");
    let (_, said) = server.wait();
    assert!(said.contains("alert route ops: HTTP 500: down; alerts wait and are sent again"), "{said}");
    assert!(said.contains("alert route ops: alerts arrive again"), "{said}");
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
    receiver.is_quiet();
    let listed = run(deloop(home.path()).args(["alerts", "list", "--config", "serve.toml"]), b"");
    let shown = String::from_utf8(listed.stdout).unwrap();
    let expected = format!(
        "ops: slack http://{}/…, all alerts\n  0 waiting; in the last week 0 sent, 2 failed, 0 dropped\n",
        receiver.address
    );
    assert!(shown.starts_with(&expected), "{shown}");
    assert!(shown.contains("last problem: HTTP 302; redirects aren't followed"), "{shown}");
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
    let start = Instant::now();
    loop {
        match std::fs::read_to_string(file) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => assert!(start.elapsed() < Duration::from_secs(10), "no {}", file.display()),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
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
    let script = script(home.path(), "sleep 60 &\necho $! > child\nwait\n");
    let route = format!(
        "[[serve.alerts]]\nname = \"run\"\nsink = \"command\"\ncommand = [\"{}\"]\n",
        script.display()
    );
    let server = start(home.path(), &route);
    similar_turns(&mut server.client(), "s1", 4);
    let child = wait_for_file(&home.path().join("child"));
    let begin = Instant::now();
    server.signal("TERM");
    assert_eq!(server.wait().0, Some(0));
    assert!(begin.elapsed() < Duration::from_secs(2), "it took {:?} to stop", begin.elapsed());
    let is_alive = || Command::new("/bin/kill").args(["-0", child.trim()]).output().unwrap().status.success();
    while is_alive() {
        assert!(begin.elapsed() < Duration::from_secs(5), "what the command started still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
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
    receiver.is_quiet();
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
