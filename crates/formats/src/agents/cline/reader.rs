//! Messages to Steps.

use std::collections::HashSet;

use deloop_types::{Body, Call, Millis, Origin, Outcome, SessionId, Usage};
use xxhash_rust::xxh3::xxh3_64;

use super::record::{ClineBlock, ClineDocument, ClineMessage, ClineMetrics};
use super::xml;
use crate::json::tolerant;
use crate::step_writer::StepWriter;
use crate::timeout::says_timeout;
use crate::{Reader, Sink, Source};

/// The tool that runs commands.
const COMMAND: &str = "execute_command";

pub(super) struct ClineTask {
    writer: StepWriter,
    /// The calls that run commands and have not come back.
    commands: HashSet<String>,
}

impl ClineTask {
    pub(super) fn new(source: &Source<'_>) -> Self {
        let mut writer = StepWriter::for_file(source);
        let folder = source.path.and_then(|path| path.parent()?.file_name()?.to_str());
        if let (Some("api_conversation_history"), Some(folder)) = (source.stem(), folder) {
            writer.session = SessionId::from(folder);
        }
        Self { writer, commands: HashSet::new() }
    }

    fn message(&mut self, message: ClineMessage<'_>, out: &mut Sink<'_>) {
        let ts = message.ts.0;
        if message.is_summary.0 == Some(true) {
            self.writer.at(ts).write(Body::Compact, out);
            return;
        }
        match message.role.as_str() {
            "assistant" => self.model(message, out),
            "user" => self.user(ts, message.content.0, out),
            "" => out.unknown("(no role)"),
            other => out.unknown(other),
        }
    }

    fn model(&mut self, message: ClineMessage<'_>, out: &mut Sink<'_>) {
        let mut texts = Vec::new();
        let mut calls = Vec::new();
        for block in message.content.0 {
            match block.kind.as_str() {
                "text" => {
                    let (text, found) = xml::calls(block.text.as_str());
                    texts.push(text);
                    calls.extend(found);
                }
                "tool_use" => {
                    let (id, tool) = (block.id.owned(), block.name.owned().unwrap_or_default());
                    if tool == COMMAND {
                        self.commands.extend(id.clone());
                    }
                    calls.push({
                        let mut made = Call::new(tool, block.input.0);
                        made.id = id;
                        made
                    });
                }
                kind => known(kind, out),
            }
        }
        texts.retain(|text| !text.is_empty());
        let ts = message.ts.0;
        self.writer.at(ts).turn(texts.join("\n"), calls, out);
        if let Some(metrics) = message.metrics.0 {
            let info = message.model_info.0.unwrap_or_default();
            let model = info.model_id.owned().or_else(|| info.id.owned());
            let key = message.id.get().map(|id| xxh3_64(id.as_bytes()));
            self.writer.at(ts).usage(used(&metrics, model), key, out);
        }
    }

    fn user(&mut self, ts: Option<Millis>, blocks: Vec<ClineBlock<'_>>, out: &mut Sink<'_>) {
        let mut open: Option<ClineResult> = None;
        for block in blocks {
            match block.kind.as_str() {
                "tool_result" => {
                    self.answered(ts, open.take(), out);
                    let id = block.tool_use_id.owned();
                    let runs_command = id.as_ref().is_some_and(|id| self.commands.remove(id));
                    let output = block.content.joined();
                    let answer = ClineResult { id, failed: block.is_error.0, runs_command, output };
                    self.answered(ts, Some(answer), out);
                }
                "text" => {
                    let text = block.text.as_str();
                    note_project(text, out);
                    let text = without_details(text);
                    if let Some((tool, output)) = result(&text) {
                        self.answered(ts, open.take(), out);
                        let output = output.to_owned();
                        let runs_command = tool == COMMAND;
                        open = Some(ClineResult { id: None, failed: None, runs_command, output });
                    } else if let (Some(answer), false) = (&mut open, said_by_somebody(&text)) {
                        answer.output.push('\n');
                        answer.output.push_str(&text);
                    } else {
                        self.answered(ts, open.take(), out);
                        self.said(ts, &text, out);
                    }
                }
                kind => known(kind, out),
            }
        }
        self.answered(ts, open, out);
    }

    fn answered(&mut self, ts: Option<Millis>, answer: Option<ClineResult>, out: &mut Sink<'_>) {
        let Some(answer) = answer else { return };
        let output = answer.output.trim().to_owned();
        let ended = answer.ended(&output);
        let words = if answers(&output) { by_person(&output) } else { String::new() };
        self.writer.at(ts).result(answer.id, ended, output, out);
        self.writer.at(ts).user(words, Origin::Human, out);
    }

    fn said(&mut self, ts: Option<Millis>, text: &str, out: &mut Sink<'_>) {
        let words = by_person(text);
        let (text, origin) = if !words.is_empty() {
            (words, Origin::Human)
        } else if text.starts_with('[') {
            (text.to_owned(), Origin::Harness)
        } else {
            (text.to_owned(), Origin::Human)
        };
        self.writer.at(ts).user(text, origin, out);
    }
}

