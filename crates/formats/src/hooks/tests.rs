//! Every agent's events, written for this project in the form that the real agent sends, and what each action
//! becomes at each of them. The snapshots are the contract, so review them.

use std::fmt::Write;

use deloop_types::{Action, Body, Decision, Finding, Origin, Outcome, Step};
use serde_json::Value;

use super::*;

#[expect(clippy::disallowed_methods, reason = "the events are files")]
fn events(agent: &dyn HookAgent) -> Vec<HookEvent> {
    let path = format!(
        "{}/src/agents/{}/fixtures/hook.jsonl",
        env!("CARGO_MANIFEST_DIR"),
        agent.name().replace('-', "_")
    );
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| agent.decode(line.as_bytes()).unwrap()).collect()
}

fn decision(action: Action) -> Decision {
    let summary = "Bash(make check) was called 5 times, each time with exit code 2".to_owned();
    let mut finding = Finding::new("no-progress", 5);
    finding.summary = summary;
    let mut made = Decision::go_on("s".into(), 7);
    made.id = Some("d0123456789".to_owned());
    made.action = action;
    made.message = Some("[deloop] MESSAGE".to_owned());
    made.findings = vec![finding];
    made
}

/// One line for each action at each event.
fn answers(agent: &dyn HookAgent) -> String {
    let mut out = String::new();
    let mut known: Vec<(String, HookKind, bool)> = Vec::new();
    for event in events(agent) {
        let this = (event.name.clone(), event.kind, event.continued);
        if known.contains(&this) {
            continue;
        }
        let continued = if event.continued { ", continued" } else { "" };
        writeln!(out, "{} ({:?}{continued})", event.name, event.kind).unwrap();
        known.push(this);
        for action in Action::ALL {
            let Encoded { reply, carried } = agent.encode(&event, &decision(action));
            assert_eq!(
                (reply.exit_code, reply.stderr.as_str()),
                (0, ""),
                "no agent needs more than its output"
            );
            if carried > Action::Continue || !reply.stdout.is_empty() {
                write!(out, "  {action} -> {carried} {}", reply.stdout).unwrap();
            }
        }
    }
    out
}

fn steps(agent: &dyn HookAgent) -> String {
    let mut seen = Seen::default();
    let mut out = String::new();
    for event in events(agent) {
        let attended = event.attended.map_or(String::new(), |a| format!(" attended={a}"));
        writeln!(out, "{}{attended}", event.name).unwrap();
        for step in event.steps(&mut seen) {
            writeln!(out, "  {}", serde_json::to_string(&step).unwrap()).unwrap();
        }
    }
    out
}

#[test]
fn what_each_agent_is_answered() {
    for agent in HOOK_AGENTS {
        insta::assert_snapshot!(format!("answers-{}", agent.name()), answers(*agent));
    }
}

#[test]
fn what_each_agent_tells() {
    for agent in HOOK_AGENTS {
        insta::assert_snapshot!(format!("steps-{}", agent.name()), steps(*agent));
    }
}

#[test]
fn names_are_unique_and_found() {
    for agent in HOOK_AGENTS {
        assert_eq!(hook_agent(agent.name()).unwrap().title(), agent.title());
        assert_eq!(HOOK_AGENTS.iter().filter(|a| a.name() == agent.name()).count(), 1);
    }
    assert!(hook_agent("nope").is_none());
}

fn agent(name: &str) -> &'static dyn HookAgent {
    hook_agent(name).unwrap()
}

fn of_kind(name: &str, kind: HookKind) -> HookEvent {
    events(agent(name)).into_iter().find(|e| e.kind == kind).unwrap()
}

fn json(name: &str, kind: HookKind, action: Action) -> Value {
    let stdout = agent(name).encode(&of_kind(name, kind), &decision(action)).reply.stdout;
    serde_json::from_str(&stdout).unwrap_or_default()
}

/// Codex drops the whole reply, including a refusal, when it contains a key that is unknown or doesn't
/// belong to the event.
#[test]
fn codex_sees_only_keys_it_knows() {
    let known = ["systemMessage", "hookSpecificOutput"];
    let specific = ["hookEventName", "permissionDecision", "permissionDecisionReason", "additionalContext"];
    for event in events(agent("codex")) {
        for action in Action::ALL {
            let reply = agent("codex").encode(&event, &decision(action)).reply.stdout;
            let Ok(Value::Object(map)) = serde_json::from_str(&reply) else { continue };
            // Seen live: a prompt and the end of a turn can be stopped, and these keys belong to them.
            let stops = matches!(event.kind, HookKind::Prompt | HookKind::Stop);
            let of_stop = |k: &str| stops && ["continue", "stopReason"].contains(&k);
            assert!(map.keys().all(|k| known.contains(&k.as_str()) || of_stop(k)), "{reply}");
            if let Some(inner) = map.get("hookSpecificOutput") {
                assert!(inner.as_object().unwrap().keys().all(|k| specific.contains(&k.as_str())), "{reply}");
                assert_eq!(inner["hookEventName"], event.name);
            }
        }
    }
    assert_eq!(
        json("codex", HookKind::PreCall, Action::Stop)["hookSpecificOutput"]["permissionDecision"],
        "deny"
    );
}

