//! Budgets, overrides and reports, through HTTP and the command.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use deloop_types::Millis;
use serde_json::{Value, json};

use super::client::{Client, Server};
use super::events::EventStream;
use super::test_clock::TestClock;
use crate::binary::{deloop, lines, run, said};

/// A server with these budgets, at noon.
fn start(home: &Path, budgets: &str, arguments: &[&str]) -> Server {
    start_at(&TestClock::new(home), home, budgets, arguments)
}

fn start_at(clock: &TestClock, home: &Path, budgets: &str, arguments: &[&str]) -> Server {
    let config = home.join("server.toml");
    std::fs::write(&config, format!("[serve.budgets]\n{budgets}\n")).unwrap();
    let arguments = [&["--config", config.to_str().unwrap()], arguments].concat();
    Server::start_with(clock.deloop(home), &arguments)
}

fn usage(session: &str, usd: f64) -> Value {
    json!({"type": "usage", "session": session, "model": "m1", "input_tokens": 100, "output_tokens": 10, "cost_usd": usd})
}

fn turn(session: &str) -> Value {
    json!({"type": "turn", "session": session, "text": "Next.", "calls": [{"id": "c1", "tool": "t", "args": {}}]})
}

fn step_in(client: &mut Client, project: &str, step: &Value) -> Value {
    let answer = client.post(&format!("/v1/steps?project={project}"), &step.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn command(home: &Path, server: &Server, arguments: &[&str]) -> Output {
    run(deloop(home).env("DELOOP_SERVER", format!("http://{}", server.address)).args(arguments), b"")
}

fn printed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_budget_warns_stops_and_is_lifted() {
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), "project_usd = 1.0", &[]);
    let mut client = server.client();
    let metric = |client: &mut Client, line: &str| client.get("/metrics").text().contains(line);
    for _ in 0..3 {
        assert_eq!(step_in(&mut client, "a", &usage("s1", 0.25))["action"], "continue");
    }
    assert!(metric(&mut client, "deloop_budget_announced_total{level=\"warning\"} 0\n"));
    assert_eq!(step_in(&mut client, "a", &usage("s1", 0.05))["action"], "continue");
    assert!(metric(&mut client, "deloop_budget_announced_total{level=\"warning\"} 1\n"), "at 80 %");
    let stop = step_in(&mut client, "a", &usage("s1", 0.2));
    assert_eq!((&stop["action"], &stop["status"]), (&json!("stop"), &json!("BUDGET_EXCEEDED")), "{stop}");
    let message = stop["message"].as_str().unwrap();
    assert!(message.contains("project a") && message.contains("$1.000 of $1.000"), "{message}");
    assert!(message.contains("`deloop budget override --project a"), "{message}");
    let stop = step_in(&mut client, "a", &turn("another"));
    assert_eq!(
        (&stop["action"], &stop["calls"]),
        (&json!("stop"), &json!(["c1"])),
        "every session of the project"
    );
    let end = json!({"type": "end", "session": "another"});
    assert_eq!(step_in(&mut client, "a", &end)["action"], "continue");
    assert_eq!(step_in(&mut client, "b", &turn("s1"))["action"], "continue", "another project");
    assert!(metric(&mut client, "deloop_budget_announced_total{level=\"exceeded\"} 1\n"));

    let grant =
        ["budget", "override", "--project", "a", "--usd", "0.5", "--until", "2h", "--reason", "release"];
    let text = printed(&command(home.path(), &server, &grant));
    assert!(text.starts_with("Override o") && text.contains("project a may spend $0.500 more"), "{text}");
    assert_eq!(step_in(&mut client, "a", &turn("s1"))["action"], "continue");
    let text = printed(&command(home.path(), &server, &["budget", "show", "--project", "a"]));
    assert!(text.contains("project a  $1.000  $1.000  100 %") && text.contains("local"), "{text}");
    let id = text.split_once("Override ").unwrap().1.split(':').next().unwrap().to_owned();
    let revoke = command(home.path(), &server, &["budget", "revoke", &id, "--project", "b"]);
    assert!(
        revoke.status.code() == Some(2) && said(&revoke).contains("no such override"),
        "{}",
        said(&revoke)
    );
    printed(&command(home.path(), &server, &["budget", "revoke", &id, "--project", "a"]));
    assert_eq!(step_in(&mut client, "a", &turn("s1"))["action"], "stop", "revoked");

    // A second override is used up, and the server is killed and comes back in between.
    printed(&command(home.path(), &server, &grant));
    server.signal("KILL");
    server.wait();
    let server = start(home.path(), "project_usd = 1.0", &[]);
    let mut client = server.client();
    assert_eq!(step_in(&mut client, "a", &usage("s2", 0.49))["action"], "continue");
    assert_eq!(step_in(&mut client, "a", &usage("s2", 0.01))["action"], "stop", "used up");
}

