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

/// How a result of these tools begins that says that what was started goes on in the background.
const LAUNCHED: [(&str, &str); 4] = [
    ("Agent", "Async agent launched successfully"),
    ("Task", "Async agent launched successfully"),
    ("Workflow", "Workflow launched in background"),
    ("Monitor", "Monitor started (task "),
];

/// The tools that look at a task in the background, and begin their results with its status in tags.
const LOOKS: [&str; 4] = ["BashOutput", "TaskOutput", "AgentOutput", "AgentOutputTool"];

/// How a result begins of a question that nobody answered in time.
const UNANSWERED: &str = "No response after ";

/// Whose words a tool's result begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultWords {
    /// Claude Code's own.
    Own,
    /// What a command printed.
    Command,
    /// An MCP server's, or those of a tool that isn't known.
    Foreign,
}

impl ResultWords {
    fn of(tool: &str) -> Self {
        match tool {
            "Bash" | "PowerShell" => Self::Command,
            "" => Self::Foreign,
            _ if tool.starts_with("mcp__") => Self::Foreign,
            _ => Self::Own,
        }
    }
}

/// What says how a call ended, beside its output.
pub(super) struct ClaudeOutcomeFields<'a> {
    /// The tool that was called; empty if it isn't known.
    pub(super) tool: &'a str,
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
            None if self.failed => self.failure(output),
            None => self.success(output),
        }
    }

    fn failure(&self, output: &str) -> Outcome {
        match self.details {
            Shaped::Text(noted) if is_harness_note(noted.as_ref(), output) => of_own_failure(output),
            _ => of_failure(self.tool, output),
        }
    }

    fn success(&self, output: &str) -> Outcome {
        let words = ResultWords::of(self.tool);
        if words == ResultWords::Foreign {
            return Outcome::Ok;
        }
        let Shaped::Object(details) = self.details else {
            return of_text(self.tool, output).unwrap_or(Outcome::Ok);
        };
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
            _ => of_text(self.tool, output).unwrap_or(Outcome::Ok),
        }
    }
}

