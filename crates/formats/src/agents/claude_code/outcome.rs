//! How a call ended.

use deloop_types::Outcome;
use serde_json::Value;

use crate::json::tolerant::{self, Shaped};
use crate::timeout::refine;

use super::record::ResultDetails;

/// How a failed result begins that says that a person or a rule refused the call.
const REFUSED: [&str; 15] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission to use ",
    "Claude requested permissions to ",
    "This command requires approval",
    "This Bash command contains multiple operations",
    "PreToolUse:",
    "Hook PreToolUse:",
    "Execution stopped by PreToolUse hook",
    "Permission for this action was denied",
    "Permission for this action has been denied",
    "<tool_use_error>Blocked: ",
    // What a tool would ask the user, where nobody can be asked.
    "Answer questions?",
    "Exit plan mode?",
    "Enter plan mode?",
];

/// How a failed result begins that says that the call was called off.
const CALLED_OFF: [&str; 5] = [
    "[Request interrupted by user",
    "[Tool call ",
    "[Agent call interrupted",
    "<tool_use_error>Sibling tool call errored",
    "<tool_use_error>Cancelled: ",
];

/// How a result begins that says that what was started goes on in the background.
const LAUNCHED: [&str; 4] = [
    "Command running in background with ID: ",
    "Async agent launched successfully",
    "Workflow launched in background",
    "Monitor started (task ",
];

/// How a result begins of a question that nobody answered in time.
const UNANSWERED: &str = "No response after ";

/// What says how a call ended, beside its output.
pub(super) struct ClaudeOutcomeFields<'a> {
    /// The record's `toolDenialKind`.
    pub(super) denial: Option<&'a str>,
    /// Its `toolUseResult`.
    pub(super) details: &'a Shaped<'a, ResultDetails<'a>>,
    /// The result's `is_error`.
    pub(super) failed: bool,
}

impl ClaudeOutcomeFields<'_> {
    /// How the call ended.
    pub(super) fn ended(&self, output: &str) -> Outcome {
        match self.denial {
            Some("interrupted" | "cancelled") => Outcome::Cancelled,
            Some(_) => Outcome::Denied,
            None if self.failed => of_failure(output),
            None => self.success(output),
        }
    }

    fn success(&self, output: &str) -> Outcome {
        if LAUNCHED.iter().any(|start| output.starts_with(start)) {
            return Outcome::Running;
        }
        if output.starts_with(UNANSWERED) && output.contains("the user may be away") {
            return Outcome::Timeout;
        }
        let Shaped::Object(details) = self.details else { return of_background(output) };
        if details.interrupted.is_true() {
            return refine(Outcome::Cancelled, output);
        }
        let launched = details.background_task_id.get().is_some();
        if launched || matches!(details.status.as_str(), "running" | "async_launched" | "remote_launched") {
            return Outcome::Running;
        }
        match &details.task {
            Shaped::Object(task) => ended_as(task.status.as_str(), task.exit_code.whole()),
            _ if details.shell_id.get().is_some() => {
                ended_as(details.status.as_str(), details.exit_code.whole())
            }
            _ => Outcome::Ok,
        }
    }
}

/// How a task in the background is reported to be.
fn ended_as(status: &str, exit_code: Option<i64>) -> Outcome {
    match status {
        "running" | "pending" => Outcome::Running,
        "killed" | "stopped" => Outcome::Cancelled,
        "failed" => Outcome::Error,
        _ if exit_code.is_some_and(|code| code != 0) => Outcome::Error,
        _ => Outcome::Ok,
    }
}

/// How a look at a task in the background came out, from the tags in its text.
fn of_background(output: &str) -> Outcome {
    if !output.starts_with("<retrieval_status>") && !output.starts_with("<status>") {
        return Outcome::Ok;
    }
    let tag = |name: &str| {
        let (_, value) = output.split_once(&format!("<{name}>"))?;
        Some(value.split('<').next()?.trim())
    };
    ended_as(tag("status").unwrap_or_default(), tag("exit_code").and_then(|code| code.parse().ok()))
}

/// How a call ended that failed, from what the model is told.
pub(crate) fn of_failure(output: &str) -> Outcome {
    match of_text(output) {
        Some(outcome @ (Outcome::Denied | Outcome::Cancelled)) => outcome,
        _ => refine(Outcome::Error, output),
    }
}

