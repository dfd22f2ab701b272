//! Lines into Steps.

use deloop_types::{Body, Call, Millis, Origin, Turn, Usage};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::json::tolerant::{self, Shaped};
use crate::step_writer::StepWriter;
use crate::text::{append, stand_in};
use crate::{Reader, Sink, Source};

use super::outcome::ended;
use super::record::{Inline, QwenFunctionResponse, QwenPart, QwenRecord, QwenTokens};

/// Reads one chat.
pub(super) struct QwenChat {
    writer: StepWriter,
    /// The turn that a subagent's next record may go on with.
    open: Option<QwenOpenTurn>,
}

struct QwenOpenTurn {
    writer: StepWriter,
    turn: Turn,
    usage: Option<(Usage, Option<u64>)>,
}

impl QwenChat {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self { writer: StepWriter::for_file(source), open: None }
    }

    /// Returns a writer of the record's agent and time.
    fn writer(&self, record: &QwenRecord<'_>) -> StepWriter {
        StepWriter {
            session: self.writer.session.clone(),
            agent: record.agent_id.get().map(str::to_owned),
            ts: record.timestamp.get().and_then(Millis::parse),
        }
    }

    fn close(&mut self, out: &mut Sink<'_>) {
        let Some(QwenOpenTurn { writer, turn, usage }) = self.open.take() else { return };
        writer.turn(turn.text, turn.calls, out);
        if let Some((usage, key)) = usage {
            out.usage(writer.step(Body::Usage(usage)), key);
        }
    }

    /// A subagent writes its words, and then each of its calls, as a record of its own.
    fn assistant(&mut self, record: QwenRecord<'_>, out: &mut Sink<'_>) {
        let writer = self.writer(&record);
        let usage = match &record.usage_metadata {
            Shaped::Object(tokens) => Some((counted(tokens, record.model.get()), request(&record))),
            _ => None,
        };
        let goes_on =
            record.agent_id.get().is_some() && record.agent_round.get().is_none() && usage.is_none();
        let turn = turn(parts(record.message));
        if let Some(open) = self.open.as_mut().filter(|open| goes_on && open.writer.agent == writer.agent) {
            if !turn.text.is_empty() {
                append(&mut open.turn.text, turn.text.into());
            }
            open.turn.calls.extend(turn.calls);
            return;
        }
        self.close(out);
        self.open = Some(QwenOpenTurn { writer, turn, usage });
    }

    fn user(&self, record: QwenRecord<'_>, out: &mut Sink<'_>) {
        let writer = self.writer(&record);
        let automatic = record.agent_id.get().is_some()
            || record.provenance.get().is_some_and(|provenance| provenance != "real_user");
        let origin = match record.subtype.as_str() {
            "notification" => Origin::Notice,
            "cron" => Origin::Schedule,
            "goal_runtime" => Origin::Harness,
            _ if automatic => Origin::Harness,
            _ => Origin::Human,
        };
        let typed = record.system_payload.object().and_then(|payload| payload.display_text.take());
        let text = match typed {
            Some(typed) => typed.into_owned(),
            None => turn(parts(record.message)).text,
        };
        writer.user(text, origin, out);
    }

    fn results(&self, record: QwenRecord<'_>, out: &mut Sink<'_>) {
        let writer = self.writer(&record);
        let noted = record.tool_call_result.object().unwrap_or_default();
        let mut answers: Vec<QwenAnswer> = Vec::new();
        let mut rest = String::new();
        for part in parts(record.message) {
            if let Shaped::Object(response) = part.function_response {
                answers.push(answer(response));
                continue;
            }
            // What comes beside a response is part of it.
            let text = answers.last_mut().map_or(&mut rest, |answer| &mut answer.text);
            for more in part.text.take().into_iter().chain(data(part.inline_data).map(Into::into)) {
                append(text, more);
            }
        }
        if answers.is_empty() && !rest.is_empty() {
            answers.push(QwenAnswer { text: rest, ..QwenAnswer::default() });
        }
        for QwenAnswer { id, tool, failed, text } in answers {
            let id = id.or_else(|| noted.call_id.get().map(str::to_owned));
            let ended = ended(&noted, &tool, failed, &text);
            writer.result(id, Some(ended), text, out);
        }
    }
}

