//! Detects whether an agent ended a call because it timed out.

use deloop_types::Outcome;

/// The beginning of the line in which an agent reports a time-out, and what the line contains further on.
const PHRASES: [(&str, &str); 10] = [
    ("Command timed out after ", ""),
    ("command timed out after ", ""),
    ("<error>Command timed out after ", ""),
    ("Tool execution timed out after ", ""),
    ("Command execution timed out after ", ""),
    ("Command was automatically cancelled because it exceeded the timeout", ""),
    ("EXECUTION TIMED OUT", ""),
    ("The command '", "was cancelled because it took more than"),
    ("timed out and has been killed", ""),
    ("", " tool terminated command after exceeding timeout"),
];

/// Maximum number of lines before that line.
const HEAD: usize = 8;

/// Maximum number of lines after it.
const TAIL: usize = 3;

/// Returns whether a result starts or ends with an agent's own message about a time-out.
pub(crate) fn says_timeout(output: &str) -> bool {
    let says =
        |line: &str| PHRASES.iter().any(|(start, inside)| line.starts_with(start) && line.contains(inside));
    output.lines().take(HEAD).any(says) || output.lines().rev().take(TAIL).any(says)
}

/// Returns how a call ended. One that failed or was cancelled counts as timed out if its output reports that.
pub(crate) fn refine(ended: Outcome, output: &str) -> Outcome {
    match ended {
        Outcome::Error | Outcome::Cancelled if says_timeout(output) => Outcome::Timeout,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use deloop_types::{Body, Step};

    use super::*;
    use crate::fixture::steps;

    /// A call that timed out, as each format writes it.
    const SHAPES: &[(&str, &str)] = &[
        (
            "claude-code",
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"Exit code 143\nCommand timed out after 2m 0s"}]}}"#,
        ),
        (
            "claude-code-stream",
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"Command timed out after 2m 0s"}]},"parent_tool_use_id":null,"session_id":"s"}"#,
        ),
        (
            "codex",
            r#"{"timestamp":"2026-03-01T10:00:00Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"Exit code: 124\nWall time: 10 seconds\nOutput:\ncommand timed out after 10000 milliseconds"}}"#,
        ),
        (
            "copilot-cli",
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"c","success":false,"error":{"code":"timeout","message":"late"}}}"#,
        ),
        (
            "qwen-code",
            r#"{"type":"tool_result","message":{"parts":[{"functionResponse":{"id":"c","name":"run_shell_command","response":{"output":"Command timed out after 120000ms before it could complete."}}}]}}"#,
        ),
        (
            "pi",
            r#"{"type":"message","id":"a","message":{"role":"toolResult","toolCallId":"c","isError":true,"content":[{"type":"text","text":"x\n\nCommand timed out after 10 seconds"}]}}"#,
        ),
        (
            "gemini-cli",
            r#"{"id":"m","type":"gemini","toolCalls":[{"id":"c","name":"run_shell_command","status":"success","result":"Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output."}]}"#,
        ),
        (
            "gemini-cli-json",
            r#"{"sessionId":"s","messages":[{"id":"m","type":"gemini","toolCalls":[{"id":"c","name":"run_shell_command","status":"cancelled","result":"Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output."}]}]}"#,
        ),
        (
            "opencode",
            r#"{"info":{"id":"s"},"messages":[{"info":{"role":"assistant"},"parts":[{"type":"tool","callID":"c","tool":"bash","state":{"status":"completed","output":"x\n<bash_metadata>\nbash tool terminated command after exceeding timeout 120000 ms\n</bash_metadata>"}}]}]}"#,
        ),
        (
            "openhands",
            r#"[{"kind":"ObservationEvent","source":"environment","tool_call_id":"c","observation":{"is_error":true,"timeout":true,"exit_code":124}}]"#,
        ),
        (
            "goose",
            r#"{"role":"user","created":1,"content":[{"type":"toolResponse","id":"c","toolResult":{"status":"success","value":{"content":[],"isError":true,"structuredContent":{"timed_out":true}}}}]}"#,
        ),
        (
            "cline",
            r#"[{"role":"user","content":[{"type":"text","text":"[execute_command for 'make'] Result:\nCommand execution timed out after 30 seconds."}]}]"#,
        ),
        (
            "cursor",
            r#"{"role":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"Command timed out after 30000ms"}]}}"#,
        ),
        (
            "swe-agent",
            r#"{"trajectory":[{"action":"make","observation":"EXECUTION TIMED OUT BECAUSE NO OUTPUT","response":"","thought":""}]}"#,
        ),
        (
            "mini-swe-agent",
            r#"{"info":{"mini_version":"1.0"},"messages":[{"role":"user","content":"Do it."},{"role":"assistant","content":"```bash\nmake\n```"},{"role":"user","content":"The last command <command>make\nall</command> timed out and has been killed.\nThe output"}]}"#,
        ),
        (
            "anthropic-messages",
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"Command timed out after 30s"}]}]"#,
        ),
        (
            "atif",
            r#"{"schema_version":"ATIF-v1.6","agent":{"name":"claude-code"},"steps":[{"step_id":1,"source":"agent","tool_calls":[{"tool_call_id":"c","function_name":"Bash"}],"observation":{"results":[{"source_call_id":"c","content":"Command timed out after 2m 0s\n\n[error] tool reported failure"}]}}]}"#,
        ),
        (
            "openai-responses",
            r#"[{"type":"shell_call_output","call_id":"c","output":[{"stdout":"x","outcome":{"type":"timeout"}}]}]"#,
        ),
        (
            "openai-messages",
            r#"[{"role":"tool","tool_call_id":"c","content":"Error: the tool failed\nCommand timed out after 30s"}]"#,
        ),
        (
            "openai-messages-jsonl",
            r#"{"messages":[{"role":"tool","tool_call_id":"c","content":"Error: the tool failed\nCommand timed out after 30s"}]}"#,
        ),
        ("native", r#"{"type":"result","id":"c","outcome":"timeout","output":"x"}"#),
    ];

    /// A span only has a status, so the words are put into the outputs of a whole trace.
    const TRACES: [(&str, &str); 2] = [
        ("openinference", include_str!("apis/openinference/fixtures/stuck.json")),
        ("otlp", include_str!("apis/otlp/fixtures/stuck.json")),
    ];

    /// Returns `ok` and `outcome` of every result.
    fn ends(format: &dyn crate::Format, text: &str) -> Vec<(Option<bool>, Option<Outcome>)> {
        let end = |step: Step| match step.body {
            Body::Result(result) => Some((result.ok, result.outcome)),
            _ => None,
        };
        steps(format, text.as_bytes(), "a/b.json").0.into_iter().filter_map(end).collect()
    }

    #[test]
    fn a_timeout_is_the_same_in_every_format() {
        const TIMED_OUT: (Option<bool>, Option<Outcome>) = (None, Some(Outcome::Timeout));
        for format in crate::FORMATS {
            let name = format.name();
            let find = |shapes: &[(&str, &'static str)]| {
                shapes.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
            };
            if let Some(trace) = find(&TRACES) {
                let late = trace.replace("error[E0425]: cannot find", "Command timed out after 30s");
                assert_eq!(ends(*format, &late), [TIMED_OUT; 7], "{name}");
            } else {
                let shape = find(SHAPES).unwrap_or_else(|| panic!("{name} has no shape"));
                assert_eq!(ends(*format, shape), [TIMED_OUT], "{name}");
            }
        }
    }

    #[test]
    fn only_an_agents_own_words_count() {
        assert!(says_timeout("1\n2\n3\nCommand timed out after 2m 0s"));
        assert!(!says_timeout("FAIL login: request timed out after 5000 ms"));
        assert!(!says_timeout(&format!("{0}Command timed out after 1s\n{0}", "line\n".repeat(9))));
        assert_eq!(refine(Outcome::Ok, "Command timed out after 2m 0s"), Outcome::Ok);
    }
}
