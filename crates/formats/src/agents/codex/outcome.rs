//! How a call ended, from what Codex writes at the head of an output and from its events.

use deloop_types::Outcome;
use serde::Deserialize;

use crate::json::tolerant::{self, Flag, Number, Shaped, Text};

use crate::timeout::refine;

use super::record::{CodexMcpResult, Payload};

/// How an output begins that says that a person or a rule refused the call.
const REFUSED: [&str; 9] = [
    "exec command rejected by user",
    "patch rejected",
    "rejected by user",
    "user rejected ",
    "approval policy is ",
    "approval required by policy",
    "This action was rejected due to unacceptable risk",
    "Command blocked by PreToolUse hook",
    "Tool call blocked by PreToolUse hook",
];

/// How an output begins that says that the call was called off.
const CALLED_OFF: [&str; 2] = ["aborted", "user cancelled "];

/// How an output begins that says that the call could not be made.
const FAILED: [&str; 13] = [
    "error: ",
    "exec_command failed",
    "write_stdin failed",
    "apply_patch verification failed",
    "failed to parse function arguments",
    "execution error:",
    "tool call error:",
    "unsupported call:",
    "unsupported custom tool call:",
    "collab spawn failed",
    "resources/list failed",
    "resources/read failed",
    "resource_templates/list failed",
];

/// What the error of a command holds that a rule refused.
const REJECTED: &str = "CreateProcess { message: \"Rejected(";

/// How a call ended of which a hook gets what the command printed, without Codex's own lines. It may print such lines
/// itself, which can count against it but never for it.
pub(crate) fn failure_from_printed(output: &str) -> Option<Outcome> {
    const HEADS: [&str; 4] = ["Chunk ID: ", "Command: ", "Process ", "Wall time"];
    let outcome = HEADS.iter().any(|head| output.starts_with(head)).then(|| outcome_from_output(output))?;
    outcome.filter(|outcome| outcome.failed())
}

/// How a call ended, if its output says so.
pub(super) fn outcome_from_output(output: &str) -> Option<Outcome> {
    if output.starts_with('{') {
        return outcome_from_json(output);
    }
    for line in after_command(output).lines() {
        if let Some(code) =
            line.strip_prefix("Process exited with code ").or_else(|| line.strip_prefix("Exit code: "))
        {
            return code.trim().parse().ok().map(|code: i64| exited(code, output));
        }
        let starts = |with: &[&str]| with.iter().any(|start| line.starts_with(start));
        if starts(&["Process running with session ID "]) {
            return Some(Outcome::Running);
        } else if starts(&REFUSED) || starts(&["exec_command failed for "]) && output.contains(REJECTED) {
            return Some(Outcome::Denied);
        } else if starts(&CALLED_OFF) {
            return Some(Outcome::Cancelled);
        } else if starts(&FAILED) {
            return Some(Outcome::Error);
        } else if line == "Plan updated" {
            return Some(Outcome::Ok);
        } else if !starts(&["Chunk ID: ", "Wall time"]) {
            return None;
        }
    }
    None
}

/// An output without the command at its head, which some versions repeat and which may have several lines.
fn after_command(output: &str) -> &str {
    let command = output.starts_with("Command: ").then(|| output.find("\nChunk ID: ")).flatten();
    command.and_then(|at| output.get(at + 1..)).unwrap_or(output)
}

/// The tools that answer with a JSON object, and with a text when they fail.
pub(super) fn answers_with_json(tool: &str) -> bool {
    const TOOLS: [&str; 9] = [
        "spawn_agent",
        "wait_agent",
        "send_input",
        "resume_agent",
        "close_agent",
        "request_user_input",
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    ];
    TOOLS.contains(&tool.strip_prefix("collaboration.").unwrap_or(tool))
}

/// Returns whether what a tool started may still run when it answers. Codex then says so at the head of the output.
pub(super) fn leaves_running(tool: &str) -> bool {
    matches!(tool, "exec_command" | "write_stdin" | "unified_exec")
}

