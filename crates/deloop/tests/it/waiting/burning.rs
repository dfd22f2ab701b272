//! Waits that cost too much or look too often: the agent hears of it early, and only cost ends them.

use serde_json::{Value, json};

use super::rules::{expect, is_ended_by_cost_within, is_only_messaged, is_told_within};
use super::session::{Decision, Gap, Look, Session};

/// By this look the agent has had a message.
const TOLD: usize = 20;

fn told(_: &Session, decisions: &[Decision]) -> Result<(), String> {
    is_told_within(TOLD, decisions)
}

/// $30 is reached with look 600.
fn empty_output() -> Vec<Session> {
    let look = |output: Value| Look::new("BashOutput", json!({"bash_id": "b1"}), output);
    let session = |case: &str, look: &dyn Fn() -> Look| {
        let usage = json!({"model": "claude-sonnet-4-5", "cost_usd": 0.05});
        Session::new(case, Gap::pause(4)).using(usage).looking(640, |_| look())
    };
    let status = json!({"status": "running", "stdout": "", "stderr": ""});
    vec![
        session("BashOutput, nothing, declared running", &|| look("".into()).ends("running")),
        session("BashOutput, status as an object", &|| look(status.clone())),
        session("BashOutput, status as text", &|| look("<status>running</status>".into())),
    ]
}

#[test]
fn polls_of_empty_output_are_told() {
    expect(&[], &empty_output(), told);
}

#[test]
fn polls_of_empty_output_are_ended_before_30_dollars() {
    expect(&[], &empty_output(), |_, decisions| is_ended_by_cost_within(599, decisions));
}

/// Mode `nudge` stops nothing: the agent is reminded at doubling distances, and the limit is reported once.
#[test]
fn polls_of_empty_output_in_mode_nudge() {
    expect(&["--mode", "nudge"], &empty_output(), |_, decisions| {
        let (nudges, rest): (Vec<_>, Vec<_>) = decisions.iter().partition(|d| d.action() == "nudge");
        let at: Vec<usize> = nudges.iter().map(|d| d.look).collect();
        let doubled = at.len() >= 4 && at.windows(2).all(|pair| pair[1] >= pair[0] * 2);
        match rest.as_slice() {
            [limit] if doubled && limit.action() == "warn" => Ok(()),
            _ => Err(format!("messages at looks {at:?} and {} other decisions", rest.len())),
        }
    });
}

fn codex(model: &str) -> Vec<Session> {
    let usage =
        json!({"model": model, "input_tokens": 1_500, "cache_read_tokens": 238_000, "output_tokens": 300});
    let session = |tool: &'static str, args: Value, output: Value| {
        let case = format!("Codex {tool}, {model}");
        let look = |_| Look::new(tool, args.clone(), output.clone()).ends("running");
        Session::new(&case, Gap::pause(30)).using(usage.clone()).looking(2_000, look)
    };
    let waits = json!({"status": {}, "timed_out": true});
    vec![
        session("wait", json!({"ids": ["agent-1"], "timeout_ms": 30_000}), waits),
        session("write_stdin", json!({"session_id": 7, "chars": "", "yield_time_ms": 30_000}), "".into()),
    ]
}

#[test]
fn polls_of_a_large_context_are_told() {
    expect(&[], &codex("gpt-5.1-codex"), told);
}

#[test]
fn polls_of_a_large_context_are_ended() {
    expect(&[], &codex("gpt-5.1-codex"), |_, decisions| is_ended_by_cost_within(2_000, decisions));
}

#[test]
fn polls_of_a_large_context_without_a_price_are_told() {
    expect(&[], &codex("mystery-model-9"), told);
}

#[test]
fn polls_of_a_large_context_without_a_price_are_ended() {
    expect(&[], &codex("mystery-model-9"), |_, decisions| is_ended_by_cost_within(2_000, decisions));
}

/// What they cost isn't known, so nothing may end them.
fn pods() -> [Session; 1] {
    let text = "NAME                   READY   STATUS              RESTARTS   AGE\n\
                web-6d4cf56db6-9xk2p   0/1     ContainerCreating   0          2m\n";
    let session = Session::new("kubectl get pods", Gap::pause(4)).using(None);
    [session.looking(200, |_| Look::shell("kubectl get pods", text))]
}

#[test]
fn frequent_looks_at_pods_are_told() {
    expect(&[], &pods(), told);
}

#[test]
fn frequent_looks_at_pods_are_not_ended() {
    expect(&[], &pods(), is_only_messaged);
}