/// How a call ended, as far as what the model is told begins with words that only Claude Code itself uses.
pub(crate) fn of_text(output: &str) -> Option<Outcome> {
    let begins = |words: &[&str]| words.iter().any(|start| output.starts_with(start));
    if begins(&REFUSED) {
        Some(Outcome::Denied)
    } else if begins(&CALLED_OFF) {
        Some(Outcome::Cancelled)
    } else if begins(&LAUNCHED) {
        Some(Outcome::Running)
    } else if begins(&["<tool_use_error>"]) {
        Some(Outcome::Error)
    } else {
        None
    }
}

/// How a call ended that did not fail, from what Claude Code notes about it beside what the model is told.
pub(crate) fn of_response(response: &Value) -> Outcome {
    const DETAILS: [&str; 4] = ["interrupted", "backgroundTaskId", "status", "task"];
    if !DETAILS.iter().any(|sign| response.get(sign).is_some()) {
        return Outcome::Ok;
    }
    let json = response.to_string();
    let details = tolerant::read(json.as_bytes()).unwrap_or_default();
    ClaudeOutcomeFields { denial: None, details: &details, failed: false }.ended("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart_by_their_first_words() {
        let outcome = |output| {
            ClaudeOutcomeFields { denial: None, details: &Shaped::Nothing, failed: true }.ended(output)
        };
        assert_eq!(outcome("Exit code 1\nno such file"), Outcome::Error);
        assert_eq!(outcome("Exit code 143\nCommand timed out after 2m 0s\n"), Outcome::Timeout);
        assert_eq!(outcome("PreToolUse:Bash hook error: no"), Outcome::Denied);
        assert_eq!(outcome("<tool_use_error>Sibling tool call errored</tool_use_error>"), Outcome::Cancelled);
        assert_eq!(outcome("The user doesn't want to proceed with this tool use. The"), Outcome::Denied);
        assert_eq!(outcome("<tool_use_error>Blocked: sleep 60</tool_use_error>"), Outcome::Denied);
        assert_eq!(outcome("Answer questions?"), Outcome::Denied);
    }

    #[test]
    fn what_goes_on_in_the_background_runs() {
        let outcome = |output| {
            ClaudeOutcomeFields { denial: None, details: &Shaped::Nothing, failed: false }.ended(output)
        };
        assert_eq!(outcome("Command running in background with ID: b1. Output is"), Outcome::Running);
        assert_eq!(
            outcome("<retrieval_status>timeout</retrieval_status>\n\n<status>running</status>"),
            Outcome::Running
        );
        assert_eq!(outcome("<status>completed</status>\n\n<exit_code>1</exit_code>\n"), Outcome::Error);
        assert_eq!(outcome("<status>killed</status>"), Outcome::Cancelled);
        assert_eq!(outcome("No response after 60s — the user may be away from keyboard."), Outcome::Timeout);
        assert_eq!(outcome("No response after the bell <status>running</status>"), Outcome::Ok);
    }

    #[test]
    fn a_report_on_a_task_tells_how_it_is() {
        let outcome = |json: &'static str| {
            let details = crate::json::tolerant::read(json.as_bytes()).unwrap();
            ClaudeOutcomeFields { denial: None, details: &details, failed: false }.ended("x")
        };
        assert_eq!(outcome(r#"{"task":{"status":"running"}}"#), Outcome::Running);
        assert_eq!(outcome(r#"{"task":{"status":"failed"}}"#), Outcome::Error);
        assert_eq!(outcome(r#"{"task":{"status":"completed","exitCode":2}}"#), Outcome::Error);
        assert_eq!(outcome(r#"{"shellId":"b1","status":"killed"}"#), Outcome::Cancelled);
        assert_eq!(outcome(r#"{"status":"failed"}"#), Outcome::Ok);
        // A task that was only written down.
        assert_eq!(outcome(r#"{"task":{"id":"1","subject":"Fix it"}}"#), Outcome::Ok);
    }

    #[test]
    fn the_agents_own_word_counts_most() {
        let outcome = |kind| {
            ClaudeOutcomeFields { denial: Some(kind), details: &Shaped::Nothing, failed: true }
                .ended("Exit code 1")
        };
        assert_eq!(outcome("cancelled"), Outcome::Cancelled);
        assert_eq!(outcome("permission-rule"), Outcome::Denied);
    }
}
