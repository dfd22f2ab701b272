//! How a call ended: the file says so in part, its text says the rest.

use deloop_types::Outcome;
use serde_json::Value;

use super::record::{GeminiContent, GeminiFunctionResponse};
use crate::timeout::{refine, says_timeout};

/// What the model saw of a call's result.
pub(super) fn output(result: &GeminiContent<'_>) -> String {
    let mut texts: Vec<String> = result.responses.iter().map(response).collect();
    texts.push(result.text());
    texts.retain(|text| !text.is_empty());
    texts.join("\n")
}

/// What the model saw of one response: its `output` and `error`, or all of it if it has neither.
pub(super) fn response(response: &GeminiFunctionResponse<'_>) -> String {
    let Value::Object(fields) = &response.response.0 else { return plain(&response.response.0) };
    let said: Vec<String> =
        ["output", "error"].iter().filter_map(|name| fields.get(*name)).map(plain).collect();
    if said.is_empty() { plain(&response.response.0) } else { said.join("\n") }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// How a call with this status ended; nothing while it has not ended.
pub(crate) fn of_status(status: &str, tool: &str, output: &str) -> Option<Outcome> {
    match status {
        "success" => Some(of_success(tool, output)),
        "error" if refused(output) => Some(Outcome::Denied),
        "error" => Some(refine(Outcome::Error, unwrapped(output))),
        "cancelled" if refused(output) => Some(Outcome::Denied),
        "cancelled" => Some(refine(Outcome::Cancelled, unwrapped(output))),
        _ => None,
    }
}

/// How a call ended of which there is only the response.
pub(super) fn of_response(response: &GeminiFunctionResponse<'_>, output: &str) -> Outcome {
    let tool = response.name.as_str();
    let error = response.response.0.get("error").filter(|error| !error.is_null());
    let Some(error) = error else { return of_success(tool, output) };
    if refused(output) {
        return Outcome::Denied;
    }
    // A server's tool can fail with any words.
    let is_own = OWN_TOOLS.contains(&tool);
    let says_cancelled = error.as_str().is_some_and(|error| error.starts_with("[Operation Cancelled]"));
    if is_own && says_cancelled { Outcome::Cancelled } else { Outcome::Error }
}

/// Gemini CLI's own tools that work on files, on the web or in a shell.
const OWN_TOOLS: [&str; 14] = [
    "edit",
    "glob",
    "google_web_search",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
    "replace",
    SHELL,
    "save_memory",
    "search_file_content",
    "web_fetch",
    "write_file",
    "write_todos",
];
/// The tool that runs commands.
const SHELL: &str = "run_shell_command";

fn refused(output: &str) -> bool {
    const WORDS: [&str; 5] = [
        "User denied execution",
        "did not allow tool call",
        "denied by policy",
        "Tool execution blocked:",
        "Agent execution stopped by hook:",
    ];
    WORDS.iter().any(|words| output.contains(words))
}

/// A command that failed is a success to Gemini CLI: its exit code is in the text.
fn of_success(tool: &str, output: &str) -> Outcome {
    let output = unwrapped(output);
    if tool != SHELL {
        Outcome::Ok
    } else if output.lines().next().is_some_and(says_timeout) {
        Outcome::Timeout
    } else if output.starts_with("Command was cancelled by user") {
        Outcome::Cancelled
    } else if output.starts_with("Command moved to background") {
        Outcome::Running
    } else if exit_code(output).is_some_and(|code| code != 0) || killed(output) {
        Outcome::Error
    } else {
        Outcome::Ok
    }
}

/// What newer versions wrap around everything that comes from outside.
fn unwrapped(output: &str) -> &str {
    let inner = output.strip_prefix("<untrusted_context>\n");
    inner.and_then(|o| o.split("\n</untrusted_context>").next()).unwrap_or(output)
}

/// The `Exit Code: 2` of the lines after the command's own output.
fn exit_code(output: &str) -> Option<i64> {
    tail(output, "Exit Code: ")?.parse().ok()
}

/// Returns whether a `Signal: 9` follows the command's own output; older versions write 0 or `(none)` for no signal.
fn killed(output: &str) -> bool {
    tail(output, "Signal: ").is_some_and(|signal| !matches!(signal, "0" | "(none)"))
}

/// The value of one of the lines that Gemini CLI adds after a command's output.
fn tail<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    const ADDED: [&str; 5] =
        ["Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: ", "[System] "];
    let own = output.split("\n\n<hook_context>").next().unwrap_or(output);
    own.lines()
        .rev()
        .take_while(|line| line.is_empty() || ADDED.iter().any(|added| line.starts_with(added)))
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_is_told_by_the_lines_after_its_output() {
        let ended = |output: &str| of_status("success", "run_shell_command", output).unwrap();
        assert_eq!(ended("Output: no\nExit Code: 2\nProcess Group PGID: 7"), Outcome::Error);
        assert_eq!(ended("Output: ok\nProcess Group PGID: 7"), Outcome::Ok);
        let wrapped =
            "<untrusted_context>\nOutput: no\nExit Code: 2\nProcess Group PGID: 24\n</untrusted_context>";
        assert_eq!(ended(wrapped), Outcome::Error);
        assert_eq!(ended("Output: Exit Code: 2\nbye\nProcess Group PGID: 7"), Outcome::Ok);
        assert_eq!(
            ended("Output: \nError: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)"),
            Outcome::Ok
        );
        assert_eq!(ended("Output: (empty)\nSignal: 9"), Outcome::Error);
        assert_eq!(ended("Output: x\nExit Code: 1\n\n<hook_context>mind it</hook_context>"), Outcome::Error);
        assert_eq!(ended("Command moved to background (PID: 7). Output hidden."), Outcome::Running);
        for other in ["read_file", "mcp_shell_run"] {
            assert_eq!(of_status("success", other, "Exit Code: 2"), Some(Outcome::Ok));
            assert_eq!(
                of_status("success", other, "Command moved to background (PID: 7)."),
                Some(Outcome::Ok)
            );
        }
    }

    #[test]
    fn only_an_own_tool_says_in_words_that_it_was_cancelled() {
        let ended = |tool: &'static str, error: &str| {
            let json = serde_json::json!({"name": tool, "response": {"error": error}}).to_string();
            let read: GeminiFunctionResponse<'_> = serde_json::from_str(&json).unwrap();
            of_response(&read, error)
        };
        assert_eq!(ended("run_shell_command", "[Operation Cancelled] no"), Outcome::Cancelled);
        assert_eq!(ended("mcp_jobs_run", "[Operation Cancelled] no"), Outcome::Error);
        assert_eq!(ended("run_shell_command", "it printed [Operation Cancelled]"), Outcome::Error);
    }

    #[test]
    fn a_refusal_is_neither_an_error_nor_a_cancellation() {
        let ended = |status, output| of_status(status, "write_file", output);
        assert_eq!(ended("error", "Tool execution blocked: no"), Some(Outcome::Denied));
        assert_eq!(
            ended("cancelled", "[Operation Cancelled] Reason: User denied execution."),
            Some(Outcome::Denied)
        );
        assert_eq!(ended("cancelled", "[Operation Cancelled] User cancelled"), Some(Outcome::Cancelled));
        assert_eq!(ended("executing", ""), None);
    }
}