/// An agent that goes on regardless would fill the audit log.
#[test]
fn a_stop_by_a_budget_is_recorded_once_for_each_session() {
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), "project_usd = 0.1", &[]);
    let mut client = server.client();
    assert_eq!(client.step(&usage("s1", 0.1))["action"], "stop");
    for session in ["s1", "s2", "s1", "s2", "s2"] {
        assert_eq!(client.step(&turn(session))["action"], "stop");
    }
    let stops = |session: &str| {
        let query = ["audit", "query", "--json", "--session", session];
        lines(printed(&command(home.path(), &server, &query)).as_bytes()).len()
    };
    assert_eq!((stops("s1"), stops("s2")), (1, 1));
}

#[test]
fn an_override_of_one_session_ends() {
    let home = tempfile::tempdir().unwrap();
    let clock = TestClock::new(home.path());
    let budgets = "session_usd = 0.1\n[serve.budgets.projects.free]\nsession_usd = 9.0";
    let server = start_at(&clock, home.path(), budgets, &[]);
    let mut client = server.client();
    for session in ["s1", "s2"] {
        assert_eq!(client.step(&usage(session, 0.1))["action"], "stop");
        assert_eq!(step_in(&mut client, "free", &usage(session, 0.1))["action"], "continue");
    }
    assert_eq!(client.step(&turn("s3"))["action"], "continue");
    // Resetting or ending the session doesn't give it a new budget.
    client.step(&json!({"type": "end", "session": "s1"}));
    assert_eq!(client.step(&turn("s1"))["action"], "stop");
    let until = Millis(clock.now().0 + 3_000).to_string();
    let body = json!({"project": "default", "session": "s1", "usd": 1, "until": until, "reason": "a test"});
    let answer = client.post("/v1/budgets/override", &body.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["override"]["session"], "s1");
    clock.advance(Duration::from_millis(2_999));
    assert_eq!(client.step(&turn("s1"))["action"], "continue");
    assert_eq!(client.step(&turn("s2"))["action"], "stop");
    clock.advance(Duration::from_millis(1));
    assert_eq!(client.step(&turn("s1"))["action"], "stop", "it has ended");
    let budgets = client.get("/v1/budgets?project=default&session=s1").json();
    assert_eq!(
        (&budgets["session"]["spent_usd"], &budgets["overrides"]),
        (&json!(0.1), &json!([])),
        "{budgets}"
    );

    for (body, why) in [
        (json!({"usd": 1, "until": "8d", "reason": "r"}), "7 days"),
        (json!({"usd": 0, "until": "1h", "reason": "r"}), "`usd`"),
        (json!({"usd": 1, "until": "1h"}), "`reason`"),
        (json!({"usd": 1, "until": "1h", "reason": "r", "amount": 3}), "unknown field"),
        (json!({"project": "a/b", "usd": 1, "until": "1h", "reason": "r"}), "project"),
    ] {
        let answer = client.post("/v1/budgets/override", &body.to_string());
        assert!(answer.status == 400 && answer.error().contains(why), "{body}: {answer:?}");
    }
    let answer = client.post(
        "/v1/budgets/override?project=a",
        &json!({"project": "b", "usd": 1, "until": "1h", "reason": "r"}).to_string(),
    );
    assert_eq!(answer.status, 400, "{answer:?}");
}

