//! What a script showed of its calls' results. A command's result is an object with `output` and either the
//! `exit_code` or the `session_id` under which it still runs; a script often shows the output alone.

use std::borrow::Cow;

use deloop_types::Outcome;
use serde::Deserialize;

use crate::json::tolerant::{self, Number, Text};
use crate::text::append;

use super::{CodexLabelField, CodexScript, Label};
use crate::agents::codex::outcome::{exited, outcome_from_output};

/// The tools whose calls throw when they fail, so that a completed script tells that they went well.
const THROWING: [&str; 5] = ["apply_patch", "update_plan", "view_image", "web__run", "create_goal"];

/// A script's result.
pub(in crate::agents::codex) struct ScriptOutput {
    pub(in crate::agents::codex) outcome: Option<Outcome>,
    pub(in crate::agents::codex) output: String,
    /// The cell in which the script still runs.
    pub(in crate::agents::codex) cell: Option<String>,
}

/// How one command is seen to have ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CodexCommandState {
    Exited(i64),
    Runs(i64),
    /// An MCP tool says whether it failed.
    Answered {
        failed: bool,
    },
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CodexCommandOutput<'a> {
    #[serde(borrow)]
    chunk_id: Text<'a>,
    #[serde(borrow)]
    output: Option<Text<'a>>,
    exit_code: Number,
    session_id: Number,
    #[serde(rename = "isError")]
    is_error: Option<bool>,
}

