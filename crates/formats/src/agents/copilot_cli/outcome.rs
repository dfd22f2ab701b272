//! How a call ended.

use deloop_types::Outcome;

use super::record::{CopilotError, Data};

/// How the answer to a question begins when nobody is there to answer it.
const NOBODY_THERE: &str = "User responded: The user is not available";

/// How the call of `tool` ended, given what the model saw of it and whether a question for permission was answered with no.
pub(super) fn of(data: &Data<'_>, tool: &str, output: &str, denied: bool) -> Option<Outcome> {
    let exit = data.shell_execution.0.as_ref().and_then(|shell| shell.exit_code.0);
    match data.success.0 {
        _ if denied => Some(Outcome::Denied),
        Some(false) => Some(of_failure(data.error.0.as_ref())),
        told => match of_text(tool, output) {
            None | Some(Outcome::Ok) if exit.is_some_and(|code| code != 0.0) => Some(Outcome::Error),
            None => told.map(|_| Outcome::Ok),
            outcome => outcome,
        },
    }
}

/// The tools that run commands. The last line of what they return is Copilot's own, whatever a command prints.
const SHELLS: [&str; 8] = [
    "bash",
    "powershell",
    "read_bash",
    "read_powershell",
    "stop_bash",
    "stop_powershell",
    "write_bash",
    "write_powershell",
];
/// The tools that start subagents, or look at them.
const AGENTS: [&str; 4] = ["agent", "read_agent", "task", "write_agent"];
/// The tool that asks the user.
const ASKS: &str = "ask_user";

/// How a call of `tool` ended that did not fail, as far as its text tells. What a tool of an MCP server returns tells
/// nothing.
pub(crate) fn of_text(tool: &str, output: &str) -> Option<Outcome> {
    let is = |names: &[&str]| names.iter().any(|name| tool.eq_ignore_ascii_case(name));
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    if is(&SHELLS) && shell_runs(last) || is(&AGENTS) && agent_runs(output) {
        Some(Outcome::Running)
    } else if is(&[ASKS]) && output.starts_with(NOBODY_THERE) {
        Some(Outcome::Denied)
    } else {
        let code = exit_code(last).filter(|_| is(&SHELLS));
        code.map(|code| if code == 0 { Outcome::Ok } else { Outcome::Error })
    }
}

/// Returns whether a command was started and has not ended.
fn shell_runs(last_line: &str) -> bool {
    last_line.starts_with("<command started in background ")
        || last_line.starts_with('<') && last_line.contains("is still running")
}

/// Returns whether a subagent was started and has not ended.
fn agent_runs(output: &str) -> bool {
    output.starts_with("Agent started in background ") || output.starts_with("Agent is still running ")
}

fn of_failure(error: Option<&CopilotError<'_>>) -> Outcome {
    let (code, message) = error.map_or(("", ""), |error| (error.code.as_str(), error.message.as_str()));
    match code {
        "denied" | "rejected" => Outcome::Denied,
        "cancelled" | "canceled" | "aborted" => Outcome::Cancelled,
        "timeout" => Outcome::Timeout,
        _ if message.starts_with("Denied by preToolUse hook") => Outcome::Denied,
        _ if message.contains("rejected this tool call") => Outcome::Denied,
        _ => Outcome::Error,
    }
}

/// The code in the line that ends a command's output: `<exited with exit code 2>`,
/// `<shellId: 7 completed with exit code 2>`.
fn exit_code(last_line: &str) -> Option<i64> {
    let (_, code) = last_line.strip_prefix('<')?.strip_suffix('>')?.rsplit_once("exit code ")?;
    code.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_started_and_not_awaited_still_runs() {
        let told = |tool: &str, output: &str| of(&Data::default(), tool, output, false);
        let started = "<command started in background with shellId: watch>";
        assert_eq!(told("bash", started), Some(Outcome::Running));
        assert_eq!(told("Bash", started), Some(Outcome::Running));
        assert_eq!(told("jobs-run", started), None);
        assert_eq!(told("jobs-run", "<exited with exit code 0>"), None);
        assert_eq!(
            told("read_bash", "a\n<command with shellId: 7 is still running after 30 seconds. ...>"),
            Some(Outcome::Running)
        );
        assert_eq!(told("task", "Agent started in background with agent_id: a1"), Some(Outcome::Running));
        assert_eq!(told("read_agent", "Agent is still running after waiting 30s."), Some(Outcome::Running));
        assert_eq!(told("read_agent", "Agent is idle"), None);
        let nobody = "User responded: The user is not available to respond";
        assert_eq!(told("ask_user", nobody), Some(Outcome::Denied));
    }

    #[test]
    fn the_last_line_tells_how_a_command_ended() {
        assert_eq!(exit_code("<exited with exit code 2>"), Some(2));
        assert_eq!(exit_code("<shellId: 7 completed with exit code 128>"), Some(128));
        assert_eq!(exit_code("make: exit code 2"), None);
        assert_eq!(exit_code("<exit code x>"), None);
    }
}