impl Reader for QwenChat {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        let record: QwenRecord<'_> = match tolerant::read(line) {
            Ok(record) => record,
            Err(error) => return out.unreadable(error),
        };
        if let Some(session) = record.session_id.get()
            && session != self.writer.session.as_str()
        {
            self.writer.session = session.into();
        }
        if out.report.project.is_none() {
            out.report.project = record.cwd.get().map(str::to_owned);
        }
        if out.report.version.is_none() {
            out.report.version = record.version.get().map(str::to_owned);
        }
        match record.kind.as_str() {
            "assistant" => self.assistant(record, out),
            "user" => {
                self.close(out);
                self.user(record, out);
            }
            "tool_result" => {
                self.close(out);
                self.results(record, out);
            }
            "system" => {
                if matches!(record.subtype.as_str(), "chat_compression" | "rewind") {
                    self.close(out);
                    self.writer(&record).write(Body::Compact, out);
                }
            }
            other => out.unknown(other),
        }
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        self.close(out);
    }
}

fn parts<'a>(message: Shaped<'a, super::record::QwenMessage<'a>>) -> Vec<QwenPart<'a>> {
    match message.object().map(|message| message.parts) {
        Some(Shaped::List(parts)) => parts,
        Some(Shaped::Object(part)) => vec![part],
        Some(Shaped::Text(text)) => vec![QwenPart { text: text.into(), ..QwenPart::default() }],
        Some(Shaped::Nothing) | None => Vec::new(),
    }
}

/// What was said and called; thoughts are not said.
fn turn(parts: Vec<QwenPart<'_>>) -> Turn {
    let mut turn = Turn::default();
    for part in parts {
        if let Some(text) = part.text.take().filter(|_| !part.thought.is_true()) {
            append(&mut turn.text, text);
        }
        if let Shaped::Object(call) = part.function_call {
            turn.calls.push({
                let mut made = Call::new(call.name.as_str().to_owned(), call.args);
                made.id = call.id.take().map(Into::into);
                made
            });
        }
    }
    turn
}

/// The id of a response, whether it is an error, and its text.
/// What a call came back with.
#[derive(Default)]
struct QwenAnswer {
    id: Option<String>,
    tool: String,
    failed: bool,
    text: String,
}

fn answer(response: QwenFunctionResponse<'_>) -> QwenAnswer {
    let text = |key: &str| match response.response.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    };
    let error = text("error");
    let failed = error.is_some();
    let mut said = error.or_else(|| text("output")).unwrap_or_else(|| match &response.response {
        Value::Null => String::new(),
        other => other.to_string(),
    });
    if let Shaped::List(media) = response.parts {
        for name in media.into_iter().filter_map(|media| data(media.inline_data)) {
            append(&mut said, name.into());
        }
    }
    QwenAnswer {
        id: response.id.take().map(Into::into),
        tool: response.name.as_str().to_owned(),
        failed,
        text: said,
    }
}

fn data(inline: Shaped<'_, Inline<'_>>) -> Option<String> {
    inline.object()?.data.get().map(|data| stand_in("data", data))
}

/// The prompt's tokens include those from the cache. Some models count their thoughts apart from what they wrote.
fn counted(tokens: &QwenTokens, model: Option<&str>) -> Usage {
    let prompt = tokens.prompt_token_count.count();
    let cached = tokens.cached_content_token_count.count();
    let written = tokens.total_token_count.count().saturating_sub(prompt);
    let mut made = Usage::default();
    made.model = model.map(str::to_owned);
    made.input_tokens = prompt.saturating_sub(cached);
    made.output_tokens = tokens.candidates_token_count.count().max(written);
    made.cache_read_tokens = cached;
    made.cache_write_tokens = 0;
    made.cost_usd = None;
    made
}

/// The name of a request in all files: a fork's records name those that they repeat.
fn request(record: &QwenRecord<'_>) -> Option<u64> {
    let first = match &record.forked_from {
        Shaped::Object(forked) => forked.message_uuid.get(),
        _ => None,
    };
    first.or(record.uuid.get()).map(|name| xxh3_64(name.as_bytes()))
}
