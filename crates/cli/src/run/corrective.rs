//! What a retried agent is told about the attempt before it. It is made from deloop's own record: short forms of calls
//! and counts, never a tool's output or the agent's words.

use std::path::Path;

use deloop_detect::{clean, quote};
use deloop_live::{RecentCall, RecordedDecision};
use deloop_types::Outcome;

use super::attempt::is_stall;
use crate::live::explain::{ended, read};
use crate::redaction::Redaction;

/// How many different calls are named.
const CALLS: usize = 4;
/// Maximum length of a person's instruction, in characters.
const INSTRUCTION: usize = 1000;

/// Returns the message about a stopped attempt. An instruction is what the person at the terminal typed.
pub(super) fn message(stop: &RecordedDecision, handoff: Option<&Path>, instruction: Option<&str>) -> String {
    let redaction = Redaction::new(false);
    let summary = stop.summary.as_deref().map(|text| redaction.line(text, 240));
    let why = match is_stall(stop) {
        true => "was ended because it hung",
        false => "was stopped because it was stuck in a loop",
    };
    let mut text = format!("[deloop] An earlier attempt at this task {why}");
    if let Some(summary) = summary {
        text += &format!(": {}", summary.trim_end_matches('.'));
    }
    text += ".";
    let calls = calls(stop);
    if !calls.is_empty() {
        text += &format!(" Its last calls were {}.", calls.join(", "));
    }
    text += match is_stall(stop) {
        true => {
            " Don't start anything again that may wait for ever: give it a time limit, or run it in the background and \
             look at its output. If you are blocked, say what blocks you; don't report success."
        }
        false => {
            " Do not repeat it; take a different approach. First find out why those calls led nowhere, from the files \
             or the error itself. If you are blocked, say what blocks you; don't report success."
        }
    };
    if let Some(path) = handoff {
        // The path is the user's own: masking it would lead nowhere.
        text += &format!(" The record of that attempt is in {}.", clean(&path.to_string_lossy(), 300));
    }
    if let Some(instruction) =
        instruction.map(|text| clean(text, INSTRUCTION)).filter(|text| !text.is_empty())
    {
        text += &format!("\nThe person who started you says: {instruction}");
    }
    text
}

/// Returns the calls that led to the stop, the most frequent first, each with how often it was made and how it ended when
/// it ran.
fn calls(stop: &RecordedDecision) -> Vec<String> {
    let recent: Vec<RecentCall> = read(stop.recent_calls.as_deref());
    let mut groups: Vec<Vec<&RecentCall>> = Vec::new();
    for call in &recent {
        match groups.iter_mut().find(|group| group[0].print == call.print) {
            Some(group) => group.push(call),
            None => groups.push(vec![call]),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    let words = |group: Vec<&RecentCall>| {
        let times = if group.len() == 1 { "once".to_owned() } else { format!("{} times", group.len()) };
        // deloop's own refusals are recorded as cancelled.
        let ran = group.iter().filter(|c| c.output.is_some() && c.came != Some(Outcome::Cancelled));
        let mut endings: Vec<&str> = ran.map(|call| ended(call.came)).collect();
        endings.sort_unstable();
        endings.dedup();
        let how = if endings.is_empty() { String::new() } else { format!(" ({})", endings.join(", ")) };
        format!("`{}` {times}{how}", quote(&group[0].call, 80))
    };
    groups.into_iter().take(CALLS).map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_calls_and_counts_and_stays_short() {
        let call = |n: usize| {
            let command = format!("make {} `x` \u{1b}[31m", "very-long-target ".repeat(20));
            serde_json::json!({"step": n, "tool": "Bash", "call": format!("Bash({command}{})", n % 7),
                "print": format!("{:08x}", n % 7), "came": "error", "output": "00000000"})
        };
        let calls: Vec<serde_json::Value> = (0..16).map(call).collect();
        let stop = RecordedDecision {
            id: "d1".to_owned(),
            session: "s".to_owned(),
            agent: "claude-code".to_owned(),
            subagent: None,
            step: 9,
            ts: deloop_types::Millis(0),
            action: "stop".to_owned(),
            would: None,
            level: 3,
            detector: None,
            summary: Some("`make` failed the same way 8 times. ".repeat(40)),
            message: None,
            status: None,
            delivered: None,
            wrong: false,
            rung: None,
            findings: None,
            recent_calls: Some(serde_json::Value::from(calls).to_string()),
            run: None,
            held: None,
            outcome: None,
            episode: None,
            side: None,
        };
        let text = message(&stop, Some(Path::new(&"/p".repeat(500))), Some(&"word\u{7} ".repeat(2000)));
        assert!(text.starts_with("[deloop] ") && text.contains("3 times (error)"), "{text}");
        assert!(text.contains("\nThe person who started you says: word word"), "{text}");
        assert!(text.chars().count() < 2600, "{}", text.chars().count());
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!message(&stop, None, Some("  ")).contains("person"));
    }
}
