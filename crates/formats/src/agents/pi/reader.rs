//! Lines into Steps.

use deloop_types::{Body, Call, Millis, Origin, Outcome, Turn, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::json::tolerant::{self, Shaped};
use crate::step_writer::StepWriter;
use crate::text::append;
use crate::{Reader, Sink, Source};

use super::openclaw;
use super::record::{Entry, PiMessage, PiTokens, text};

/// Types of entries that say nothing about the session's steps.
const SILENT: [&str; 5] = ["custom", "label", "model_change", "session_info", "thinking_level_change"];

/// Reads one session.
pub(super) struct PiSession {
    writer: StepWriter,
    /// The entry that the next one follows, unless the user went back.
    leaf: Option<String>,
}

impl PiSession {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self { writer: StepWriter::for_file(source), leaf: None }
    }

    /// Takes the entry's place in the tree; whether it follows another one than the last, whose context is then gone.
    fn goes_back(&mut self, entry: &Entry<'_>) -> bool {
        let Some(id) = entry.id.get() else { return false };
        let last = self.leaf.replace(id.to_owned());
        last.is_some_and(|last| entry.parent_id.get() != Some(last.as_str()))
    }

    fn message(&self, message: PiMessage<'_>, out: &mut Sink<'_>) {
        match message.role.as_str() {
            "assistant" => self.assistant(message, out),
            "toolResult" => {
                let output = text(message.content);
                let ended = match message.is_error.is_true() {
                    true => failure(message.tool_name.as_str(), &output),
                    false => Outcome::Ok,
                };
                let id = message.tool_call_id.take().map(Into::into);
                self.writer.result(id, Some(ended), output, out);
            }
            "user" => {
                let words = text(message.content);
                let origin = openclaw::origin(message.provenance, &words);
                self.writer.user(words, origin, out);
            }
            "custom" | "hookMessage" => self.writer.user(text(message.content), Origin::Harness, out),
            "bashExecution" => {
                if !message.exclude_from_context.is_true() {
                    let ran = format!("$ {}\n{}", message.command.as_str(), message.output.as_str());
                    self.writer.user(ran, Origin::Harness, out);
                }
            }
            "branchSummary" | "compactionSummary" => {}
            other => out.unknown(&format!("message/{other}")),
        }
    }

    fn assistant(&self, message: PiMessage<'_>, out: &mut Sink<'_>) {
        let key = request(&message);
        let usage = match &message.usage {
            Shaped::Object(tokens) => Some(counted(tokens, message.model.get())),
            _ => None,
        };
        // The calls of a message that broke off are never made, and may themselves be cut.
        let broke_off = matches!(message.stop_reason.as_str(), "aborted" | "error");
        let turn = turn(message.content, !broke_off);
        self.writer.turn(turn.text, turn.calls, out);
        if let Some(usage) = usage {
            self.writer.usage(usage, key, out);
        }
    }
}

impl Reader for PiSession {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        let entry: Entry<'_> = match tolerant::read(line) {
            Ok(entry) => entry,
            Err(error) => return out.unreadable(error),
        };
        if entry.kind.get() == Some("session") {
            if let Some(id) = entry.id.get() {
                self.writer.session = id.into();
            }
            out.report.project = entry.cwd.get().map(str::to_owned);
            return;
        }
        self.writer.ts = entry.timestamp.get().and_then(Millis::parse);
        let goes_back = self.goes_back(&entry);
        let kind = entry.kind.as_str();
        if goes_back || matches!(kind, "compaction" | "branch_summary") {
            self.writer.write(Body::Compact, out);
        }
        match kind {
            "message" => {
                if let Shaped::Object(message) = entry.message {
                    self.writer.ts = self.writer.ts.or_else(|| message.timestamp.whole().map(Millis));
                    self.message(message, out);
                }
            }
            "custom_message" => self.writer.user(text(entry.content), Origin::Harness, out),
            "compaction" | "branch_summary" => {}
            silent if SILENT.contains(&silent) => {}
            other => out.unknown(other),
        }
    }
}

fn turn(content: Shaped<'_, super::record::PiBlock<'_>>, with_calls: bool) -> Turn {
    let mut turn = Turn::default();
    match content {
        Shaped::List(blocks) => {
            for block in blocks {
                match block.kind.as_str() {
                    "text" => {
                        block.text.take().into_iter().for_each(|text| append(&mut turn.text, text));
                    }
                    "toolCall" if with_calls => turn.calls.push({
                        let mut made = Call::new(block.name.as_str().to_owned(), block.arguments);
                        made.id = block.id.take().map(Into::into);
                        made
                    }),
                    _ => {}
                }
            }
        }
        Shaped::Text(text) => turn.text = text.into_owned(),
        Shaped::Object(_) | Shaped::Nothing => {}
    }
    turn
}

/// A failed result of pi's own tools ends with what went wrong, behind all that a command printed.
fn failure(tool: &str, output: &str) -> Outcome {
    const OWN_TOOLS: [&str; 9] = ["bash", "edit", "exec", "find", "grep", "ls", "process", "read", "write"];
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    if OWN_TOOLS.contains(&tool) && matches!(last, "Command aborted" | "Operation aborted") {
        Outcome::Cancelled
    } else if output.starts_with("Tool execution was blocked") {
        Outcome::Denied
    } else {
        Outcome::Error
    }
}

fn counted(tokens: &PiTokens<'_>, model: Option<&str>) -> Usage {
    let cost = match &tokens.cost {
        Shaped::Object(cost) => cost.total.get().filter(|total| *total > 0.0),
        _ => None,
    };
    let mut made = Usage::default();
    made.model = model.map(str::to_owned);
    made.input_tokens = tokens.input.count();
    made.output_tokens = tokens.output.count();
    made.cache_read_tokens = tokens.cache_read.count();
    made.cache_write_tokens = tokens.cache_write.count();
    made.cost_usd = cost;
    made
}

/// The name of a request in all files: a fork repeats it. Old versions give it none but when it began.
fn request(message: &PiMessage<'_>) -> Option<u64> {
    let name = match message.response_id.get() {
        // Some servers give all their answers one id.
        Some(id) => format!("{id} {}", message.timestamp.count()),
        None => format!("{} {}", message.model.as_str(), message.timestamp.whole()?),
    };
    Some(xxh3_64(name.as_bytes()))
}