#[test]
fn the_daily_report_is_the_sum_also_after_a_crash() {
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), "", &[]);
    let mut client = server.client();
    let send = |client: &mut Client, project: &str, model: &str, agent: Option<&str>, usd: Option<f64>| {
        let mut step = usage("s1", 0.0);
        (step["model"], step["cost_usd"]) = (json!(model), json!(usd));
        step["agent"] = json!(agent);
        step_in(client, project, &step);
    };
    for _ in 0..3 {
        send(&mut client, "web", "opus", None, Some(0.5));
        send(&mut client, "web", "haiku", Some("reviewer"), Some(0.01));
    }
    // The first half is written to the database, the second is only in the log when the server is killed.
    assert_eq!(client.get("/v1/reports/daily").json()["total"]["requests"], 6);
    for _ in 0..2 {
        send(&mut client, "web", "opus", None, Some(0.5));
        send(&mut client, "api", "no-such-model", None, None);
    }
    server.signal("KILL");
    server.wait();
    let server = start(home.path(), "", &[]);
    let mut client = server.client();
    let report = client.get("/v1/reports/daily").json();
    let total = &report["total"];
    assert_eq!((&total["requests"], &total["tokens"]), (&json!(10), &json!(1100)), "{report}");
    assert_eq!((&total["cost_usd"], &total["unpriced_requests"]), (&json!(2.53), &json!(2)), "{report}");
    let web = &report["projects"][0];
    assert_eq!((&web["project"], &web["rows"][0]["model"]), (&json!("web"), &json!("opus")), "{report}");
    assert_eq!(web["rows"][0]["figures"]["cost_usd"], 2.5);
    assert_eq!(
        (&web["rows"][1]["agent"], &web["rows"][1]["figures"]["requests"]),
        (&json!("reviewer"), &json!(3))
    );
    let api = client.get("/v1/reports/daily?project=api").json();
    assert_eq!((&api["total"]["requests"], api["projects"].as_array().unwrap().len()), (&json!(2), 1));
    assert_eq!(client.get("/v1/reports/daily?date=2020-02-30").status, 400);
    let empty = client.get("/v1/reports/daily?date=2020-02-29").json();
    assert_eq!(empty["total"]["requests"], 0);

    let text = printed(&command(home.path(), &server, &["report", "--daily"]));
    let date = report["date"].as_str().unwrap();
    let expected = format!(
        "Spend on {date} (UTC)\n\n\
         project  model          agent     requests  tokens      cost  day before  loop waste  loops  stopped\n\
         web      opus           main             5     550    $2.500           -           -      0        0\n\
         web      haiku          reviewer         3     330    $0.030           -           -      0        0\n\
         web      all            all              8     880    $2.530           -           -      0        0\n\
         api      no-such-model  main             2     220  no price           -           -      0        0\n\
         total                                   10    1.1k   $2.530+           -           -      0        0\n\n\
         2 requests had no price, so the cost is higher than shown. Add the model to `[prices]` in the server's \
         configuration.\n"
    );
    assert_eq!(text, expected);
    let json = printed(&command(home.path(), &server, &["report", "--daily", "--json", "--date", date]));
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), report);
}

/// The figures of the turn-similarity document: at $0.054 a turn, $0.162 when the loop is found, $0.27 when it is stopped.
#[test]
fn loop_waste_and_loop_frequency() {
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), "", &["--profile", "turn-similarity"]);
    let mut client = server.client();
    let mut figures = Vec::new();
    let texts = ["I start with the tests.", "Now I read the parser."]
        .into_iter()
        .chain(["check price and decide trade"; 6]);
    for text in texts {
        let turn = json!({"type": "turn", "session": "s1", "text": text});
        let action = client.step(&turn)["action"].clone();
        client.step(&usage("s1", 0.054));
        let total = client.get("/v1/reports/daily").json()["total"].clone();
        figures.push((
            action,
            total["loop_waste_usd"].clone(),
            total["loops"].clone(),
            total["terminated"].clone(),
        ));
    }
    let row = |action: &str, waste: f64, loops: u64, stopped: u64| {
        (json!(action), json!(waste), json!(loops), json!(stopped))
    };
    assert_eq!(figures[4], row("continue", 0.0, 0, 0));
    assert_eq!(figures[5], row("warn", 0.162, 1, 0));
    assert_eq!(figures[6], row("warn", 0.216, 1, 0));
    assert_eq!(figures[7], row("stop", 0.27, 1, 1));
    client.step(&json!({"type": "turn", "session": "s2", "text": "Another session."}));
    client.step(&usage("s2", 0.054));

    let weekly = client.get("/v1/reports/weekly?weeks=3").json();
    let group = &weekly["groups"][0];
    assert_eq!((weekly["weeks"].as_array().unwrap().len(), &group["model"]), (3, &json!("m1")), "{weekly}");
    assert_eq!((&group["sessions"], &group["loops"]), (&json!([0, 0, 2]), &json!([0, 0, 1])), "{weekly}");
    assert_eq!((&group["terminated"], &group["per_100"]), (&json!([0, 0, 1]), &json!(50.0)), "{weekly}");
    assert_eq!(client.get("/v1/reports/weekly?weeks=0").status, 400);
    let text = printed(&command(home.path(), &server, &["report", "--weekly", "--weeks", "3"]));
    assert!(
        text.contains("default  main   m1            2      1     50.0        1  0 0 1      -\n"),
        "{text}"
    );
    let text = printed(&command(home.path(), &server, &["report", "--daily"]));
    assert!(text.contains("Loops wasted $0.270, 55.6 % of the cost."), "{text}");
}

