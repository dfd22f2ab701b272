//! How a call ended. ATIF has no field for it, so each exporter has its own way.

use deloop_types::Outcome;
use serde::Deserialize;

use crate::agents::claude_code;
use crate::apis::openai_messages::message::begins_with_error;
use crate::apis::openai_responses::output::exit_code;
use crate::json::field::{self, Field};

/// The line that Harbor adds to a failed result of Claude Code.
const FAILED: &str = "[error] tool reported failure";
/// How the line begins in which Harbor keeps the rest of a result of Claude Code. It may differ from call to call.
const METADATA: &str = "[metadata] {";

/// What exporters put beside a result, or beside the step of a single call.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultExtra<'a> {
    #[serde(borrow)]
    is_error: Field<'a>,
    #[serde(borrow)]
    tool_result_is_error: Field<'a>,
    #[serde(borrow)]
    status: Field<'a>,
    #[serde(borrow)]
    exit_code: Field<'a>,
    #[serde(borrow)]
    return_code: Field<'a>,
    #[serde(borrow)]
    returncode: Field<'a>,
}

impl ResultExtra<'_> {
    /// Returns how the call ended, if this says so.
    pub(super) fn outcome(&self) -> Option<Outcome> {
        let of = |failed: bool| if failed { Outcome::Error } else { Outcome::Ok };
        if let Some(failed) = [self.is_error, self.tool_result_is_error].into_iter().find_map(field::flag) {
            return Some(of(failed));
        }
        let status = field::string(self.status).to_ascii_lowercase();
        match status.as_str() {
            "error" | "failed" | "failure" => return Some(Outcome::Error),
            "cancelled" | "canceled" => return Some(Outcome::Cancelled),
            "timeout" | "timed_out" => return Some(Outcome::Timeout),
            _ => {}
        }
        let codes = [self.exit_code, self.return_code, self.returncode];
        let code = codes.into_iter().find_map(field::number);
        code.map(|code| of(code != 0.0))
            .or_else(|| matches!(status.as_str(), "success" | "ok" | "completed").then_some(Outcome::Ok))
    }
}

/// Returns the output of `tool` without what Harbor added to it, and how the call ended as far as the text says so.
pub(super) fn of_text<'a>(agent: &str, tool: &str, mut output: &'a str) -> (&'a str, Option<Outcome>) {
    let unmarked = output.trim_end().strip_suffix(FAILED);
    let is_failed = unmarked.is_some_and(|rest| rest.is_empty() || rest.ends_with('\n'));
    if is_failed {
        output = unmarked.unwrap_or_default().trim_end();
    }
    if agent == "claude-code" {
        let last = output.rsplit('\n').next().unwrap_or_default();
        if last.starts_with(METADATA) {
            output = output[..output.len() - last.len()].trim_end();
        }
    }
    let outcome = match (is_failed, agent) {
        (true, _) => Some(claude_code::of_failure(tool, output)),
        (false, "claude-code") => Some(claude_code::of_shown(tool, output).unwrap_or(Outcome::Ok)),
        (false, _) => match exit_code(output) {
            Some(0) => Some(Outcome::Ok),
            Some(_) => Some(Outcome::Error),
            None => begins_with_error(output).then_some(Outcome::Error),
        },
    };
    (output, outcome)
}
