//! Lines to Steps.

use deloop_types::{Body, Call, Millis, Origin, Outcome, Usage};

use super::record::{Content, GooseLine, GooseToolResult};
use crate::json::tolerant;
use crate::json::tolerant::Object;
use crate::step_writer::StepWriter;
use crate::{Reader, Sink, Source};

pub(super) struct GooseSession {
    writer: StepWriter,
    /// What the model said since anybody else spoke: it may be spread over lines.
    held: Option<PendingTurn>,
    /// What the header says was used.
    used: Option<Usage>,
    last: Option<Millis>,
}

#[derive(Default)]
struct PendingTurn {
    ts: Option<Millis>,
    text: String,
    calls: Vec<Call>,
}

impl GooseSession {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self { writer: StepWriter::for_file(source), held: None, used: None, last: None }
    }

    fn line(&mut self, line: GooseLine<'_>, out: &mut Sink<'_>) {
        #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
        let ts = line.created.0.map(|seconds| Millis((seconds * 1000.0) as i64));
        self.last = ts.or(self.last);
        match line.role.as_str() {
            "assistant" => self.model(ts, line.content.0, out),
            "user" => {
                let shown = line.metadata.0.is_none_or(|metadata| metadata.user_visible.0 != Some(false));
                self.user(ts, shown, line.content.0, out);
            }
            "" if line.working_dir.0.is_some() => self.header(&line, out),
            "" => out.unknown("(no role)"),
            other => out.unknown(other),
        }
    }

    fn header(&mut self, line: &GooseLine<'_>, out: &mut Sink<'_>) {
        out.report.project = line.working_dir.get().map(str::to_owned);
        let sum = |all: u64, last: u64| if all > 0 { all } else { last };
        self.used = Some({
            let mut made = Usage::default();
            made.input_tokens = sum(line.accumulated_input_tokens.0, line.input_tokens.0);
            made.output_tokens = sum(line.accumulated_output_tokens.0, line.output_tokens.0);
            made
        });
    }

    fn model(&mut self, ts: Option<Millis>, content: Vec<Content<'_>>, out: &mut Sink<'_>) {
        for piece in content {
            match piece.kind.as_str() {
                "conversationCompacted" => self.compacted(ts, out),
                "text" => {
                    let said = self.held.get_or_insert_with(|| PendingTurn { ts, ..PendingTurn::default() });
                    said.text.push_str(piece.text.as_str());
                }
                "toolRequest" | "frontendToolRequest" => {
                    let call = call(piece);
                    let said = self.held.get_or_insert_with(|| PendingTurn { ts, ..PendingTurn::default() });
                    said.calls.push(call);
                }
                kind => known(kind, out),
            }
        }
    }

    fn user(&mut self, ts: Option<Millis>, shown: bool, content: Vec<Content<'_>>, out: &mut Sink<'_>) {
        self.flush(out);
        let mut texts = Vec::new();
        for piece in content {
            match piece.kind.as_str() {
                "text" => texts.extend(piece.text.owned()),
                "toolResponse" => {
                    let (ended, output) = ended(&piece.tool_result.0.unwrap_or_default());
                    self.writer.at(ts).result(piece.id.owned(), Some(ended), output, out);
                }
                "conversationCompacted" => self.compacted(ts, out),
                kind => known(kind, out),
            }
        }
        let origin = if shown { Origin::Human } else { Origin::Harness };
        self.writer.at(ts).user(texts.join("\n"), origin, out);
    }

    fn compacted(&mut self, ts: Option<Millis>, out: &mut Sink<'_>) {
        self.flush(out);
        self.writer.at(ts).write(Body::Compact, out);
    }

    fn flush(&mut self, out: &mut Sink<'_>) {
        if let Some(said) = self.held.take() {
            self.writer.at(said.ts).turn(said.text, said.calls, out);
        }
    }
}

impl Reader for GooseSession {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        match tolerant::read(line) {
            Ok(Object(Some(line))) => self.line(line, out),
            Ok(Object(None)) => out.unreadable("not a JSON object"),
            Err(error) => out.unreadable(error),
        }
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        self.flush(out);
        if let Some(usage) = self.used.take() {
            self.writer.at(self.last).usage(usage, None, out);
        }
    }
}

/// A call; one that could not be read has no name, and the reason for its arguments.
fn call(piece: Content<'_>) -> Call {
    let tool_call = piece.tool_call.0.unwrap_or_default();
    let id = piece.id.owned();
    match tool_call.value.0 {
        Some(call) => {
            let mut made = Call::new(call.name.owned().unwrap_or_default(), call.arguments.into_args());
            made.id = id;
            made
        }
        None => {
            let mut made = Call::new("", tool_call.error.owned().unwrap_or_default().into());
            made.id = id;
            made
        }
    }
}

fn ended(result: &GooseToolResult<'_>) -> (Outcome, String) {
    let texts = result.value.items.iter().filter(|item| item.for_model()).filter_map(|item| item.text.get());
    let mut output = texts.collect::<Vec<_>>().join("\n");
    if output.is_empty() {
        result.error.as_str().clone_into(&mut output);
    }
    let failed = result.status.as_str() == "error"
        || result.value.is_error
        || result.value.exit_code.is_some_and(|code| code != 0.0);
    let outcome = if output.starts_with("The user has declined to run this tool") {
        Outcome::Denied
    } else if result.value.timed_out {
        Outcome::Timeout
    } else if result.error.as_str().starts_with("Interrupted by the user") {
        Outcome::Cancelled
    } else if failed {
        Outcome::Error
    } else {
        Outcome::Ok
    };
    (outcome, output)
}

/// Pieces that are known and say nothing about the session's steps.
fn known(kind: &str, out: &mut Sink<'_>) {
    const QUIET: [&str; 12] = [
        "text",
        "image",
        "toolRequest",
        "toolResponse",
        "toolConfirmationRequest",
        "actionRequired",
        "frontendToolRequest",
        "thinking",
        "redactedThinking",
        "systemNotification",
        "contextLengthExceeded",
        "summarizationRequested",
    ];
    if !QUIET.contains(&kind) {
        out.unknown(if kind.is_empty() { "(no type)" } else { kind });
    }
}
