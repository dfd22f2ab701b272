//! Routes, and alerts in the form of each sink.

use deloop_policy::{AlertKind, AlertLevel};
use deloop_types::{Action, Event, EventKind, Finding, Millis, SessionId};
use serde_json::{Value, json};

use super::alert::{Alert, AlertContext};
use super::route::AlertRoute;
use super::{discord, slack};
use crate::project::Project;

const HOSTILE: &str =
    "@everyone <@123> <!channel> **b** [x](https://evil.example) `code` ~~s~~ ||p|| # h > q \\ & _i_";

fn large() -> Alert {
    let project = Project::default();
    let mut alert = Alert::new(
        AlertKind::SessionTerminated,
        AlertLevel::Critical,
        &project,
        Millis(1_700_000_000_000),
        &["x"],
    )
    .about_session(&HOSTILE.repeat(50), Some(HOSTILE))
    .because(&HOSTILE.repeat(100));
    for n in 0..40 {
        alert = alert.detail(&format!("name {n} {HOSTILE}"), &"***".repeat(400));
    }
    alert
}

fn units(value: &Value) -> usize {
    value.as_str().unwrap_or_else(|| panic!("{value}")).encode_utf16().count()
}

#[test]
fn discord_gets_no_more_than_it_takes() {
    let body = discord::body(&large());
    assert_eq!(body["allowed_mentions"], json!({"parse": []}));
    let embed = &body["embeds"][0];
    let fields = embed["fields"].as_array().unwrap();
    assert!(units(&embed["title"]) <= 256 && units(&embed["description"]) <= 4096);
    assert!(!fields.is_empty() && fields.len() <= 25);
    let of_fields = |field: &Value| {
        assert!((1..=256).contains(&units(&field["name"])) && (1..=1024).contains(&units(&field["value"])));
        units(&field["name"]) + units(&field["value"])
    };
    let texts = units(&embed["title"]) + units(&embed["description"]) + units(&embed["footer"]["text"]);
    assert!(texts + fields.iter().map(of_fields).sum::<usize>() <= 6000);
    let reason = embed["description"].as_str().unwrap();
    assert!(
        reason.starts_with(
            r"\@everyone \<\@123\> \<!channel\> \*\*b\*\* \[x\](https\://evil.example) \`code\`"
        )
    );
    // Before each of these, an odd number of backslashes.
    for (at, _) in reason.match_indices(['*', '`', '<', '@', '[', '|', ':', '_']) {
        let before = reason[..at].len() - reason[..at].trim_end_matches('\\').len();
        assert!(before % 2 == 1, "{}", &reason[at.saturating_sub(10)..]);
    }
}

#[test]
fn slack_gets_no_more_than_it_takes() {
    let body = slack::body(&large());
    let blocks = body["blocks"].as_array().unwrap();
    assert!(blocks.len() <= 50 && blocks[0]["type"] == "header" && units(&blocks[0]["text"]["text"]) <= 150);
    let mut texts = vec![&body["text"]];
    for block in blocks {
        let fields = block["fields"].as_array().map_or(&[][..], Vec::as_slice);
        assert!(fields.len() <= 10);
        let elements = block["elements"].as_array().into_iter().flatten();
        for text in block.get("text").into_iter().chain(fields).chain(elements) {
            assert_eq!((&text["type"], &text["emoji"]), (&json!("plain_text"), &json!(false)), "{text}");
            assert!((1..=3000).contains(&units(&text["text"])));
            texts.push(&text["text"]);
        }
        fields.iter().for_each(|field| assert!(units(&field["text"]) <= 2000));
    }
    for text in texts {
        let text = text.as_str().unwrap();
        assert!(!text.contains(['<', '>']), "{text}");
        let entities = text.split('&').skip(1);
        entities
            .for_each(|rest| assert!(["amp;", "lt;", "gt;"].iter().any(|e| rest.starts_with(e)), "{rest}"));
    }
    assert_eq!(
        (&body["mrkdwn"], &body["parse"], &body["link_names"]),
        (&json!(false), &json!("none"), &json!(false))
    );
}

fn event(kind: EventKind, action: Action, session: &str) -> Event {
    let mut event = Event::new(kind, SessionId::from(session), 6);
    event.action = Some(action);
    event.ts = Some(Millis(1_700_000_000_000));
    event.reason = Some("Loop warning: 3 consecutive similar turns. VP will be notified.".to_owned());
    let mut finding = Finding::default();
    "similar-turn".clone_into(&mut finding.detector);
    (finding.count, finding.since) = (3, 2);
    event.finding = Some(finding);
    event
}

