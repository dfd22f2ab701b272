//! Timers, people and background tasks that start a turn again and again.

use serde_json::json;

use super::rules::{are_let_wait, are_untouched};
use super::session::{Gap, Look, PAUSES_OR_UNTIMED, Session};

/// Two days of a mailbox that stays empty.
fn two_days(origin: &str, prompt: &str) -> Vec<Session> {
    let session = |answer: &str| {
        let case = format!("heartbeat from {origin}, answered {answer:?}");
        let usage = json!({"model": "claude-sonnet-4-5", "cost_usd": 0.001});
        let mut session = Session::new(&case, Gap::pause(1_800)).using(usage);
        for _ in 0..96 {
            session.beat((prompt, origin), Some(Look::new("mail_list", json!({}), "[]")), answer);
        }
        session
    };
    vec![session("HEARTBEAT_OK"), session("Nothing new.")]
}

#[test]
fn a_schedule_that_finds_nothing() {
    are_let_wait(&two_days(
        "schedule",
        "Read HEARTBEAT.md and follow it. If nothing needs attention, reply HEARTBEAT_OK.",
    ));
}

#[test]
fn a_person_who_asks_the_same_every_half_hour() {
    are_let_wait(&two_days("human", "check my inbox"));
}

#[test]
fn a_harness_that_asks_the_same_every_half_hour() {
    are_let_wait(&two_days("harness", "check my inbox"));
}

/// Twenty background tasks end one after the other.
fn notices(answer: impl Fn(usize) -> String, case: &str) -> Vec<Session> {
    let session = |gap: &Gap| {
        let mut session = Session::new(case, *gap);
        session.prompt("Test all twenty shards.", "human");
        let start = json!({"command": "./test-shards.sh", "run_in_background": true});
        session.works(Look::new("Bash", start, "Command running in background with ID: b1"));
        session.says("The shards are running. I'll report when they are done.");
        for i in 1..=20 {
            let notice = format!(
                "<task-notification>\n<task-id>b{i}</task-id>\n<status>completed</status>\n<summary>Shard {i} of 20 \
                 ended: {} tests passed</summary>\n</task-notification>",
                100 + i * 37 % 61
            );
            session.beat((&notice, "notice"), None, &answer(i));
        }
        session
    };
    PAUSES_OR_UNTIMED.iter().map(session).collect()
}

#[test]
fn notices_answered_with_one_word() {
    are_untouched(&notices(|_| "Waiting.".to_owned(), "notices answered \"Waiting.\""));
}

#[test]
fn notices_answered_with_a_count() {
    are_untouched(&notices(|i| format!("{i} done, {} left", 20 - i), "notices answered with a count"));
}
