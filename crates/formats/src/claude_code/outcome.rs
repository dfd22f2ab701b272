//! How a call ended.

use deloop_types::Outcome;

use crate::lenient::Shaped;

use super::record::Signs;

/// How a failed result begins that says that a person or a rule refused the call.
const REFUSED: [&str; 7] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission to use ",
    "Claude requested permissions to ",
    "This command requires approval",
    "This Bash command contains multiple operations",
    "PreToolUse:",
];

/// How a failed result begins that says that the call was called off.
const CALLED_OFF: [&str; 5] = [
    "[Request interrupted by user",
    "[Tool call ",
    "[Agent call interrupted",
    "<tool_use_error>Sibling tool call errored",
    "<tool_use_error>Cancelled: ",
];

const TIMED_OUT: &str = "Command timed out after ";

/// What says how a call ended, beside its output.
pub(super) struct Evidence<'a> {
    /// The record's `toolDenialKind`.
    pub(super) denial: Option<&'a str>,
    /// Its `toolUseResult`.
    pub(super) signs: &'a Shaped<'a, Signs<'a>>,
    /// The result's `is_error`.
    pub(super) failed: bool,
}

impl Evidence<'_> {
    /// How the call ended.
    pub(super) fn ended(&self, output: &str) -> Outcome {
        match self.denial {
            Some("interrupted" | "cancelled") => Outcome::Cancelled,
            Some(_) => Outcome::Denied,
            None if self.failed => failure(output),
            None => self.success(output),
        }
    }

    fn success(&self, output: &str) -> Outcome {
        let Shaped::Object(signs) = self.signs else { return Outcome::Ok };
        if signs.interrupted.0 {
            return if timed_out(output) { Outcome::Timeout } else { Outcome::Cancelled };
        }
        let task = match &signs.task {
            Shaped::Object(task) => task.status.or_empty(),
            _ => "",
        };
        let launched = signs.background_task_id.get().is_some();
        let running = matches!(signs.status.or_empty(), "running" | "async_launched" | "remote_launched");
        if launched || running || task == "running" { Outcome::Running } else { Outcome::Ok }
    }
}

fn failure(output: &str) -> Outcome {
    if REFUSED.iter().any(|start| output.starts_with(start)) {
        Outcome::Denied
    } else if CALLED_OFF.iter().any(|start| output.starts_with(start)) {
        Outcome::Cancelled
    } else if timed_out(output) {
        Outcome::Timeout
    } else {
        Outcome::Error
    }
}

/// The first lines say so, after the exit code; in older versions the last ones, after the output.
fn timed_out(output: &str) -> bool {
    let says_so = |line: &str| line.trim_start_matches("<error>").starts_with(TIMED_OUT);
    output.lines().take(3).any(says_so) || output.lines().rev().take(3).any(says_so)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart_by_their_first_words() {
        let outcome = |output| Evidence { denial: None, signs: &Shaped::Nothing, failed: true }.ended(output);
        assert_eq!(outcome("Exit code 1\nno such file"), Outcome::Error);
        assert_eq!(outcome("Exit code 143\nCommand timed out after 2m 0s\n"), Outcome::Timeout);
        assert_eq!(outcome("PreToolUse:Bash hook error: no"), Outcome::Denied);
        assert_eq!(outcome("<tool_use_error>Sibling tool call errored</tool_use_error>"), Outcome::Cancelled);
        assert_eq!(outcome("The user doesn't want to proceed with this tool use. The"), Outcome::Denied);
    }

    #[test]
    fn the_agents_own_word_counts_most() {
        let outcome = |kind| {
            Evidence { denial: Some(kind), signs: &Shaped::Nothing, failed: true }.ended("Exit code 1")
        };
        assert_eq!(outcome("cancelled"), Outcome::Cancelled);
        assert_eq!(outcome("permission-rule"), Outcome::Denied);
    }
}
