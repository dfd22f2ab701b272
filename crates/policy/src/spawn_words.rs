//! Describes findings about subagents.

use deloop_types::{Finding, Repeats};

use crate::words::field;

/// Describes a finding about subagents for people. `call` is the call that starts one.
pub(crate) fn summary(finding: &Finding, call: &str) -> String {
    let count = finding.count;
    let what = match finding.rule.as_str() {
        _ if finding.repeats == Repeats::SpawnedTask => {
            format!("the same task given to a subagent {count} times, with nothing changed in between")
        }
        "depth" => format!("a subagent started {count} levels below the main agent"),
        "relays" => format!("{count} subagents in a row did nothing but start the next one"),
        "nested" => {
            format!("{count} subagents were started by other subagents, with nothing changed in between")
        }
        _ => format!("{count} subagents did nothing but start others"),
    };
    let mut about = vec![format!("{} subagents started", field(finding, "spawns"))];
    if !matches!(field(finding, "tokens"), "" | "0") {
        about.push(format!("{} tokens used by them", field(finding, "tokens")));
    }
    format!("{what} (last: {call}; {})", about.join(", "))
}

/// Describes a finding about subagents for the agent that starts one.
pub(crate) fn told(finding: &Finding) -> String {
    let count = finding.count;
    match finding.rule.as_str() {
        _ if finding.repeats == Repeats::SpawnedTask => {
            format!("You gave this task to a subagent {count} times, and nothing changed in between.")
        }
        "depth" => format!("This would start a subagent {count} levels below the main agent."),
        "relays" => format!(
            "You are one of {count} subagents in a row that did nothing but pass the task on to another subagent."
        ),
        "nested" => format!(
            "{count} subagents of this session were started by other subagents, and nothing changed in between."
        ),
        _ => format!(
            "{count} subagents of this session, you among them, did nothing but start other subagents."
        ),
    }
}

/// Suggests what the agent can do instead.
pub(crate) fn advice(finding: &Finding) -> &'static str {
    match finding.repeats {
        Repeats::SpawnedTask => {
            "Another subagent with the same task won't find anything else. Use what the last one reported, change what stands in its way, or give it a different task."
        }
        _ => {
            "Do the work yourself, with your own tools, and report the result to the agent that started you. If you can't, report what is missing."
        }
    }
}