impl ScriptOutput {
    /// Reads the parts of a result. `nested` is how the script's calls of MCP tools ended, and which others failed. Returns
    /// `None` for what is no script's result.
    pub(in crate::agents::codex) fn read(
        script: &CodexScript,
        parts: &[Cow<'_, str>],
        nested: &[Outcome],
    ) -> Option<Self> {
        let (first, rest) = parts.split_first()?;
        let (head, inline) = first.split_once("\nOutput:\n").unwrap_or((first, ""));
        let status = head.lines().next()?;
        let mut seen = PartsRead::default();
        for part in std::iter::once(inline).chain(rest.iter().map(AsRef::as_ref)) {
            seen.part(part, script);
        }
        let cell = status.strip_prefix("Script running with cell ID ").map(|cell| cell.trim().to_owned());
        let outcome = if status.starts_with("Script running") {
            Some(Outcome::Running)
        } else if status.starts_with("Script terminated") {
            Some(Outcome::Cancelled)
        } else if status.starts_with("Script failed") {
            let error = seen.output.strip_prefix("Script error:\n").and_then(outcome_from_output);
            error.filter(|outcome| *outcome != Outcome::Ok).or(Some(Outcome::Error))
        } else if status.starts_with("Script completed") {
            seen.completed(script, nested)
        } else {
            return None;
        };
        Some(Self { outcome, output: seen.output(script), cell })
    }
}

#[derive(Default)]
struct PartsRead {
    states: Vec<CodexCommandState>,
    /// How the commands ended, with their outputs one a line.
    output: String,
}

impl PartsRead {
    fn part(&mut self, part: &str, script: &CodexScript) {
        if part.is_empty() {
            return;
        }
        let json = (part.starts_with('{') && part.trim_end().ends_with('}'))
            .then(|| tolerant::read::<CodexCommandOutput<'_>>(part.as_bytes()));
        let Some(Ok(json)) = json else {
            let state = labelled(part, &script.labels).or_else(|| cut_off(part));
            let runs = matches!(state, Some(CodexCommandState::Runs(_)));
            self.states.extend(state.filter(|_| script.shows_whole || !runs));
            return append(&mut self.output, part.into());
        };
        let is_command = json.output.is_some() || json.chunk_id.get().is_some();
        match (json.exit_code.whole(), json.session_id.whole(), json.is_error) {
            (Some(code), _, _) if is_command && (script.shows_whole || code != 0) => {
                self.states.push(CodexCommandState::Exited(code));
            }
            (None, Some(session), _) if is_command && script.shows_whole => {
                self.states.push(CodexCommandState::Runs(session));
            }
            (_, _, Some(failed)) => {
                self.states.push(CodexCommandState::Answered { failed });
                return append(&mut self.output, part.into());
            }
            _ => return append(&mut self.output, part.into()),
        }
        match json.output {
            Some(output) => append(&mut self.output, output.as_str().to_owned().into()),
            None if json.chunk_id.get().is_some() => {}
            None => append(&mut self.output, part.into()),
        }
    }

    /// How a script's calls ended that ran to its own end.
    fn completed(&self, script: &CodexScript, nested: &[Outcome]) -> Option<Outcome> {
        let outcomes = || {
            self.states.iter().map(|state| match state {
                CodexCommandState::Exited(code) => exited(*code, &self.output),
                CodexCommandState::Runs(_) => Outcome::Running,
                CodexCommandState::Answered { failed: true } => Outcome::Error,
                CodexCommandState::Answered { failed: false } => Outcome::Ok,
            })
        };
        let worst = [Outcome::Denied, Outcome::Timeout, Outcome::Error, Outcome::Running]
            .into_iter()
            .find(|bad| outcomes().chain(nested.iter().copied()).any(|outcome| outcome == *bad));
        if worst.is_some() {
            return worst;
        }
        if script.polls && self.states.is_empty() && self.output.is_empty() {
            // A poll of what has ended fails, so what says nothing most likely still runs.
            return Some(Outcome::Running);
        }
        let calls = script.calls.as_ref()?;
        let untold = calls.iter().filter(|call| !THROWING.contains(&call.as_str())).count();
        let mcp = calls.iter().filter(|call| call.starts_with("mcp__")).count();
        (untold <= self.states.len() + nested.len().min(mcp)).then_some(Outcome::Ok)
    }

    /// What came back: of one command in Codex's own words, so that it reads as it does outside of code mode.
    fn output(self, script: &CodexScript) -> String {
        let sole = script.calls.as_ref().is_some_and(|calls| calls.len() == 1);
        match self.states.as_slice() {
            [CodexCommandState::Exited(code)] if sole => {
                format!("Process exited with code {code}\nOutput:\n{}", self.output)
            }
            [CodexCommandState::Runs(session)] if sole => {
                format!("Process running with session ID {session}\nOutput:\n{}", self.output)
            }
            _ => self.output,
        }
    }
}

/// The state that a part shows in one of the script's own labels.
fn labelled(part: &str, labels: &[Label]) -> Option<CodexCommandState> {
    labels.iter().find_map(|label| {
        let value = if label.first {
            part.strip_prefix(label.before.as_str())?
        } else {
            part.get(part.rfind(&label.before)? + label.before.len()..)?
        };
        let digits = value.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(value.len());
        let (number, after) = value.split_at_checked(digits)?;
        let number = number.parse().ok().filter(|_| after.starts_with(&label.after))?;
        Some(match label.field {
            CodexLabelField::ExitCode => CodexCommandState::Exited(number),
            CodexLabelField::Session => CodexCommandState::Runs(number),
        })
    })
}

/// The state of a result whose end is cut off: what it says of the command stands before its output.
fn cut_off(part: &str) -> Option<CodexCommandState> {
    let (_, json) = part.get(..512.min(part.len())).unwrap_or(part).split_once("\n\n{\"chunk_id\":")?;
    let fields = json.split(",\"output\":").next()?.split('}').next()?;
    let number = |key: &str| {
        let value = fields.split_once(key)?.1;
        value.split(',').next()?.parse().ok()
    };
    number("\"exit_code\":")
        .map(CodexCommandState::Exited)
        .or_else(|| number("\"session_id\":").map(CodexCommandState::Runs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::codex::code_mode::call;

    fn read(code: &str, parts: &[&'static str]) -> (Option<Outcome>, String) {
        let head = "Script completed\nWall time 0.1 seconds\nOutput:\n";
        let parts: Vec<_> = [head].into_iter().chain(parts.iter().copied()).map(Cow::Borrowed).collect();
        let shown = ScriptOutput::read(&call(None, code).1, &parts, &[]).unwrap();
        (shown.outcome, shown.output)
    }

    const WHOLE: &str = "text(await tools.exec_command({cmd:'x'}))";
    const OUTPUT: &str = "const r = await tools.exec_command({cmd:'x'}); text(r.output)";

    #[test]
    fn a_result_shown_whole_tells_how_the_command_ended() {
        let exited = r#"{"chunk_id":"1","wall_time_seconds":1.5,"exit_code":2,"original_token_count":1,"output":"no"}"#;
        let text = "Process exited with code 2\nOutput:\nno".to_owned();
        assert_eq!(read(WHOLE, &[exited]), (Some(Outcome::Error), text));
        let runs = r#"{"chunk_id":"1","session_id":7,"output":""}"#;
        let text = "Process running with session ID 7\nOutput:\n".to_owned();
        assert_eq!(read(WHOLE, &[runs]), (Some(Outcome::Running), text.clone()));
        assert_eq!(read(WHOLE, &[r#"{"chunk_id":"1","session_id":7}"#, ""]), (Some(Outcome::Running), text));
        let cut = "Warning: truncated output (original token count: 9)\nTotal output lines: 1\n\n{\"chunk_id\":\"1\",\"exit_code\":0,\"output\":\"a";
        assert_eq!(read(WHOLE, &[cut]).0, Some(Outcome::Ok));
        let apart = "Warning: truncated output (original token count: 9)\nTotal output lines: 1\n\n{\"chunk_id\":\"1\",\"exit_code\":1}\n{\"exit_code\":0}";
        assert_eq!(read(WHOLE, &[apart]).0, Some(Outcome::Error));
    }

    #[test]
    fn an_output_alone_does_not() {
        assert_eq!(read(OUTPUT, &["fine"]), (None, "fine".to_owned()));
        assert_eq!(read(OUTPUT, &[]), (None, String::new()));
        assert_eq!(read(OUTPUT, &[r#"{"exit_code":1}"#]).0, None);
        assert_eq!(read("tools", &["fine"]).0, None);
    }

    #[test]
    fn a_label_does() {
        let code = "const r = await tools.exec_command({cmd:'x'}); text(r.output); if (r.session_id) text(`SESSION_ID=${r.session_id}`); text(`exit ${r.exit_code}!`)";
        // The command may have printed it.
        assert_eq!(read(code, &["a", "SESSION_ID=12", "exit undefined!"]).0, None);
        let whole = code.replace("text(r.output); ", "");
        assert_eq!(read(&whole, &["SESSION_ID=12", "exit undefined!"]).0, Some(Outcome::Running));
        assert_eq!(read(code, &["a", "exit 3!"]).0, Some(Outcome::Error));
        assert_eq!(read(code, &["a", "exit 0!"]).0, Some(Outcome::Ok));
        assert_eq!(read(code, &["SESSION_ID=x"]).0, None);
    }

    #[test]
    fn what_a_command_or_a_server_returned_does_not_run() {
        let runs = r#"{"chunk_id":"1","session_id":7,"output":"no"}"#;
        for code in [OUTPUT, "text((await tools.mcp__a__b({})).content[0].text)"] {
            assert_eq!(read(code, &[runs]).0, None, "{code}");
            assert_eq!(read(code, &[r#"{"exit_code":0,"output":"no"}"#]).0, None, "{code}");
            assert_eq!(read(code, &[r#"{"exit_code":1,"output":"no"}"#]).0, Some(Outcome::Error), "{code}");
        }
    }

    #[test]
    fn some_tools_throw_when_they_fail() {
        assert_eq!(read("text(await tools.apply_patch('x'))", &["{}"]), (Some(Outcome::Ok), "{}".to_owned()));
        assert_eq!(read("await tools.apply_patch('x'); await tools.exec_command({})", &[]).0, None);
        assert_eq!(read("text(1 + 1)", &["2"]).0, Some(Outcome::Ok));
        assert_eq!(read("await tools.mcp__a__b({})", &["x"]).0, None);
        assert_eq!(read("text(await tools.mcp__a__b({}))", &[r#"{"isError":true}"#]).0, Some(Outcome::Error));
    }

    #[test]
    fn several_results_are_as_good_as_the_worst() {
        let code = "const rs = await Promise.all([tools.exec_command({cmd:'x'}), tools.exec_command({cmd:'y'})]); rs.forEach(r => text(r))";
        let (good, bad) = (r#"{"exit_code":0,"output":"a"}"#, r#"{"exit_code":1,"output":"b"}"#);
        assert_eq!(read(code, &[good, bad]), (Some(Outcome::Error), "a\nb".to_owned()));
        assert_eq!(read(code, &[good, good]).0, Some(Outcome::Ok));
        assert_eq!(read(code, &[good]).0, None);
    }

    #[test]
    fn an_empty_poll_runs() {
        let code = "const r = await tools.write_stdin({session_id:7,chars:''}); text(r.output)";
        assert_eq!(read(code, &[]), (Some(Outcome::Running), String::new()));
        assert_eq!(read(code, &["done"]).0, None);
    }
}
