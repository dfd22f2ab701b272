//! The holdout: episodes in which deloop stays silent, and what they say about its messages.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent_hooks::Agent;
use crate::binary::{deloop, run, said};
use crate::ceilings::own_config;

fn prints(home: &Path, arguments: &[&str]) -> String {
    let output = run(deloop(home).args(arguments), b"");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn summary(home: &Path) -> Value {
    serde_json::from_str(&prints(home, &["log", "--summary", "--json"])).unwrap()
}

/// A session that makes the same failing call, which no other session makes. Returns how many messages it got, and how many calls were refused.
fn stuck(agent: &Agent, session: &str, numbers: std::ops::Range<u32>) -> (u32, u32) {
    let (mut told, mut refused) = (0, 0);
    for n in numbers {
        let call = json!({"session_id": session, "tool_name": "Bash", "tool_input": {"command": format!("make {session}")}, "tool_use_id": format!("c{n}")});
        let before = agent.event("PreToolUse", call.clone());
        if before["hookSpecificOutput"]["permissionDecision"].is_string() {
            refused += 1;
            continue;
        }
        let mut failure = call;
        failure["error"] = json!("Exit code 2\nno rule");
        let after = agent.event("PostToolUseFailure", failure);
        told += u32::from(after["hookSpecificOutput"]["additionalContext"].is_string());
    }
    (told, refused)
}

/// It does something else for four turns.
fn leave(agent: &Agent, session: &str) {
    for n in 0..4 {
        let call = json!({"session_id": session, "tool_name": "Bash", "tool_input": {"command": format!("cat file{n}")}, "tool_use_id": format!("w{n}")});
        agent.event("PreToolUse", call);
    }
}

/// Exits and episodes of one side, as this test counts them.
#[derive(Default, Clone, Copy)]
struct Side {
    exits: u32,
    episodes: u32,
}

/// The Wilson interval, by solving `(p̂ - p)² = z² p (1 - p) / n` for p.
fn wilson(side: Side) -> (f64, f64, f64) {
    let (n, share, z2) =
        (f64::from(side.episodes), f64::from(side.exits) / f64::from(side.episodes), 1.959_964_f64.powi(2));
    let (a, b, c) = (1.0 + z2 / n, -(2.0 * share + z2 / n), share * share);
    let root = (b * b - 4.0 * a * c).sqrt();
    (share, (-b - root) / (2.0 * a), (-b + root) / (2.0 * a))
}

/// A fleet with a holdout of one half: agents that get a message leave three times out of four, the others half the time.
#[test]
fn a_fleet_shows_whether_messages_help() {
    let agent = Agent::new("claude-code", "default", "nudge");
    let home = agent.home.path();
    own_config(home, "holdout = 0.5");
    let (mut with, mut without) = (Side::default(), Side::default());
    for n in 0..56 {
        let session = format!("fleet-{n}");
        let (told, refused) = stuck(&agent, &session, 0..3);
        assert!(told <= 1 && refused == 0);
        let side = if told == 1 { &mut with } else { &mut without };
        let leaves = if told == 1 { side.episodes % 4 != 0 } else { side.episodes % 2 == 0 };
        side.episodes += 1;
        side.exits += u32::from(leaves);
        match (leaves, n % 8) {
            (false, _) => assert_eq!(stuck(&agent, &session, 3..4).1, 0),
            // To end the turn is an exit as well.
            (true, 0) => drop(
                agent
                    .event("Stop", json!({"session_id": session, "last_assistant_message": "I am blocked."})),
            ),
            (true, _) => leave(&agent, &session),
        }
        if n == 30 {
            let early = prints(home, &["log", "--summary"]);
            assert!(
                early.contains("Whether messages help: not known yet") && !early.contains(" % "),
                "{early}"
            );
            let early = &summary(home)["holdout"];
            assert_eq!((&early["known"], &early["difference"]), (&json!(false), &Value::Null));
            assert_eq!(early["message"]["rate"], Value::Null);
        }
    }
    assert!(with.episodes >= 20 && without.episodes >= 20, "{} {}", with.episodes, without.episodes);
    let known = &summary(home)["holdout"];
    let near = |value: &Value, wanted: f64| (value.as_f64().unwrap() - wanted).abs() < 1e-6;
    for (name, side) in [("message", with), ("holdout", without)] {
        let (figures, (share, low, high)) = (&known[name], wilson(side));
        assert_eq!(
            (&figures["episodes"], &figures["exits"]),
            (&json!(side.episodes), &json!(side.exits)),
            "{name}"
        );
        let rate = &figures["rate"];
        assert!(
            near(&rate["estimate"], share) && near(&rate["low"], low) && near(&rate["high"], high),
            "{known}"
        );
    }
    let ((one, one_low, one_high), (two, two_low, two_high)) = (wilson(with), wilson(without));
    let low = one - two - ((one - one_low).powi(2) + (two_high - two).powi(2)).sqrt();
    let high = one - two + ((one_high - one).powi(2) + (two - two_low).powi(2)).sqrt();
    let difference = &known["difference"];
    assert!(
        near(&difference["estimate"], one - two)
            && near(&difference["low"], low)
            && near(&difference["high"], high),
        "{known} {low} {high}"
    );
    let printed = prints(home, &["log", "--summary"]);
    assert!(
        printed.contains(&format!(
            "with a message: {} of {}, {:.0} %",
            with.exits,
            with.episodes,
            100.0 * one
        )),
        "{printed}"
    );
    assert!(
        printed.contains(&format!("without (held out): {} of {}", without.exits, without.episodes)),
        "{printed}"
    );
    assert!(printed.contains("difference: +"), "{printed}");
}

/// A held-out episode stays silent to its end, is recorded once, and ceilings and the next episode aren't affected.
#[test]
fn a_held_out_episode_is_silent_and_recorded() {
    let agent = Agent::new("claude-code", "default", "enforce");
    let home = agent.home.path();
    own_config(home, "holdout = 1.0\nceilings.turns = 14");
    assert_eq!(stuck(&agent, "s1", 0..12), (0, 0), "no message, no block, no stop");
    let log = prints(home, &["log"]);
    assert_eq!(log.lines().count(), 1, "the episode, once: {log}");
    assert!(
        log.contains("(nudge)") && log.contains("held out, not carried out, continued the loop"),
        "{log}"
    );
    let row = prints(home, &["log", "--json"]);
    let row: Value = serde_json::from_str(row.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&row["action"], &row["held"], &row["side"]),
        (&json!("continue"), &json!("holdout"), &json!("holdout"))
    );
    assert_eq!(stuck(&agent, "s1", 12..16), (0, 2), "a ceiling is never held out");
    let log = prints(home, &["log"]);
    assert!(
        log.contains("  warn ") && log.contains("  stop ") && log.contains("14 of 14 turns used"),
        "{log}"
    );

    own_config(home, "holdout = 0.0");
    let (told, refused) = stuck(&agent, "s2", 0..9);
    assert!(told == 2 && refused > 0, "{told} {refused}");
}

