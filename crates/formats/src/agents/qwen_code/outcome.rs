//! How a call ended.

use deloop_types::Outcome;

use crate::timeout::says_timeout;

use super::record::QwenToolCallResult;

/// The tool that runs commands. It puts lines of its own around what a command prints.
const SHELL: &str = "run_shell_command";

/// How the call of `tool` ended, from what Qwen Code noted about it, whether it answered with an error, and what it
/// answered.
pub(super) fn ended(noted: &QwenToolCallResult<'_>, tool: &str, failed: bool, output: &str) -> Outcome {
    let is_shell = tool == SHELL;
    if noted.error_type.get() == Some("execution_denied") {
        Outcome::Denied
    } else if is_shell && output.lines().next().is_some_and(says_timeout) {
        Outcome::Timeout
    } else if noted.status.get() == Some("cancelled")
        || is_shell && output.starts_with("[Operation Cancelled]")
        || is_shell && output.starts_with("Command was cancelled by user")
    {
        Outcome::Cancelled
    } else if failed
        || noted.status.get() == Some("error")
        || is_shell && exit_code(output).is_some_and(|code| code != 0)
    {
        Outcome::Error
    } else {
        Outcome::Ok
    }
}

/// The exit code that the shell tool states below a command's output.
fn exit_code(output: &str) -> Option<i64> {
    if !output.starts_with("Command: ") && !output.starts_with("Directory: ") {
        return None;
    }
    let line = output.lines().rev().take(12).find_map(|line| line.strip_prefix("Exit Code: "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_as_its_exit_code_says() {
        let shell = |code: &str| {
            format!(
                "Command: ls\nDirectory: (root)\nOutput: x\nError: (none)\nExit Code: {code}\nSignal: (none)\nProcess Group PGID: 7"
            )
        };
        let ended = |output: &str| ended(&QwenToolCallResult::default(), SHELL, false, output);
        assert_eq!(ended(&shell("0")), Outcome::Ok);
        assert_eq!(ended(&shell("101")), Outcome::Error);
        assert_eq!(ended(&shell("(none)")), Outcome::Ok);
        assert_eq!(ended("Exit Code: 1"), Outcome::Ok);
        assert_eq!(ended("Command timed out after 120000ms before it could complete."), Outcome::Timeout);
        assert_eq!(ended("[Operation Cancelled] Reason: no"), Outcome::Cancelled);
        let returned = |output| super::ended(&QwenToolCallResult::default(), "mcp__jobs__run", true, output);
        assert_eq!(returned("[Operation Cancelled] Reason: no"), Outcome::Error);
        assert_eq!(returned("Command was cancelled by user"), Outcome::Error);
    }
}