#[test]
fn an_alert_has_one_key_per_level_and_episode() {
    let project = Project::default();
    let context = AlertContext { project: &project, swarm: None, model: None, ledger: None, now: Millis(0) };
    let of = |event: &Event| Alert::of_event(event, &context);
    let warning = of(&event(EventKind::Alert, Action::Warn, "s1")).unwrap();
    assert_eq!((warning.kind, warning.level), (AlertKind::LoopWarning, AlertLevel::Warning));
    assert_eq!(of(&event(EventKind::Alert, Action::Warn, "s1")).unwrap().id, warning.id);
    assert_ne!(of(&event(EventKind::Alert, Action::Warn, "s2")).unwrap().id, warning.id);
    let stop = of(&event(EventKind::SessionTerminated, Action::Stop, "s1")).unwrap();
    assert_eq!((stop.kind, stop.level), (AlertKind::SessionTerminated, AlertLevel::Critical));
    assert_ne!(stop.id, warning.id);
    // Both events of a stop are one alert.
    assert_eq!(of(&event(EventKind::Alert, Action::Stop, "s1")).unwrap().id, stop.id);
    for kind in [EventKind::LoopDetected, EventKind::Nudge, EventKind::CostAttributed] {
        assert!(of(&event(kind, Action::Nudge, "s1")).is_none());
    }
    let other = Project::parse("other").unwrap();
    let elsewhere = AlertContext { project: &other, ..context };
    let alert = Alert::of_event(&event(EventKind::Alert, Action::Warn, "s1"), &elsewhere).unwrap();
    assert_ne!(alert.id, warning.id);
}

#[test]
fn an_error_names_the_route_and_the_fix() {
    let good = json!({"name": "ops", "sink": "slack", "url": "https://hooks.slack.com/services/x"});
    assert_eq!(
        AlertRoute::read_all(std::slice::from_ref(&good)).unwrap()[0].target(),
        "slack https://hooks.slack.com/…"
    );
    let with = |changes: Value| {
        let mut route = good.clone();
        deloop_policy::merge(&mut route, changes);
        let error = AlertRoute::read_all(&[route]).map(|_| ()).expect_err("an error");
        assert!(error.starts_with("alert route `ops`: "), "{error}");
        error
    };
    for (changes, fix) in [
        (json!({"sink": "email"}), "`webhook`, `discord`, `slack`, `command`"),
        (json!({"url": "http://hooks.slack.com/x"}), "allow_private"),
        (json!({"url": "https://10.0.0.1/x"}), "allow_private"),
        (json!({"url_env": "URL"}), "one of `url`, `url_env` and `url_file`"),
        (json!({"url": null}), "one of `url`, `url_env` and `url_file`"),
        (json!({"url": null, "url_env": "DELOOP_TEST_UNSET"}), "DELOOP_TEST_UNSET isn't set"),
        (json!({"url": null, "url_file": "relative"}), "full path"),
        (json!({"url": null, "url_file": "/dev/zero"}), "isn't a small file"),
        (json!({"secret_env": "S"}), "remove `secret_env`"),
        (json!({"sink": "webhook"}), "openssl rand -hex 32"),
        (json!({"command": ["/bin/true"]}), "remove it"),
        (json!({"sink": "command"}), "a command has no URL"),
        (json!({"sink": "command", "url": null}), "needs `command"),
        (json!({"sink": "command", "url": null, "command": ["sh", "-c"]}), "full path"),
        (json!({"levels": []}), "remove it to send all"),
        (json!({"levels": ["fatal"]}), "`info`, `warning`, `critical`"),
        (json!({"kinds": ["loop"]}), "loop.warning"),
        (json!({"projects": ["a b"]}), "letters, digits"),
        (json!({"swarms": "never"}), "true, false or \"only\""),
        (json!({"colour": "red"}), "colour"),
    ] {
        let error = with(changes.clone());
        assert!(error.contains(fix), "{changes}: {error}");
        assert!(!error.contains("/services/x"), "the URL is a secret: {error}");
    }
    let error = AlertRoute::read_all(&[good.clone(), good.clone()]).map(|_| ()).unwrap_err();
    assert!(error.contains("rename one"), "{error}");
    let error = AlertRoute::read_all(&[good, json!({"sink": "slack"})]).map(|_| ()).unwrap_err();
    assert!(error.starts_with("alert route number 2: "), "{error}");
}

#[test]
fn filters_choose_alerts() {
    let route = |filters: Value| {
        let mut route = json!({"name": "r", "sink": "command", "command": ["/bin/true"]});
        deloop_policy::merge(&mut route, filters);
        AlertRoute::read_all(&[route]).unwrap().remove(0)
    };
    let project = Project::parse("shop").unwrap();
    let alert = Alert::new(AlertKind::LoopWarning, AlertLevel::Warning, &project, Millis(0), &[]);
    let in_swarm = alert.clone().about_swarm("nightly");
    for (filters, matches, matches_swarm) in [
        (json!({}), true, true),
        (json!({"levels": ["critical"]}), false, false),
        (json!({"levels": ["warning", "critical"]}), true, true),
        (json!({"kinds": ["session.terminated"]}), false, false),
        (json!({"kinds": ["loop.warning"]}), true, true),
        (json!({"projects": ["shop"]}), true, true),
        (json!({"projects": ["default"]}), false, false),
        (json!({"swarms": true}), true, true),
        (json!({"swarms": false}), true, false),
        (json!({"swarms": "only"}), false, true),
    ] {
        let route = route(filters.clone());
        assert_eq!((route.matches(&alert), route.matches(&in_swarm)), (matches, matches_swarm), "{filters}");
    }
}