impl Reader for ClineTask {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        match tolerant::read::<ClineDocument<'_>>(bytes) {
            Ok(document) => {
                if let Some(session) = document.session {
                    self.writer.session = SessionId::from(session);
                }
                for message in document.messages {
                    self.message(message, out);
                }
            }
            Err(error) => out.unreadable(error),
        }
    }
}

/// What a call came back with.
struct ClineResult {
    id: Option<String>,
    failed: Option<bool>,
    /// Whether it is of a command, of which older versions do not tell whether it failed.
    runs_command: bool,
    output: String,
}

impl ClineResult {
    fn ended(&self, output: &str) -> Option<Outcome> {
        const REFUSED: [&str; 2] =
            ["The user denied this operation", "was not executed because a tool has already"];
        const FAILED: [&str; 4] = [
            "The tool execution failed with the following error",
            "Command execution was not successful",
            "Missing value for required parameter",
            "This is likely because the SEARCH block content",
        ];
        let head: String = output.chars().take(400).collect();
        let exit = head.lines().find_map(|line| line.strip_prefix("Exit code: ")?.trim().parse::<i64>().ok());
        if REFUSED.iter().any(|words| head.contains(words)) {
            Some(Outcome::Denied)
        } else if self.runs_command && head.starts_with("Command is still running in the user's terminal") {
            Some(Outcome::Running)
        } else if says_timeout(&head) {
            Some(Outcome::Timeout)
        } else if self.failed == Some(true) || FAILED.iter().any(|words| head.contains(words)) {
            Some(Outcome::Error)
        } else if let Some(code) = exit {
            Some(if code == 0 { Outcome::Ok } else { Outcome::Error })
        } else if self.runs_command {
            None
        } else {
            Some(Outcome::Ok)
        }
    }
}

/// The tool and the output of a block that begins with `[read_file for 'a'] Result:`.
fn result(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('[')?;
    let end = inside.find(|c: char| !(c.is_ascii_lowercase() || c == '_'))?;
    let (tool, rest) = inside.split_at(end);
    if !xml::is_tool(tool) || !rest.starts_with([' ', ']']) {
        return None;
    }
    rest.split_once("] Result:").map(|(_, output)| (tool, output))
}

/// Returns whether a block is a message and not the rest of a result.
fn said_by_somebody(text: &str) -> bool {
    const STARTS: [&str; 6] =
        ["<task>", "<feedback>", "<user_message>", "[ERROR] ", "[TASK RESUMPTION]", "New instructions for"];
    text.trim().is_empty() || STARTS.iter().any(|start| text.starts_with(start))
}

/// Returns whether a result holds words of a person, and not perhaps a file with such tags.
fn answers(output: &str) -> bool {
    ["The user ", "<answer>", "<feedback>", "<user_message>"].iter().any(|start| output.starts_with(start))
}

/// What a person wrote, where it is marked as such.
fn by_person(text: &str) -> String {
    ["task", "feedback", "user_message", "answer"]
        .iter()
        .flat_map(|tag| xml::inside(text, tag))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The text without what the program adds about the editor and the time.
fn without_details(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<environment_details>") {
        kept.push_str(before);
        rest = after.split_once("</environment_details>").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept.trim().to_owned()
}

/// The details name the project: `# Current Working Directory (/home/dev/shop) Files`.
fn note_project(text: &str, out: &mut Sink<'_>) {
    if out.report.project.is_some() {
        return;
    }
    let named = ["# Current Working Directory (", "# Current Workspace Directory ("]
        .iter()
        .find_map(|start| text.split_once(start)?.1.split_once(')'));
    if let Some((folder, _)) = named {
        out.report.project = Some(folder.to_owned());
    }
}

fn used(metrics: &ClineMetrics, model: Option<String>) -> Usage {
    let older = metrics.tokens.0.as_ref();
    let mut made = Usage::default();
    made.model = model;
    made.input_tokens = older.map_or(metrics.input_tokens.0, |tokens| tokens.prompt.0);
    made.output_tokens = older.map_or(metrics.output_tokens.0, |tokens| tokens.completion.0);
    made.cache_read_tokens = older.map_or(metrics.cache_read_tokens.0, |tokens| tokens.cached.0);
    made.cache_write_tokens = metrics.cache_write_tokens.0;
    made.cost_usd = metrics.cost.0;
    made
}

/// Blocks that are known and say nothing about the task's steps.
fn known(kind: &str, out: &mut Sink<'_>) {
    const QUIET: [&str; 8] = [
        "text",
        "image",
        "document",
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "reasoning",
    ];
    if !QUIET.contains(&kind) {
        out.unknown(if kind.is_empty() { "(no type)" } else { kind });
    }
}
