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
    let error = response.response.0.get("error").is_some_and(|error| !error.is_null());
    match (error, output.contains("[Operation Cancelled]")) {
        (true, _) if refused(output) => Outcome::Denied,
        (true, true) => Outcome::Cancelled,
        (true, false) => Outcome::Error,
        (false, _) => of_success(response.name.as_str(), output),
    }
}

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
    if !tool.contains("shell") {
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
        assert_eq!(of_status("success", "read_file", "Exit Code: 2"), Some(Outcome::Ok));
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
