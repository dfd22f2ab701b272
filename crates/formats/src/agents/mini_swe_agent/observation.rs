//! What an observation says about how its command went.

use deloop_types::Outcome;

use super::record::Extra;
use crate::json::field;
use crate::timeout::says_timeout;

/// How the command ended; what is told beside the message counts first, then the message, which the configuration
/// may word in its own way.
pub(super) fn outcome(extra: &Extra<'_>, text: &str) -> Option<Outcome> {
    let exception = field::string(extra.exception_info);
    if field::text(extra.exception_type).is_some_and(|kind| kind == "TimeoutExpired")
        || starts_with_timeout(text)
    {
        return Some(Outcome::Timeout);
    }
    if exception == "action was not executed" {
        return Some(Outcome::Cancelled);
    }
    if is_rejection(text) {
        return Some(Outcome::Denied);
    }
    let code = field::number(extra.returncode).or_else(|| return_code(text));
    match code {
        Some(0.0) => Some(Outcome::Ok),
        Some(_) => Some(Outcome::Error),
        None => None,
    }
}

/// A person did not let the command run.
pub(super) fn is_rejection(text: &str) -> bool {
    text.starts_with("Command not executed.") || text.starts_with("Commands not executed.")
}

/// The message repeats the command, which may have several lines.
fn starts_with_timeout(text: &str) -> bool {
    let message = text.strip_prefix("The last command <command>");
    let after =
        message.and_then(|message| message.split_once("</command>")).map(|(_, after)| after.trim_start());
    after.and_then(|after| after.lines().next()).is_some_and(says_timeout)
}

/// `<returncode>1</returncode>`, or `{"returncode": 1, ...}`, perhaps after an exception.
fn return_code(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let text = match text.strip_prefix("<exception>") {
        Some(rest) => rest.split_once("</exception>")?.1.trim_start(),
        None => text,
    };
    let code = match text.strip_prefix("<returncode>") {
        Some(rest) => rest.split_once("</returncode>")?.0,
        None => {
            text.strip_prefix('{')?.trim_start().strip_prefix("\"returncode\":")?.split([',', '}']).next()?
        }
    };
    code.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_codes() {
        assert_eq!(return_code("<returncode>101</returncode>\n<output>\nx</output>"), Some(101.0));
        assert_eq!(return_code("<exception>late</exception>\n<returncode>-1</returncode>"), Some(-1.0));
        assert_eq!(return_code("{\n  \"returncode\": 0,\n  \"output\": \"\"\n}"), Some(0.0));
        assert_eq!(return_code("It printed <returncode>1</returncode>"), None);
        assert_eq!(return_code("{\"output\": \"\"}"), None);
    }

    #[test]
    fn time_limits_and_people() {
        let none = Extra::default();
        let late = "The last command <command>make</command> timed out and has been killed.\nThe output";
        assert_eq!(outcome(&none, late), Some(Outcome::Timeout));
        assert_eq!(
            outcome(&none, "Command not executed. The user rejected your command"),
            Some(Outcome::Denied)
        );
        assert_eq!(outcome(&none, "diff --git a/x b/x"), None);
    }
}
