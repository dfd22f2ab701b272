//! Calls that nothing outside can help: a slow agent is as stuck as a fast one.

use serde_json::json;

use super::rules::{expect, is_nudged_and_blocked};
use super::session::{Look, PAUSES, Session};

#[test]
fn a_test_that_fails_the_same_way() {
    let text = "FAIL src/sum.test.js\n  ● adds\n    Expected: 3\n    Received: 4\n\nTests: 1 failed, 11 passed, 12 total\n";
    let session = |gap| Session::new("npm test", gap).looking(40, |_| Look::shell("npm test", text).fails());
    let sessions: Vec<Session> = PAUSES[..3].iter().copied().map(session).collect();
    expect(&[], &sessions, |session, decisions| {
        is_nudged_and_blocked(session, decisions)?;
        let first = &decisions[0];
        if first.look != 3 {
            return Err(format!("first messaged at another look than the third: {first}"));
        }
        let blocked = decisions.iter().find(|d| d.action() == "block").unwrap();
        if blocked.look > 8 { Err(format!("blocked later than at look 8: {blocked}")) } else { Ok(()) }
    });
}

#[test]
fn a_refused_permission() {
    let look = |_| {
        Look::shell("rm -rf build", "Permission to use bash with command rm -rf build was denied.")
            .ends("denied")
    };
    expect(&[], &[Session::new("denied rm", PAUSES[2]).looking(40, look)], is_nudged_and_blocked);
}

#[test]
fn an_edit_that_fails_the_same_way() {
    let args = json!({"path": "src/app.py", "old_str": "retries = 3", "new_str": "retries = 5"});
    let look = |_| Look::new("edit", args.clone(), "error: old_str not found in src/app.py").fails();
    expect(&[], &[Session::new("failing edit", PAUSES[2]).looking(40, look)], is_nudged_and_blocked);
}
