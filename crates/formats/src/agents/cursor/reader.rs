//! Lines to Steps.

use deloop_types::{Call, Origin, Outcome, SessionId};
use serde::Deserialize;

use crate::json::tolerant::{self, Flag, Json, Object, Objects, Prose, Text};
use crate::step_writer::StepWriter;
use crate::{Reader, Sink, Source};

/// One line: a message, or a note.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CursorLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    message: Object<CursorMessage<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CursorMessage<'a> {
    #[serde(borrow)]
    content: Objects<CursorBlock<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CursorBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    input: Json,
    #[serde(borrow)]
    tool_use_id: Text<'a>,
    #[serde(borrow)]
    content: Prose<'a>,
    is_error: Flag,
}

pub(super) struct CursorTranscript {
    writer: StepWriter,
}

impl CursorTranscript {
    pub(super) fn new(source: &Source<'_>) -> Self {
        let mut writer = StepWriter::for_file(source);
        let folder = source.path.and_then(std::path::Path::parent);
        let parent = folder.filter(|folder| folder.ends_with("subagents")).and_then(std::path::Path::parent);
        if let Some(parent) = parent.and_then(|parent| parent.file_name()?.to_str()) {
            writer.agent = Some(writer.session.as_str().to_owned());
            writer.session = SessionId::from(parent);
        }
        Self { writer }
    }

    fn line(&mut self, line: CursorLine<'_>, out: &mut Sink<'_>) {
        let blocks = line.message.0.map(|message| message.content.0).unwrap_or_default();
        match (line.role.as_str(), line.kind.as_str()) {
            ("assistant", _) => self.model(blocks, out),
            ("user", _) => self.user(blocks, out),
            ("", "turn_ended") => {}
            ("", "") => out.unknown("(no role)"),
            ("", kind) => out.unknown(kind),
            (role, _) => out.unknown(role),
        }
    }

    fn model(&mut self, blocks: Vec<CursorBlock<'_>>, out: &mut Sink<'_>) {
        let mut texts = Vec::new();
        let mut calls = Vec::new();
        for block in blocks {
            match block.kind.as_str() {
                "text" => texts.push(visible(block.text.as_str()).to_owned()),
                "tool_use" => calls.push({
                    let mut made = Call::new(block.name.owned().unwrap_or_default(), block.input.into_args());
                    made.id = block.id.owned();
                    made
                }),
                kind => known(kind, out),
            }
        }
        texts.retain(|text| !text.is_empty());
        self.writer.at(None).turn(texts.join("\n"), calls, out);
    }

    fn user(&mut self, blocks: Vec<CursorBlock<'_>>, out: &mut Sink<'_>) {
        let mut texts = Vec::new();
        for block in blocks {
            match block.kind.as_str() {
                "text" => texts.extend(block.text.owned()),
                "tool_result" => {
                    let ended = if block.is_error.0 == Some(true) { Outcome::Error } else { Outcome::Ok };
                    let output = (!block.content.0.is_empty()).then(|| block.content.joined());
                    self.writer.at(None).result(block.tool_use_id.owned(), Some(ended), output, out);
                }
                kind => known(kind, out),
            }
        }
        let text = texts.join("\n");
        let (text, origin) = match query(&text) {
            Some(query) => (query.to_owned(), Origin::Human),
            None if self.writer.agent.is_some() || text.trim_start().starts_with('<') => {
                (text, Origin::Harness)
            }
            None => (text, Origin::Human),
        };
        self.writer.at(None).user(text, origin, out);
    }
}

impl Reader for CursorTranscript {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        match tolerant::read(line) {
            Ok(Object(Some(line))) => self.line(line, out),
            Ok(Object(None)) => out.unreadable("not a JSON object"),
            Err(error) => out.unreadable(error),
        }
    }
}

/// The text without the mark of thinking that was left out.
fn visible(text: &str) -> &str {
    let text = text.trim();
    text.strip_suffix("[REDACTED]").unwrap_or(text).trim_end()
}

/// What the person wrote, among what Cursor adds to it.
fn query(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("<user_query>")?;
    Some(after.rsplit_once("</user_query>").map_or(after, |(query, _)| query).trim())
}

/// Blocks that are known and say nothing about the session's steps.
fn known(kind: &str, out: &mut Sink<'_>) {
    const QUIET: [&str; 6] = ["text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking"];
    if !QUIET.contains(&kind) {
        out.unknown(if kind.is_empty() { "(no type)" } else { kind });
    }
}
