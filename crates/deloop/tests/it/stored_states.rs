//! What another release stored for hooks: what an earlier one wrote is read, and what can't be read is kept and logged.

use serde_json::{Value, json};

use crate::agent_hooks::{Agent, denied};
use crate::binary::{deloop, run};

/// Written by Claude Code's hook with the profile `signature`: the session `s1` was stopped.
const DATABASE: &str = include_str!("../stored/hook.sql");

/// An agent with the fixture as its database, as if it had been written just now, and this change to it.
fn agent(change: &str) -> Agent {
    let agent = Agent::new("claude-code", "signature", "enforce");
    std::fs::create_dir_all(agent.state()).unwrap();
    let database = rusqlite::Connection::open(agent.state().join("deloop.db")).unwrap();
    database.execute_batch(DATABASE).unwrap();
    for table in ["sessions", "session_state"] {
        database.execute(&format!("UPDATE {table} SET updated_ms = unixepoch() * 1000"), []).unwrap();
    }
    database.execute_batch(change).unwrap();
    agent
}

/// A call that is about to be made, with an id that the fixture doesn't have.
fn before(agent: &Agent, command: &str) -> Value {
    let call = json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": command});
    agent.event("PreToolUse", call)
}

#[test]
fn a_session_that_the_release_before_stopped_stays_stopped() {
    let agent = agent("");
    assert!(denied(&before(&agent, "ls")));
    assert_eq!(agent.log(), "");
}

#[test]
fn a_session_of_a_later_release_stays_stopped_and_is_kept_and_logged() {
    let later = r#"UPDATE sessions SET state = replace(state, '"version":3,', '"version":4,"news":7,')"#;
    let agent = agent(later);
    let stored: String = agent.query("SELECT state FROM sessions WHERE session = 's1'");
    assert!(denied(&before(&agent, "ls")), "a stop stands");
    assert!(denied(&before(&agent, "ls -l")), "and goes on to");
    let log = agent.log();
    assert_eq!(log.matches("a later release wrote the stored state (format 4").count(), 1, "{log}");
    assert_eq!(agent.query::<String>("SELECT state FROM unreadable_states"), stored);
    let doctor = run(deloop(agent.home.path()).arg("doctor"), b"");
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("1 states of another release can't be read"), "{doctor}");
}

#[test]
fn a_session_that_cannot_be_read_starts_afresh_is_kept_and_logged() {
    let damaged = "UPDATE sessions SET state = 'nonsense'; UPDATE session_state SET state = '[7]'";
    let agent = agent(damaged);
    assert!(!denied(&before(&agent, "ls")));
    let log = agent.log();
    assert!(log.contains("the session `s1` starts afresh"), "{log}");
    assert!(log.contains("the delivery state of `s1` starts afresh"), "{log}");
    assert_eq!(agent.query::<i64>("SELECT count(*) FROM unreadable_states"), 2);
}

fn printed(agent: &Agent, command: &str) -> String {
    let output = run(deloop(agent.home.path()).env("PATH", "/usr/bin:/bin").arg(command), b"");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn doctor_and_status_name_a_damaged_database() {
    let agent = Agent::new("claude-code", "signature", "enforce");
    std::fs::create_dir_all(agent.state()).unwrap();
    std::fs::write(agent.state().join("deloop.db"), "no database at all ".repeat(100)).unwrap();
    assert_eq!(before(&agent, "ls"), Value::Null);
    for command in ["doctor", "status"] {
        let text = printed(&agent, command);
        assert!(text.contains("deloop.db.corrupt-1 was damaged and set aside"), "{command}: {text}");
    }
}

#[test]
fn doctor_notices_a_missing_table() {
    let agent = Agent::new("claude-code", "signature", "enforce");
    before(&agent, "ls");
    assert!(printed(&agent, "doctor").contains("ok    database: "));
    let database = rusqlite::Connection::open(agent.state().join("deloop.db")).unwrap();
    database.execute_batch("DROP TABLE session_state; DROP TABLE swarms").unwrap();
    let text = printed(&agent, "doctor");
    assert!(
        text.contains("WRONG database: ") && text.contains("has no table swarms, session_state"),
        "{text}"
    );
}