/// Without the refusal, Claude Code runs the call before it stops.
#[test]
fn claude_code_stops_with_a_refusal() {
    let stop = json("claude-code", HookKind::PreCall, Action::Stop);
    assert_eq!(
        (&stop["continue"], &stop["hookSpecificOutput"]["permissionDecision"]),
        (&Value::Bool(false), &"deny".into())
    );
    assert_eq!(json("claude-code", HookKind::Failure, Action::Stop), Value::Null, "it would be ignored");
    assert_eq!(json("claude-code", HookKind::Batch, Action::Stop)["continue"], false);
}

#[test]
fn gemini_cli_is_never_answered_in_another_dialect() {
    for event in events(agent("gemini-cli")) {
        for action in Action::ALL {
            assert!(
                !agent("gemini-cli")
                    .encode(&event, &decision(action))
                    .reply
                    .stdout
                    .contains("permissionDecision")
            );
        }
    }
    assert_eq!(json("gemini-cli", HookKind::PreCall, Action::Nudge), Value::Null, "it would be ignored");
}

/// Qwen Code asks before each request to the model: empty, or with text of its own.
#[test]
fn a_person_speaks_once_in_a_turn_of_qwen_code() {
    let mut seen = Seen::default();
    let steps = events(agent("qwen-code")).into_iter().flat_map(|e| e.steps(&mut seen)).collect::<Vec<_>>();
    let origins = steps.iter().filter_map(|s| match &s.body {
        Body::User(user) => Some(user.origin),
        _ => None,
    });
    assert_eq!(origins.collect::<Vec<_>>(), [Origin::Human, Origin::Harness, Origin::Human, Origin::Harness]);
}