/// Returns whether a tool belongs to an MCP server or another program, so that nothing in its output is Codex's own.
pub(super) fn is_foreign(tool: &str) -> bool {
    tool.starts_with("mcp__") || tool.split_once('.').is_some_and(|(space, _)| !OWN_SPACES.contains(&space))
}

/// The namespaces of Codex's own tools.
const OWN_SPACES: [&str; 3] = ["collaboration", "container", "functions"];

/// How a call of one of these tools ended. A subagent that has not answered in time still runs.
pub(super) fn outcome_from_answer(output: &str) -> Option<Outcome> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct TimedOutAnswer {
        timed_out: Flag,
    }
    if !output.starts_with('{') {
        return None;
    }
    let answer: TimedOutAnswer = tolerant::read(output.as_bytes()).ok()?;
    Some(if answer.timed_out.is_true() { Outcome::Running } else { Outcome::Ok })
}

/// Versions of 2025 give the model a JSON object.
fn outcome_from_json(output: &str) -> Option<Outcome> {
    let result: CommandResult<'_> = tolerant::read(output.as_bytes()).ok()?;
    let code = result.metadata.object()?.exit_code.whole()?;
    Some(exited(code, result.output.as_str()))
}

/// What the command in such an object printed.
fn inner_output(output: &str) -> Option<String> {
    if !output.starts_with('{') {
        return None;
    }
    let result: CommandResult<'_> = tolerant::read(output.as_bytes()).ok()?;
    let CommandResult { output, metadata } = result;
    metadata.object()?.exit_code.whole()?;
    output.get().map(str::to_owned)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CommandResult<'a> {
    #[serde(borrow)]
    output: Text<'a>,
    #[serde(borrow)]
    metadata: Shaped<'a, CommandMetadata>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CommandMetadata {
    exit_code: Number,
}

/// Returns how a command ended that exited with `code`.
pub(super) fn exited(code: i64, output: &str) -> Outcome {
    match code {
        0 => Outcome::Ok,
        TIME_LIMIT => Outcome::Timeout,
        _ => refine(Outcome::Error, output),
    }
}

/// What a command printed, without the lines that Codex puts before it or the object that it puts around it.
pub(super) fn printed(output: String) -> String {
    const HEADS: [&str; 5] = ["Exit code: ", "Chunk ID: ", "Wall time", "Process ", "Command: "];
    let has_head = HEADS.iter().any(|head| output.starts_with(head));
    let head = output.get(..output.len().min(LONGEST_HEAD)).unwrap_or(&output);
    match head.find("\nOutput:\n").filter(|_| has_head) {
        Some(at) => output[at + "\nOutput:\n".len()..].to_owned(),
        None => inner_output(&output).unwrap_or(output),
    }
}

/// The exit code that Codex gives a command that ran into its time limit.
const TIME_LIMIT: i64 = 124;
/// The longest head that Codex puts before an output, in bytes.
const LONGEST_HEAD: usize = 2000;

/// The call that an event is about and how it ended, if the event says so.
pub(super) fn outcome_from_event(event: Payload<'_>) -> Option<(String, Outcome)> {
    match event.kind.as_str() {
        "item_completed" => {
            let item = event.item.object()?;
            let outcome = outcome_from_status(item.status.as_str(), item.exit_code)?;
            Some((item.id.get()?.to_owned(), outcome))
        }
        "mcp_tool_call_end" => {
            let CodexMcpResult { ok, err } = event.result.object()?;
            let failed = err.get().is_some() || ok.object().is_some_and(|reply| reply.is_error.is_true());
            Some((event.call_id.get()?.to_owned(), if failed { Outcome::Error } else { Outcome::Ok }))
        }
        _ => {
            let told = outcome_from_status(event.status.as_str(), event.exit_code);
            let success = event.success.as_bool().map(|ok| if ok { Outcome::Ok } else { Outcome::Error });
            Some((event.call_id.get()?.to_owned(), told.or(success)?))
        }
    }
}

