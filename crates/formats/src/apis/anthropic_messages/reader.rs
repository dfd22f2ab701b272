use deloop_types::{Body, Call, Origin, Outcome, ToolResult, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use crate::apis::conversations::{ConversationFields, MessageFormat};
use crate::apis::openai_messages::message::begins_with_error;
use crate::apis::tokens;
use crate::json::field::{self, Field};
use crate::step_writer::{self, StepWriter};
use crate::{Item, Sink};

/// Anthropic's Messages.
pub(super) struct MessagesApi;

impl MessageFormat for MessagesApi {
    fn messages(messages: Field<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        step_writer::collect(out, |out| {
            let mut answer = None;
            for message in field::list::<AnthropicMessage<'_>>(messages) {
                match message {
                    Some(message) => read(&message, &mut answer, out),
                    None => out.unknown("message"),
                }
            }
            flush(answer, out);
        })
    }

    fn response(response: &ConversationFields<'_>, out: &mut Sink<'_>) -> Vec<Item> {
        let message = AnthropicMessage {
            content: response.content,
            id: response.id,
            model: response.model,
            usage: response.usage,
            created_at: response.created_at,
            ..AnthropicMessage::default()
        };
        step_writer::collect(out, |out| {
            let mut answer = None;
            assistant(&message, &mut answer, out);
            flush(answer, out);
        })
    }
}

/// A message that was sent, or one that came back, which has an id and a usage.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AnthropicMessage<'a> {
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    model: Field<'a>,
    #[serde(borrow)]
    usage: Field<'a>,
    #[serde(borrow)]
    timestamp: Field<'a>,
    #[serde(borrow)]
    created_at: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnthropicBlock<'a> {
    #[serde(borrow, rename = "type")]
    kind: Field<'a>,
    #[serde(borrow)]
    text: Field<'a>,
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    input: Field<'a>,
    #[serde(borrow)]
    tool_use_id: Field<'a>,
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    is_error: Field<'a>,
}

/// An answer of the model, which some programs save block by block, each time as a message of the same id.
#[derive(Default)]
struct AnthropicAnswer {
    id: Option<String>,
    writer: StepWriter,
    texts: Vec<String>,
    calls: Vec<Call>,
    results: Vec<ToolResult>,
    usage: Option<Usage>,
}

fn read(message: &AnthropicMessage<'_>, answer: &mut Option<AnthropicAnswer>, out: &mut Sink<'_>) {
    let role = field::text(message.role).unwrap_or_default();
    if role == "assistant" {
        return assistant(message, answer, out);
    }
    flush(answer.take(), out);
    match role.as_ref() {
        "user" => user(message, out),
        "system" => {}
        other => out.unknown(other),
    }
}

fn writer(message: &AnthropicMessage<'_>) -> StepWriter {
    StepWriter { ts: field::time(message.timestamp.or(message.created_at)), ..StepWriter::default() }
}

fn assistant(message: &AnthropicMessage<'_>, answer: &mut Option<AnthropicAnswer>, out: &mut Sink<'_>) {
    let id = field::name(message.id);
    if answer.as_ref().is_some_and(|answer| answer.id.is_none() || answer.id != id) {
        flush(answer.take(), out);
    }
    let answer = answer.get_or_insert_with(|| AnthropicAnswer {
        id,
        writer: writer(message),
        ..AnthropicAnswer::default()
    });
    answer.texts.extend(Some(field::content(message.content)).filter(|text| !text.is_empty()));
    answer.usage = tokens::usage(message.usage, field::name(message.model)).or(answer.usage.take());
    for block in field::list::<AnthropicBlock<'_>>(message.content).iter().flatten() {
        match field::text(block.kind).unwrap_or_default().as_ref() {
            "text" | "thinking" | "redacted_thinking" => {}
            // A tool that the vendor runs answers in the same message.
            kind if kind.ends_with("tool_result") => answer.results.push(result(block)),
            kind if kind.ends_with("tool_use") => {
                let tool = field::name(block.name).unwrap_or_else(|| kind.to_owned());
                answer.calls.push({
                    let mut made = Call::new(tool, field::json(block.input));
                    made.id = field::name(block.id);
                    made
                });
            }
            other => out.unknown(other),
        }
    }
}

fn flush(answer: Option<AnthropicAnswer>, out: &mut Sink<'_>) {
    let Some(AnthropicAnswer { id, writer, texts, calls, results, usage }) = answer else { return };
    writer.turn(texts.join("\n").trim(), calls, out);
    results.into_iter().for_each(|result| writer.write(Body::Result(result), out));
    if let Some(usage) = usage {
        writer.usage(usage, id.map(|id| xxh3_64(id.as_bytes())), out);
    }
}

/// A message to the model: results and text, in any mixture.
fn user(message: &AnthropicMessage<'_>, out: &mut Sink<'_>) {
    let writer = writer(message);
    if let Some(text) = field::text(message.content) {
        return writer.user(text.trim(), origin(&text), out);
    }
    for block in field::list::<AnthropicBlock<'_>>(message.content).iter().flatten() {
        match field::text(block.kind).unwrap_or_default().as_ref() {
            "text" => {
                let text = field::string(block.text);
                writer.user(text.trim(), origin(&text), out);
            }
            "image" | "document" | "search_result" => {}
            kind if kind.ends_with("tool_result") => writer.write(Body::Result(result(block)), out),
            other => out.unknown(other),
        }
    }
}

/// Agents put reminders of their own between the user's words.
fn origin(text: &str) -> Origin {
    if text.trim_start().starts_with("<system-reminder>") { Origin::Harness } else { Origin::Human }
}

fn result(block: &AnthropicBlock<'_>) -> ToolResult {
    let text = field::content(block.content);
    let recorded = match block.content {
        // The vendor's own tools answer with objects.
        Some(content) if text.is_empty() && content.get().starts_with('{') => Some(content.get().to_owned()),
        Some(content) if text.is_empty() && !is_readable(content) => None,
        // A request without content says that there was none.
        _ => Some(text),
    };
    let output = recorded.as_deref().unwrap_or_default();
    let outcome = match field::flag(block.is_error) {
        Some(true) if is_refusal(output) => Some(Outcome::Denied),
        Some(true) => Some(Outcome::Error),
        Some(false) => Some(Outcome::Ok),
        None => begins_with_error(output).then_some(Outcome::Error),
    };
    step_writer::tool_result(field::name(block.tool_use_id), outcome, recorded)
}

/// Returns whether content without any text is empty, and not made of pictures, search results and the like.
fn is_readable(content: &RawValue) -> bool {
    let parts = field::list::<AnthropicBlock<'_>>(Some(content));
    let is_text = |part: &AnthropicBlock<'_>| field::text(part.kind).is_some_and(|kind| kind == "text");
    parts.is_empty() || parts.iter().flatten().any(is_text)
}

/// What Claude Code tells the model when a person said no.
fn is_refusal(output: &str) -> bool {
    output.starts_with("The user doesn't want to proceed with this tool use")
        || output.starts_with("The user doesn't want to take this action right now")
}
