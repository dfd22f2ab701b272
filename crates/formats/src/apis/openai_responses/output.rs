//! What tools answer in the Responses API: a string, text parts, or what a shell printed and how it ended.

use deloop_types::Outcome;
use serde::Deserialize;
use serde_json::Value;

use crate::apis::openai_messages::message::begins_with_error;
use crate::json::field::{self, Field};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Printed<'a> {
    #[serde(borrow)]
    stdout: Field<'a>,
    #[serde(borrow)]
    stderr: Field<'a>,
    #[serde(borrow)]
    outcome: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ShellOutcome<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    exit_code: Field<'a>,
}

/// The text that the model saw; `None` when it is not recorded.
pub(super) fn text(output: Field<'_>) -> Option<String> {
    output.map(|_| shown(output))
}

fn shown(output: Field<'_>) -> String {
    let text = field::content(output);
    if !text.is_empty() {
        return text;
    }
    let printed: Vec<Printed<'_>> = printed(output).collect();
    if printed.is_empty() {
        return match field::json(output) {
            Value::String(text) => text,
            other => other.to_string(),
        };
    }
    let texts = printed.iter().flat_map(|p| [field::string(p.stdout), field::string(p.stderr)]);
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// How the call ended, if the output tells.
pub(super) fn outcome(output: Field<'_>, text: &str) -> Option<Outcome> {
    let ended: Vec<ShellOutcome<'_>> = printed(output).filter_map(|p| field::object(p.outcome)).collect();
    if ended.iter().any(|e| field::text(e.kind).is_some_and(|kind| kind == "timeout")) {
        return Some(Outcome::Timeout);
    }
    let codes = ended.iter().filter_map(|e| field::number(e.exit_code));
    if let Some(failed) = codes.map(|code| code != 0.0).reduce(|a, b| a | b) {
        return Some(if failed { Outcome::Error } else { Outcome::Ok });
    }
    match exit_code(text) {
        Some(0) => Some(Outcome::Ok),
        Some(_) => Some(Outcome::Error),
        None => begins_with_error(text).then_some(Outcome::Error),
    }
}

fn printed(output: Field<'_>) -> impl Iterator<Item = Printed<'_>> {
    let parts = field::items(output).into_iter().filter_map(|part| field::object::<Printed<'_>>(Some(part)));
    parts.filter(|part| part.stdout.is_some() || part.stderr.is_some())
}

/// The exit code that shells' wrappers state in their output.
pub(crate) fn exit_code(text: &str) -> Option<i64> {
    if text.starts_with('{') {
        let value: Value = serde_json::from_str(text).ok()?;
        let code = value.pointer("/metadata/exit_code").or_else(|| value.get("exit_code"));
        return code.and_then(Value::as_i64);
    }
    let line = |prefix: &'static str| text.lines().take(5).find_map(move |line| line.strip_prefix(prefix));
    let code = line("Process exited with code ").or_else(|| line("Exit code: "))?;
    code.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_in_well_known_places() {
        assert_eq!(exit_code("Wall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nx"), Some(2));
        assert_eq!(exit_code("Exit code: 0\nWall time: 1 s"), Some(0));
        assert_eq!(exit_code(r#"{"output":"x","metadata":{"exit_code":101}}"#), Some(101));
        assert_eq!(exit_code("the log says: Exit code: 3"), None);
        assert_eq!(exit_code("{not json"), None);
    }
}