/// A hook keeps Gemini CLI going with a prompt like a person's; the event at the end of that turn tells.
#[test]
fn what_kept_gemini_cli_going_is_a_programs() {
    let mut seen = Seen::default();
    let mut origins = |name: &str, more: &str| {
        let event = format!(r#"{{"session_id":"s","hook_event_name":"{name}",{more}}}"#);
        let steps = agent("gemini-cli").decode(event.as_bytes()).unwrap().steps(&mut seen);
        let users = steps.into_iter().filter_map(|step| match step.body {
            Body::User(user) => Some(user.origin),
            _ => None,
        });
        users.collect::<Vec<Origin>>()
    };
    assert_eq!(origins("BeforeAgent", r#""prompt":"Fix it.""#), [Origin::Human]);
    assert_eq!(origins("AfterAgent", r#""stop_hook_active":false"#), []);
    assert_eq!(origins("BeforeAgent", r#""prompt":"Continue (1).""#), [Origin::Human]);
    assert_eq!(origins("AfterAgent", r#""stop_hook_active":true"#), []);
    assert_eq!(origins("BeforeAgent", r#""prompt":"Continue (2).""#), [Origin::Harness]);
    assert_eq!(origins("AfterAgent", r#""stop_hook_active":true"#), []);
    assert_eq!(origins("BeforeAgent", r#""prompt":"Fix it.""#), [Origin::Human]);
}

/// A permission request stops Copilot CLI; if none comes, the next call is refused.
#[test]
fn copilot_cli_is_refused_when_it_was_not_ended() {
    let mut before = of_kind("copilot-cli", HookKind::PreCall);
    let carried = |event: &HookEvent| agent("copilot-cli").encode(event, &decision(Action::Stop)).carried;
    assert_eq!(carried(&before), Action::Continue);
    assert_eq!(carried(&of_kind("copilot-cli", HookKind::Permission)), Action::Stop);
    before.again = true;
    assert_eq!(carried(&before), Action::Block);
}

/// Each call and each result is reported once, although Claude Code sends a call three times.
#[test]
fn a_call_that_comes_with_many_events_is_one_step() {
    let mut seen = Seen::default();
    let all: Vec<Step> = events(agent("claude-code")).iter().flat_map(|e| e.steps(&mut seen)).collect();
    let of = |id: &str| {
        let calls = all.iter().filter(
            |s| matches!(&s.body, Body::Turn(t) if t.calls.iter().any(|c| c.id.as_deref() == Some(id))),
        );
        let results =
            all.iter().filter(|s| matches!(&s.body, Body::Result(r) if r.id.as_deref() == Some(id)));
        (calls.count(), results.count())
    };
    assert_eq!((of("toolu_01"), of("toolu_02"), of("toolu_03")), ((1, 1), (1, 1), (1, 1)));
}

/// Gemini CLI and Copilot CLI give calls no ids. Equal parallel calls are still distinguished.
#[test]
fn calls_without_ids_find_their_results() {
    let agent = agent("gemini-cli");
    let (before, after) =
        (of_kind("gemini-cli", HookKind::PreCall), of_kind("gemini-cli", HookKind::PostCall));
    let mut other = before.clone();
    other.calls[0].call.args = serde_json::json!({"command": "ls"});
    let mut seen = Seen::default();
    let ids = |steps: Vec<Step>| -> Vec<String> {
        let id = |s: Step| match s.body {
            Body::Turn(t) => t.calls[0].id.clone().unwrap(),
            Body::Result(r) => format!("result of {}", r.id.unwrap()),
            other => panic!("{other:?}"),
        };
        steps.into_iter().map(id).collect()
    };
    assert_eq!(ids(before.steps(&mut seen)), ["call-0"]);
    assert_eq!(ids(other.steps(&mut seen)), ["call-1"]);
    assert_eq!(ids(before.steps(&mut seen)), ["call-2"]);
    assert_eq!(ids(after.steps(&mut seen)), ["result of call-0"]);
    assert_eq!(ids(after.steps(&mut seen)), ["result of call-2"]);
    assert_eq!(ids(after.steps(&mut seen)), ["call-3", "result of call-3"], "the call itself was missed");
    assert!(agent.verified());
}

#[test]
fn what_was_refused_is_called_off_and_told_once() {
    let mut seen = Seen::default();
    let before = of_kind("claude-code", HookKind::PreCall);
    before.steps(&mut seen);
    let refused = before.refused(&mut seen);
    assert!(
        matches!(&refused[..], [Step { body: Body::Result(r), .. }] if r.outcome == Some(Outcome::Cancelled))
    );
    assert!(before.refused(&mut seen).is_empty());
}

#[test]
fn what_is_no_event_is_an_error_that_says_why() {
    for agent in HOOK_AGENTS {
        for bytes in [&b""[..], b"[]x", b"{", b"null", b"\xff\xfe"] {
            assert!(agent.decode(bytes).is_err(), "{}: {bytes:?}", agent.name());
        }
        let error = agent.decode(br#"{"hook_event_name":"PreToolUse","toolName":"x"}"#).unwrap_err();
        assert!(error.0.contains("has no `"), "{error}");
        let odd = br#"{"hook_event_name":"New","session_id":"s","conversation_id":"s","tool_input":7,"tool_calls":[]}"#;
        assert_eq!(agent.decode(odd).unwrap().kind, HookKind::Other);
    }
}

/// The origins of the messages in these events of an agent.
fn origins(name: &str, events: &[serde_json::Value]) -> Vec<Origin> {
    let mut seen = Seen::default();
    let event = |event: &serde_json::Value| {
        let mut event = event.clone();
        event["session_id"] = "s".into();
        agent(name).decode(event.to_string().as_bytes()).unwrap()
    };
    let steps = events.iter().flat_map(|sent| {
        let event = event(sent);
        let human = event.kind == HookKind::Prompt && event.is_human(&seen);
        let steps = event.steps(&mut seen);
        let is_human = |step: &Step| matches!(&step.body, Body::User(user) if user.origin == Origin::Human);
        assert_eq!(human, steps.iter().any(is_human));
        steps
    });
    let user = |step: Step| match step.body {
        Body::User(user) => Some(user.origin),
        _ => None,
    };
    steps.filter_map(user).collect()
}

fn prompt(text: &str) -> serde_json::Value {
    serde_json::json!({"hook_event_name": "UserPromptSubmit", "prompt": text})
}

#[test]
fn a_notification_is_no_prompt_of_a_person() {
    let task = "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>";
    let quoted = format!("{task}\nWhat does this mean?");
    let said = [prompt(task), prompt(&quoted), prompt("What is a <task-notification>?")];
    assert_eq!(origins("claude-code", &said), [Origin::Notice, Origin::Human, Origin::Human]);
    assert_eq!(origins("qwen-code", &said[..1]), [Origin::Notice]);
    let subagent =
        "<subagent_notification>\n{\"status\":{\"completed\":\"Done.\"}}\n</subagent_notification>";
    assert_eq!(origins("codex", &[prompt(subagent), prompt(task)]), [Origin::Notice, Origin::Human]);
}

#[test]
fn what_the_agent_put_on_a_timer_comes_from_the_timer() {
    let call = |id: &str, tool: &str, input: serde_json::Value| serde_json::json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": id});
    let wake_up =
        call("t1", "ScheduleWakeup", serde_json::json!({"delaySeconds": 90, "prompt": "/loop check CI"}));
    let cron =
        call("t2", "CronCreate", serde_json::json!({"cron": "*/5 * * * *", "prompt": "Check the deploy."}));
    let (looped, checked) = (prompt("/loop check CI"), prompt("Check the deploy."));
    let events =
        [looped.clone(), wake_up, cron, looped.clone(), looped, checked.clone(), prompt("Fix it."), checked];
    use Origin::{Human, Schedule};
    assert_eq!(origins("claude-code", &events), [Human, Schedule, Human, Schedule, Human, Schedule]);
}