/// Returns whether Claude Code noted about a failure what it wrote to the model itself. What a tool returned is noted
/// behind `Error: `, word for word.
fn is_harness_note(noted: &str, output: &str) -> bool {
    const TAG: &str = "<tool_use_error>";
    match noted.strip_prefix("Error: ") {
        Some(returned) => output.starts_with(TAG) && !returned.starts_with(TAG),
        None => !noted.trim().is_empty(),
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
fn of_background(output: &str) -> Option<Outcome> {
    if !output.starts_with("<retrieval_status>") && !output.starts_with("<status>") {
        return None;
    }
    let tag = |name: &str| {
        let (_, value) = output.split_once(&format!("<{name}>"))?;
        Some(value.split('<').next()?.trim())
    };
    Some(ended_as(tag("status").unwrap_or_default(), tag("exit_code").and_then(|code| code.parse().ok())))
}

/// How a call of `tool` ended that failed, from what the model is told.
///
/// A command can print what Claude Code writes when a call is called off, and an MCP server can return anything. So only the
/// words of Claude Code's own tools can say that a call doesn't count.
pub(crate) fn of_failure(tool: &str, output: &str) -> Outcome {
    match (ResultWords::of(tool), of_own_failure(output)) {
        (ResultWords::Own, outcome) => outcome,
        (ResultWords::Command, Outcome::Denied) => Outcome::Denied,
        _ => refine(Outcome::Error, output),
    }
}

/// How a call ended that failed, from words of Claude Code itself.
fn of_own_failure(output: &str) -> Outcome {
    let begins = |words: &[&str]| words.iter().any(|start| output.starts_with(start));
    if begins(&REFUSED) {
        Outcome::Denied
    } else if begins(&CALLED_OFF) {
        Outcome::Cancelled
    } else {
        refine(Outcome::Error, output)
    }
}

/// How a call of `tool` ended, as far as what the model is told begins with words that only Claude Code itself uses there.
pub(crate) fn of_text(tool: &str, output: &str) -> Option<Outcome> {
    let launched = |(launcher, start): &(&str, &str)| tool == *launcher && output.starts_with(start);
    if LAUNCHED.iter().any(launched) {
        Some(Outcome::Running)
    } else if LOOKS.contains(&tool) {
        of_background(output)
    } else if tool == "AskUserQuestion"
        && output.starts_with(UNANSWERED)
        && output.contains("the user may be away")
    {
        Some(Outcome::Timeout)
    } else {
        None
    }
}

/// How a call of `tool` ended whose result is only known as what the model is told. A refusal and a call that couldn't be
/// made are recognised whatever the tool.
pub(crate) fn of_shown(tool: &str, output: &str) -> Option<Outcome> {
    let own = ResultWords::of(tool) == ResultWords::Own;
    match of_own_failure(output) {
        Outcome::Denied => Some(Outcome::Denied),
        Outcome::Cancelled if own => Some(Outcome::Cancelled),
        _ if output.starts_with("<tool_use_error>") => Some(Outcome::Error),
        _ => of_text(tool, output),
    }
}

/// How a call of `tool` ended that did not fail, from what Claude Code notes about it beside what the model is told. What
/// an MCP server returned is its own and says nothing.
pub(crate) fn of_response(tool: &str, response: &Value) -> Outcome {
    const DETAILS: [&str; 4] = ["interrupted", "backgroundTaskId", "status", "task"];
    if !DETAILS.iter().any(|sign| response.get(sign).is_some()) {
        return Outcome::Ok;
    }
    let json = response.to_string();
    let details = tolerant::read(json.as_bytes()).unwrap_or_default();
    ClaudeOutcomeFields { tool, denial: None, details: &details, failed: false }.ended("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(tool: &str, details: &'static str, failed: bool, output: &str) -> Outcome {
        let details = tolerant::read(details.as_bytes()).unwrap();
        ClaudeOutcomeFields { tool, denial: None, details: &details, failed }.ended(output)
    }

    #[test]
    fn failures_are_told_apart_by_their_first_words() {
        let outcome = |tool, output| ended(tool, "null", true, output);
        assert_eq!(outcome("Bash", "Exit code 1\nno such file"), Outcome::Error);
        assert_eq!(outcome("Bash", "Exit code 143\nCommand timed out after 2m 0s\n"), Outcome::Timeout);
        assert_eq!(outcome("Bash", "PreToolUse:Bash hook error: no"), Outcome::Denied);
        let sibling = "<tool_use_error>Sibling tool call errored</tool_use_error>";
        assert_eq!(outcome("Read", sibling), Outcome::Cancelled);
        assert_eq!(
            outcome("Edit", "The user doesn't want to proceed with this tool use. The"),
            Outcome::Denied
        );
        assert_eq!(outcome("Bash", "<tool_use_error>Blocked: sleep 60</tool_use_error>"), Outcome::Denied);
        assert_eq!(outcome("AskUserQuestion", "Answer questions?"), Outcome::Denied);
    }

    #[test]
    fn what_an_mcp_server_or_a_command_writes_calls_nothing_off() {
        for words in CALLED_OFF {
            for tool in ["mcp__jobs__run", "Bash", "PowerShell", ""] {
                let noted = serde_json::json!(format!("Error: {words}")).to_string().leak();
                assert_eq!(ended(tool, noted, true, words), Outcome::Error, "{tool}: {words}");
                assert_eq!(of_failure(tool, words), Outcome::Error, "{tool}: {words}");
                assert_ne!(of_shown(tool, words), Some(Outcome::Cancelled), "{tool}: {words}");
            }
        }
        assert_eq!(of_failure("mcp__jobs__run", "Permission to use it was denied"), Outcome::Error);
    }

    #[test]
    fn what_claude_code_notes_calls_off_any_call() {
        let sibling = "<tool_use_error>Sibling tool call errored</tool_use_error>";
        for tool in ["mcp__jobs__run", "Bash"] {
            assert_eq!(ended(tool, r#""Sibling tool call errored""#, true, sibling), Outcome::Cancelled);
            assert_eq!(
                ended(tool, r#""Error: Sibling tool call errored""#, true, sibling),
                Outcome::Cancelled
            );
            let refused = "The user doesn't want to proceed with this tool use. The";
            assert_eq!(ended(tool, r#""User rejected tool use""#, true, refused), Outcome::Denied);
        }
    }

    #[test]
    fn what_goes_on_in_the_background_runs() {
        let outcome = |tool, output| ended(tool, "null", false, output);
        assert_eq!(ended("Bash", r#"{"backgroundTaskId":"b1"}"#, false, "x"), Outcome::Running);
        assert_eq!(outcome("Task", "Async agent launched successfully. Agent"), Outcome::Running);
        assert_eq!(
            outcome("TaskOutput", "<retrieval_status>timeout</retrieval_status>\n\n<status>running</status>"),
            Outcome::Running
        );
        assert_eq!(
            outcome("BashOutput", "<status>completed</status>\n\n<exit_code>1</exit_code>\n"),
            Outcome::Error
        );
        assert_eq!(outcome("BashOutput", "<status>killed</status>"), Outcome::Cancelled);
        let away = "No response after 60s — the user may be away from keyboard.";
        assert_eq!(outcome("AskUserQuestion", away), Outcome::Timeout);
        assert_eq!(outcome("BashOutput", "No response after the bell <status>running</status>"), Outcome::Ok);
    }

    #[test]
    fn what_was_only_printed_or_returned_does_not_run() {
        let printed = [
            "Command running in background with ID: b1. Output is",
            "Async agent launched successfully",
            "<status>running</status>",
        ];
        for output in printed {
            for tool in ["Bash", "mcp__jobs__run"] {
                assert_eq!(ended(tool, "null", false, output), Outcome::Ok, "{tool}: {output}");
                assert_eq!(of_shown(tool, output), None, "{tool}: {output}");
            }
        }
        for returned in
            [r#"{"status":"running"}"#, r#"{"interrupted":true}"#, r#"{"task":{"status":"running"}}"#]
        {
            assert_eq!(ended("mcp__jobs__run", returned, false, ""), Outcome::Ok, "{returned}");
            let response = serde_json::from_str(returned).unwrap();
            assert_eq!(of_response("mcp__jobs__run", &response), Outcome::Ok, "{returned}");
            assert_ne!(of_response("TaskOutput", &response), Outcome::Ok, "{returned}");
        }
    }

    #[test]
    fn a_report_on_a_task_tells_how_it_is() {
        let outcome = |json: &'static str| ended("TaskOutput", json, false, "x");
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
            ClaudeOutcomeFields { tool: "Bash", denial: Some(kind), details: &Shaped::Nothing, failed: true }
                .ended("Exit code 1")
        };
        assert_eq!(outcome("cancelled"), Outcome::Cancelled);
        assert_eq!(outcome("permission-rule"), Outcome::Denied);
    }
}
