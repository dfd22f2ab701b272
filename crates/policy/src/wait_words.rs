//! Describes findings about waiting.

use deloop_types::Finding;

use crate::words::field;

/// What to do instead.
pub(crate) const ADVICE: &str = "Wait longer between looks: sleep for minutes, use a command that returns when it is done (`--watch`, `wait`), run it in the background, or end your turn and say what you wait for.";

/// Describes waiting for people. `call` is the last look.
pub(crate) fn summary(finding: &Finding, call: &str) -> String {
    let what = if finding.calls.is_empty() { String::new() } else { format!(" ({call})") };
    format!("{} looks at something that isn't ready yet{what}{}", finding.count, waited(finding))
}

/// Describes waiting for the agent that waits.
pub(crate) fn told(finding: &Finding, call: &str) -> String {
    let what = if finding.calls.is_empty() { String::new() } else { format!(" with {call}") };
    format!("You looked {} times{what} for something that isn't ready yet{}.", finding.count, waited(finding))
}

/// Describes how long waiting took and what it cost, as far as that is known.
fn waited(finding: &Finding) -> String {
    let [minutes, cost] = ["minutes", "cost"].map(|name| field(finding, name));
    let took = match minutes {
        "" => String::new(),
        "1" => ", within a minute".to_owned(),
        more => format!(", within {more} minutes"),
    };
    let cost = if cost.is_empty() { String::new() } else { format!(", at a cost of {cost}") };
    format!("{took}{cost}")
}