#[test]
fn a_mode_caps_the_stop_and_a_wrong_budget_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), "day_usd = 0.1", &["--mode", "shadow"]);
    let mut client = server.client();
    let decision = client.step(&usage("s1", 0.2));
    assert_eq!(
        (&decision["action"], &decision["would"]["status"]),
        (&json!("continue"), &json!("BUDGET_EXCEEDED"))
    );
    drop(server);
    std::fs::write(home.path().join("server.toml"), "[serve.budgets]\nday_usd = 0\n").unwrap();
    let output = run(deloop(home.path()).args(["serve", "--config", "server.toml"]), b"");
    assert!(
        output.status.code() == Some(2) && said(&output).contains("`serve.budgets.day_usd`"),
        "{}",
        said(&output)
    );
    // A folder can't set budgets, trusted or not.
    std::fs::write(home.path().join("deloop.toml"), "[serve.budgets]\nday_usd = 1\n").unwrap();
    let output = run(deloop(home.path()).arg("trust"), b"");
    assert!(said(&output).contains("only your own configuration can set `serve`"), "{}", said(&output));
    let output = run(deloop(home.path()).args(["report", "--daily", "--server", "http://127.0.0.1:9"]), b"");
    assert!(
        output.status.code() == Some(2) && said(&output).contains("start `deloop serve`"),
        "{}",
        said(&output)
    );
}

/// A batch of requests with this cost each.
fn requests(session: &str, usd: f64, count: usize) -> String {
    Value::from(vec![usage(session, usd); count]).to_string()
}

#[test]
fn one_request_counts_at_most_its_limit_and_people_are_told() {
    let home = tempfile::tempdir().unwrap();
    let server = start(home.path(), "project_usd = 1000.0", &[]);
    let mut client = server.client();
    let mut listener = EventStream::open(&server, "/v1/events?kinds=budget.warning", None);
    assert_eq!(client.step(&usage("s1", 10_000.0))["action"], "continue");
    let (_, event) = listener.next();
    let reason = event["reason"].as_str().unwrap();
    assert!(reason.contains("reported $10000.00") && reason.contains("counts as $100.00"), "{reason}");
    assert_eq!(event["action"], "warn", "people get an alert: {event}");
    assert_eq!(client.step(&usage("s1", -500.0))["action"], "continue");
    let spent = |client: &mut Client| {
        client.get("/v1/budgets?project=default").json()["projects"][0]["spent_usd"].clone()
    };
    assert_eq!(spent(&mut client), 100.0, "what is negative lowers nothing");
    assert_eq!(client.get("/v1/sessions/s1").json()["ledger"]["usd"], 100.0);
    client.step(&usage("s1", 1e300));
    assert_eq!(spent(&mut client), 200.0);
    let query = ["audit", "query", "--json", "--action", "usage.over_limit"];
    let records = lines(printed(&command(home.path(), &server, &query)).as_bytes());
    let detail = json!({"counted_usd": 100.0, "reported_usd": 10_000.0});
    assert_eq!(records.iter().map(|record| &record["detail"]).collect::<Vec<_>>(), [&detail], "once a day");
    let metrics = client.get("/metrics").text();
    assert!(metrics.contains("deloop_usage_over_limit_usd_total 19900.000000"), "{metrics}");
    assert!(metrics.contains("deloop_spend_usd_total 200.000000"), "{metrics}");
    drop(server);
    let server = start(home.path(), "request_usd = 0.5", &[]);
    server.client().step(&usage("s2", 0.75));
    assert_eq!(server.client().get("/v1/sessions/s2").json()["ledger"]["usd"], 0.5);
}

#[test]
fn one_project_cannot_stop_the_others() {
    let home = tempfile::tempdir().unwrap();
    let budgets = "day_usd = 200.0\n[serve.budgets.projects.large]\nproject_usd = 100.0";
    let server = start(home.path(), budgets, &[]);
    let mut client = server.client();
    let decided = client.post("/v1/steps?project=runaway", &requests("s1", 10_000.0, 20)).json();
    assert_eq!(decided[19]["action"], "stop", "its own spend is above the budget of all projects");
    let is_stopped =
        |client: &mut Client, project: &str| step_in(client, project, &turn("s1"))["action"] == "stop";
    assert!(is_stopped(&mut client, "runaway") && !is_stopped(&mut client, "web"));
    let report = client.get("/v1/budgets").json();
    assert_eq!(report["day_spent_usd"], 50.0, "a quarter of the budget: {report}");
    // A project with a budget of its own counts up to that.
    client.post("/v1/steps?project=large", &requests("s1", 60.0, 2));
    assert_eq!(client.get("/v1/budgets").json()["day_spent_usd"], 150.0);
    assert!(is_stopped(&mut client, "large") && !is_stopped(&mut client, "web"));
    // It is remembered, and what is spent by all counts for all.
    server.kill();
    let server = start(home.path(), budgets, &[]);
    let mut client = server.client();
    assert_eq!(client.get("/v1/budgets").json()["day_spent_usd"], 150.0);
    assert!(!is_stopped(&mut client, "web"));
    client.post("/v1/steps?project=docs", &requests("s1", 50.0, 1));
    assert!(is_stopped(&mut client, "web") && is_stopped(&mut client, "docs"));
}