/// Without a holdout there is no rate of success, in words or in JSON, and a line says why.
#[test]
fn without_a_holdout_there_is_no_rate() {
    let agent = Agent::new("claude-code", "default", "nudge");
    let home = agent.home.path();
    for n in 0..3 {
        let session = format!("s{n}");
        assert_eq!(stuck(&agent, &session, 0..3), (1, 0));
        leave(&agent, &session);
    }
    let printed = prints(home, &["log", "--summary"]);
    assert!(
        printed.contains("3 nudges delivered\n")
            && printed.contains("Whether messages help: not known, because"),
        "{printed}"
    );
    assert!(!printed.contains("left") && !printed.contains('%'), "{printed}");
    let summary = summary(home);
    assert_eq!((&summary["holdout"], &summary["nudges"]), (&Value::Null, &json!({"delivered": 3})));
    assert!(summary["no_holdout"].as_str().unwrap().contains("no holdout"), "{summary}");
    assert!(prints(home, &["log"]).contains("left the loop"), "what came of each one is in the log");
}

/// The side depends on the session and the episode alone.
#[test]
fn the_same_episode_is_always_on_the_same_side() {
    let sides = || {
        let agent = Agent::new("claude-code", "default", "nudge");
        own_config(agent.home.path(), "holdout = 0.5");
        let told: Vec<u32> = (0..8).map(|n| stuck(&agent, &format!("again-{n}"), 0..3).0).collect();
        told
    };
    let first = sides();
    assert!(first.contains(&0) && first.contains(&1), "{first:?}");
    assert_eq!(first, sides());
    let home = tempfile::tempdir().unwrap();
    own_config(home.path(), "holdout = 2");
    let output = run(deloop(home.path()).arg("stream"), b"");
    assert!(said(&output).contains("`holdout` is a share of episodes, from 0 to 1"), "{}", said(&output));
}
