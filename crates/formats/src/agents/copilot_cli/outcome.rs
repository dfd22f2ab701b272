//! How a call ended.

use deloop_types::Outcome;

use super::record::{CopilotError, Data};

/// How the answer to a question begins when nobody is there to answer it.
const NOBODY_THERE: &str = "User responded: The user is not available";

/// How the call ended, given what the model saw of it and whether a question for permission was answered with no.
pub(super) fn of(data: &Data<'_>, output: &str, denied: bool) -> Option<Outcome> {
    let exit = data.shell_execution.0.as_ref().and_then(|shell| shell.exit_code.0);
    match data.success.0 {
        _ if denied => Some(Outcome::Denied),
        Some(false) => Some(of_failure(data.error.0.as_ref())),
        told => match of_text(output) {
            None | Some(Outcome::Ok) if exit.is_some_and(|code| code != 0.0) => Some(Outcome::Error),
            None => told.map(|_| Outcome::Ok),
            outcome => outcome,
        },
    }
}

/// How a call ended that did not fail, as far as its text tells.
pub(crate) fn of_text(output: &str) -> Option<Outcome> {
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    if runs(output, last) {
        Some(Outcome::Running)
    } else if output.starts_with(NOBODY_THERE) {
        Some(Outcome::Denied)
    } else {
        exit_code(last).map(|code| if code == 0 { Outcome::Ok } else { Outcome::Error })
    }
}

/// Returns whether a command or a subagent was started and has not ended.
fn runs(output: &str, last_line: &str) -> bool {
    let command = last_line.starts_with("<command started in background ")
        || last_line.starts_with('<') && last_line.contains("is still running");
    command
        || output.starts_with("Agent started in background ")
        || output.starts_with("Agent is still running ")
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
        let told = |output: &str| of(&Data::default(), output, false);
        assert_eq!(told("<command started in background with shellId: watch>"), Some(Outcome::Running));
        assert_eq!(
            told("a\n<command with shellId: 7 is still running after 30 seconds. ...>"),
            Some(Outcome::Running)
        );
        assert_eq!(told("Agent started in background with agent_id: a1"), Some(Outcome::Running));
        assert_eq!(told("Agent is still running after waiting 30s."), Some(Outcome::Running));
        assert_eq!(told("Agent is idle"), None);
        assert_eq!(told("User responded: The user is not available to respond"), Some(Outcome::Denied));
    }

    #[test]
    fn the_last_line_tells_how_a_command_ended() {
        assert_eq!(exit_code("<exited with exit code 2>"), Some(2));
        assert_eq!(exit_code("<shellId: 7 completed with exit code 128>"), Some(128));
        assert_eq!(exit_code("make: exit code 2"), None);
        assert_eq!(exit_code("<exit code x>"), None);
    }
}
