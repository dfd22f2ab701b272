//! What every agent is answered in a session that is stuck, event by event. Words are left out: they may be reworded.

use deloop_formats::hooks::HOOK_AGENTS;
use serde_json::Value;

use crate::binary::{deloop, run};
use crate::parallel::in_parallel;

#[test]
fn of_every_agent() {
    let seen = in_parallel(HOOK_AGENTS, |agent| {
        let mut seen = String::new();
        for mode in ["shadow", "nudge", "enforce"] {
            for profile in ["default", "doom-loop"] {
                seen.push_str(&format!("# {} {mode} {profile}\n", agent.name()));
                let home = tempfile::tempdir().unwrap();
                for lap in 1..=9 {
                    for event in agent.rehearsal("s1", lap) {
                        let mut command = deloop(home.path());
                        command.args(["hook", agent.name(), "--profile", profile, "--mode", mode]);
                        let output = run(&mut command, event.to_string().as_bytes());
                        let reply = String::from_utf8_lossy(&output.stdout).into_owned();
                        let told = if output.stderr.is_empty() { "" } else { " and stderr" };
                        let code = output.status.code();
                        let reply = match serde_json::from_str::<Value>(&reply) {
                            Ok(reply) => without_words(reply).to_string(),
                            Err(_) => reply,
                        };
                        if code != Some(0) || !told.is_empty() || !reply.is_empty() {
                            let event = event["hook_event_name"].as_str().unwrap_or("event");
                            seen.push_str(&format!("{lap} {event}: {code:?}{told} {reply}\n"));
                        }
                    }
                }
            }
        }
        seen
    });
    insta::assert_snapshot!(seen.concat());
}

/// Every text with a space in it becomes `…`.
fn without_words(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains(' ') => "…".into(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, without_words(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other,
    }
}
