//! How a call ended.

use deloop_types::Outcome;

use super::record::{Data, Failure};

/// How the call ended, given what the model saw of it and whether a question for permission was answered with no.
pub(super) fn of(data: &Data<'_>, output: &str, denied: bool) -> Option<Outcome> {
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    let exit = data.shell_execution.0.as_ref().and_then(|shell| shell.exit_code.0);
    match data.success.0 {
        _ if denied => Some(Outcome::Denied),
        Some(false) => Some(of_failure(data.error.0.as_ref())),
        _ if last.starts_with('<') && last.contains("is still running") => Some(Outcome::Running),
        _ if exit.is_some_and(|code| code != 0.0) || exit_code(last).is_some_and(|code| code != 0) => {
            Some(Outcome::Error)
        }
        Some(true) => Some(Outcome::Ok),
        None => None,
    }
}

fn of_failure(error: Option<&Failure<'_>>) -> Outcome {
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
    fn the_last_line_tells_how_a_command_ended() {
        assert_eq!(exit_code("<exited with exit code 2>"), Some(2));
        assert_eq!(exit_code("<shellId: 7 completed with exit code 128>"), Some(128));
        assert_eq!(exit_code("make: exit code 2"), None);
        assert_eq!(exit_code("<exit code x>"), None);
    }
}
