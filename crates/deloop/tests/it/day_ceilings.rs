//! Ceilings of a project per day.

use serde_json::json;

use crate::agent_hooks::Agent;
use crate::ceilings::{actions, call, calls, event, own_config, prints};

/// All sessions of a repository share a day, whichever folder they work in.
#[test]
fn a_project_has_a_ceiling_per_day() {
    let agent = Agent::new("claude-code", "default", "nudge");
    let home = agent.home.path();
    own_config(home, "ceilings.day_turns = 10");
    for folder in ["app/.git", "app/src", "other"] {
        std::fs::create_dir_all(home.join(folder)).unwrap();
    }
    let place = |session: &str, folder: &str| json!({"session_id": session, "cwd": home.join(folder)});
    assert_eq!(calls(&agent, 1..=6, &place("a", "app")), "ok ok ok ok ok ok");
    let second = place("b", "app/src");
    assert_eq!(calls(&agent, 1..=5, &second), "ok warn ok stop stop", "8, 9 and 10 of 10");
    assert_eq!(calls(&agent, 7..=7, &place("a", "app")), "stop", "a session that was told nothing so far");
    assert_eq!(calls(&agent, 1..=9, &place("c", "other")), "ok ok ok ok ok ok ok warn ok", "another project");
    let status = prints(home, &["status"]);
    assert!(status.contains("Today (UTC) in ~/app: ") && status.contains("12 of 10 turns, "), "{status}");
    assert!(status.contains("(120 %)") && status.contains("Today (UTC) in ~/other: "), "{status}");

    let mut prompt = second.clone();
    prompt["prompt"] = json!("Go on.");
    agent.event("UserPromptSubmit", prompt.clone());
    assert_eq!(calls(&agent, 6..=8, &second), "warn ok stop", "13, 14 and 15 of 15");
    assert!(prints(home, &["status"]).contains("15 of 15 turns"), "raised for all sessions of the project");

    let database = rusqlite::Connection::open(agent.state().join("deloop.db")).unwrap();
    database.execute("UPDATE day_usage SET day = day - 1", []).unwrap();
    assert_eq!(calls(&agent, 9..=10, &second), "ok ok", "another day");
    for day in 0..3000 {
        let sql = "INSERT INTO day_usage VALUES('x' || ?1, (SELECT max(day) FROM day_usage WHERE project NOT LIKE 'x%'), 0, 0.0, 0, 0, 0.0, 0)";
        database.execute(sql, [day]).unwrap();
    }
    calls(&agent, 1..=1, &place("d", "."));
    assert!(agent.query::<i64>("SELECT count(*) FROM day_usage") <= 2000, "bounded");
}

/// A person is asked about the day's ceiling, too, and what they allow holds for the day.
#[test]
fn a_person_is_asked_about_the_day() {
    let agent = Agent::new("claude-code", "default", "nudge");
    own_config(agent.home.path(), "ceilings.day_turns = 4");
    let person = json!({"permission_mode": "default"});
    assert_eq!(calls(&agent, 1..=5, &person), "ok ok ok ask ask");
    event(&agent, "PostToolUse", 5, &person);
    assert_eq!(calls(&agent, 6..=7, &person), "ask ask", "6 of 6: what is raised by half is the limit");
    event(&agent, "PostToolUse", 7, &person);
    assert_eq!(calls(&agent, 8..=8, &json!({"permission_mode": "default", "session_id": "s2"})), "ask");
    prints(agent.home.path(), &["pause"]);
    assert_eq!(calls(&agent, 9..=9, &person), "ok");
}

/// Live prices: what the plugin of opencode reports is priced by the model, and an unknown model costs nothing.
#[test]
fn a_plugin_has_the_same_ceilings() {
    let home = tempfile::tempdir().unwrap();
    own_config(home.path(), "ceilings.day_usd = 5");
    let used =
        |model: &str, n: u64| json!({"type": "usage", "model": model, "input_tokens": n, "output_tokens": 0});
    let opencode = ["--agent", "opencode"];
    let steps = [
        call(1),
        used("claude-sonnet-4-5", 1_000_000),
        call(2),
        used("nobody-prices-this", 2_000_000),
        call(3),
    ];
    assert_eq!(actions(home.path(), &opencode, &steps), ["continue"; 5]);
    let steps = [
        used("claude-sonnet-4-5", 700_000),
        call(4),
        json!({"type": "user", "text": "Go on.", "origin": "human"}),
        call(5),
    ];
    assert_eq!(actions(home.path(), &opencode, &steps), ["continue", "stop", "continue", "continue"]);
}