fn outcome_from_status(status: &str, exit_code: Number) -> Option<Outcome> {
    match (status, exit_code.whole()) {
        ("declined", _) => Some(Outcome::Denied),
        ("failed", _) => Some(Outcome::Error),
        (_, Some(code)) => Some(if code == 0 { Outcome::Ok } else { Outcome::Error }),
        ("completed", None) => Some(Outcome::Ok),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_an_output_tells_how_it_ended() {
        let head = "Chunk ID: 24449d\nWall time: 0.0000 seconds\n";
        let told = |rest: &str| outcome_from_output(&format!("{head}{rest}"));
        assert_eq!(told("Process exited with code 0\nOutput:\nExit code: 7"), Some(Outcome::Ok));
        assert_eq!(told("Process exited with code -1\nOutput:\n"), Some(Outcome::Error));
        assert_eq!(told("Process running with session ID 7\nOutput:\n"), Some(Outcome::Running));
        assert_eq!(told("aborted by user"), Some(Outcome::Cancelled));
        assert_eq!(told("Output:\nExit code: 7"), None);
        let late =
            "Exit code: 124\nWall time: 10 seconds\nOutput:\ncommand timed out after 10000 milliseconds";
        assert_eq!(outcome_from_output(late), Some(Outcome::Timeout));
        assert_eq!(outcome_from_output("exec command rejected by user"), Some(Outcome::Denied));
        assert_eq!(outcome_from_output("Plan updated"), Some(Outcome::Ok));
        assert_eq!(outcome_from_output("Plan updated later"), None);
        assert_eq!(outcome_from_output(""), None);
        let repeated =
            "Command: /bin/sh -c 'cat <<E\nExit code: 7\nE'\nChunk ID: 1\nProcess exited with code 0\n";
        assert_eq!(outcome_from_output(repeated), Some(Outcome::Ok));
        let rejected =
            "exec_command failed for `rm -rf x`: CreateProcess { message: \"Rejected(\\\"no\\\")\" }";
        assert_eq!(outcome_from_output(rejected), Some(Outcome::Denied));
    }

    #[test]
    fn agents_that_have_not_answered_still_run() {
        assert_eq!(outcome_from_answer(r#"{"status":{},"timed_out":true}"#), Some(Outcome::Running));
        assert_eq!(
            outcome_from_answer(r#"{"message":"Wait completed.","timed_out":false}"#),
            Some(Outcome::Ok)
        );
        assert_eq!(outcome_from_answer(r#"{"agent_id":"a1"}"#), Some(Outcome::Ok));
        assert_eq!(outcome_from_answer("timeout_ms must be at least 10000"), None);
    }

    #[test]
    fn a_command_that_prints_codexs_lines_may_fail_but_neither_runs_nor_is_called_off() {
        let told = |line: &str| failure_from_printed(&format!("Chunk ID: 1\n{line}\nOutput:\nx"));
        assert_eq!(told("Process exited with code 2"), Some(Outcome::Error));
        for line in
            ["Process running with session ID 7", "aborted", "patch rejected", "Process exited with code 0"]
        {
            assert_eq!(told(line), None, "{line}");
        }
        assert_eq!(failure_from_printed("Process running with session ID 7"), None);
    }

    #[test]
    fn tools_of_servers_are_foreign() {
        assert!(is_foreign("mcp__jobs__run") && is_foreign("mcp__jobs.run") && is_foreign("jobs.run"));
        assert!(!is_foreign("exec_command") && !is_foreign("collaboration.wait_agent"));
    }

    #[test]
    fn so_does_the_json_of_old_versions() {
        let json = |code: i32| {
            format!(r#"{{"output":"x\n","metadata":{{"exit_code":{code},"duration_seconds":0.1}}}}"#)
        };
        assert_eq!(outcome_from_output(&json(0)), Some(Outcome::Ok));
        assert_eq!(outcome_from_output(&json(2)), Some(Outcome::Error));
        assert_eq!(outcome_from_output(r#"{"any":"thing"}"#), None);
        assert_eq!(outcome_from_output("{ not JSON"), None);
    }
}
