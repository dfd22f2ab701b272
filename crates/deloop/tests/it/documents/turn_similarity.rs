//! The turn-similarity document: what a warning and a termination do, and what is kept.

use serde_json::{Value, json};

use super::{list, state_after, text};
use crate::agent_hooks::Agent;
use crate::binary::{deloop, run, stream, trusted_config};

const SAME: &str = "I need to check the current price and make a trading decision.";

fn turn(words: &str) -> Value {
    json!({"type": "turn", "session": "s1", "text": words})
}

fn answers(steps: &[Value]) -> Vec<Value> {
    stream(tempfile::tempdir().unwrap().path(), &["-p", "turn-similarity"], &text(steps))
}

/// The document keeps at most 50 turns; only the latest and the 5 before it are ever compared, and only those are kept.
#[test]
fn the_history_is_bounded() {
    for turns in [1, 5, 50, 200] {
        let steps: Vec<Value> = (0..turns).map(|n| turn(&format!("word{n} and{n} more{n}"))).collect();
        let state = state_after("turn-similarity", &steps);
        assert_eq!(list(&state, "window").unwrap().len(), turns.min(6));
    }
}

#[test]
fn the_first_turn_passes() {
    let first = &answers(&[turn(SAME)])[0];
    assert_eq!((&first["action"], &first["findings"]), (&json!("continue"), &json!([])));
}

#[test]
fn the_reasons_have_the_documents_text() {
    let answers = answers(&vec![turn(SAME); 7]);
    let warning =
        |n: u32| json!(format!("Loop warning: {n} consecutive similar turns. VP will be notified."));
    let end = "Loop detected: 5 consecutive similar turns (>0.85 similarity). Session will be terminated.";
    let seen: Vec<&Value> = answers.iter().map(|answer| &answer["message"]).collect();
    assert_eq!(seen[..3], [&Value::Null; 3]);
    assert_eq!(seen[3..], [&warning(3), &warning(4), &json!(end), &json!(end)]);
    let actions: Vec<&str> = answers.iter().map(|answer| answer["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["continue", "continue", "continue", "warn", "warn", "stop", "stop"]);
    assert_eq!(answers[3]["findings"][0]["count"], 3);
    assert!(answers.iter().all(|answer| answer["task_update"].is_null()), "no clean exit is made up");
}

/// One step can be both: the loop and the budget are judged apart, and each is listed.
#[test]
fn loops_and_budgets_are_judged_on_every_turn() {
    let home = tempfile::tempdir().unwrap();
    trusted_config(home.path(), "deloop.toml", "[detectors.over-budget]\nsteps = 5");
    let answers = stream(home.path(), &["-p", "turn-similarity"], &text(&vec![turn(SAME); 4]));
    let found: Vec<&str> =
        answers[3]["findings"].as_array().unwrap().iter().map(|f| f["detector"].as_str().unwrap()).collect();
    assert_eq!(found, ["similar-turn", "over-budget"]);
    let other: Vec<Value> = ["One.", "Two.", "Three.", "Four."].map(turn).to_vec();
    let answers = stream(home.path(), &["-p", "turn-similarity"], &text(&other));
    assert_eq!(answers[3]["findings"][0]["detector"], "over-budget", "a budget needs no loop");
}

#[test]
fn the_same_turns_get_the_same_answers() {
    let words = [SAME, "Let me check the data", SAME, "Let me check the data", "Done", SAME];
    let steps: Vec<Value> = words.map(turn).into_iter().cycle().take(40).collect();
    assert_eq!(answers(&steps), answers(&steps));
}

/// Claude Code shows a warning to the person, not to the model; a termination ends the session for good.
#[test]
fn claude_code_is_warned_about_and_then_ended() {
    let agent = Agent::new("claude-code", "turn-similarity", "enforce");
    let call = |n: u32| {
        let more = json!({"tool_name": "Trade", "tool_input": {"why": SAME}, "tool_use_id": format!("c{n}")});
        agent.event("PreToolUse", more)
    };
    let replies: Vec<Value> = (1..=6).map(call).collect();
    assert!(replies[..3].iter().all(Value::is_null));
    for (reply, count) in replies[3..5].iter().zip([3, 4]) {
        let shown = reply["systemMessage"].as_str().unwrap();
        assert!(shown.contains(&format!("{count} consecutive similar turns")), "{reply}");
        assert!(reply.get("hookSpecificOutput").is_none(), "the model isn't told: {reply}");
    }
    assert_eq!(replies[5]["continue"], false);
    agent.event("UserPromptSubmit", json!({"prompt": "Try something else"}));
    let other = json!({"tool_name": "Read", "tool_input": {"path": "a.csv"}, "tool_use_id": "c9"});
    assert_eq!(agent.event("PreToolUse", other)["continue"], false, "not one more turn");

    let log = run(deloop(agent.home.path()).args(["log", "--json"]), b"").stdout;
    let log = String::from_utf8(log).unwrap();
    let ended: Value = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .find(|d: &Value| d["action"] == "stop")
        .unwrap();
    assert_eq!((&ended["session"], &ended["agent"]), (&json!("s1"), &json!("claude-code")));
    let id = ended["id"].as_str().unwrap();
    let explained = run(deloop(agent.home.path()).args(["explain", id]), b"").stdout;
    let explained = String::from_utf8(explained).unwrap();
    assert!(explained.contains("similar-turn") && explained.contains("Trade"), "{explained}");
}

/// A session that ended doesn't weigh on the next one.
#[test]
fn a_fresh_session_starts_from_nothing() {
    let mut steps = vec![turn(SAME); 6];
    let other = |words: &str| json!({"type": "turn", "session": "s2", "text": words});
    steps.extend(vec![other(SAME); 3]);
    steps.push(json!({"type": "end", "session": "s1"}));
    steps.extend(vec![turn(SAME); 3]);
    let answers = answers(&steps);
    assert_eq!(answers[5]["action"], "stop");
    assert!(answers[6..].iter().all(|answer| answer["action"] == "continue"), "{answers:?}");
}
