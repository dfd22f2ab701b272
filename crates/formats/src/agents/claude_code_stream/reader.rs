//! Lines into Steps, by way of the records of a transcript.

use deloop_types::{Body, Millis};
use xxhash_rust::xxh3::xxh3_64;

use super::record::StreamRecord;
use super::totals::StreamTotals;
use crate::agents::claude_code::reader::ClaudeTranscript;
use crate::json::peek;
use crate::json::tolerant::{self, Object};
use crate::step_writer::StepWriter;
use crate::{Item, Reader, Sink, Source};

/// Types that are known and say nothing about the session's steps.
const SILENT: [&str; 14] = [
    "auth_status",
    "control_cancel_request",
    "control_request",
    "control_response",
    "conversation_reset",
    "keep_alive",
    "prompt_suggestion",
    "rate_limit_event",
    "streamlined_text",
    "streamlined_tool_use_summary",
    "stream_event",
    "tool_progress",
    "tool_use_summary",
    "transcript_mirror",
];

/// Reads one log.
pub(super) struct StreamLog {
    transcript: ClaudeTranscript,
    totals: StreamTotals,
    /// Whose usage a result reports.
    writer: StepWriter,
}

impl StreamLog {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self {
            transcript: ClaudeTranscript::new(source),
            totals: StreamTotals::default(),
            writer: StepWriter::for_file(source),
        }
    }

    fn line(&mut self, line: &[u8], out: &mut Sink<'_>) {
        if is_partial(line) {
            return;
        }
        match tolerant::read(line) {
            Ok(Object(Some(record))) => self.record(record, out),
            Ok(Object(None)) => out.unreadable("not a JSON object"),
            Err(error) => out.unreadable(error),
        }
    }

    fn record(&mut self, record: StreamRecord<'_>, out: &mut Sink<'_>) {
        match record.kind.as_str() {
            "assistant" | "user" | "system" => {
                let record = record.into_transcript();
                if let Some(session) = record.session_id.get() {
                    self.writer.session = session.into();
                }
                if let Some(ts) = record.timestamp.get().and_then(Millis::parse) {
                    self.writer.ts = Some(ts);
                }
                self.pass_on(out, |transcript, out| transcript.accept(record, out));
            }
            "result" => self.result(record, out),
            kind if SILENT.contains(&kind) => {}
            "" => out.unknown("(no type)"),
            kind => out.unknown(kind),
        }
    }

    /// The end of a turn, with the tokens of all its requests.
    fn result(&mut self, record: StreamRecord<'_>, out: &mut Sink<'_>) {
        self.pass_on(out, Reader::finish);
        let Some(all) = record.model_usage.0 else { return };
        let fresh = record.model_usage_since_last_result.0;
        for usage in self.totals.result(all, fresh.as_ref()) {
            let name = format!("{} {}", record.uuid.as_str(), usage.model.as_deref().unwrap_or_default());
            let key = record.uuid.get().is_some().then(|| xxh3_64(name.as_bytes()));
            self.writer.usage(usage, key, out);
        }
    }

    /// Passes on what the transcript writes, and adds up its tokens.
    fn pass_on(&mut self, out: &mut Sink<'_>, read: impl FnOnce(&mut ClaudeTranscript, &mut Sink<'_>)) {
        let mut items: Vec<Item> = Vec::new();
        let mut emit = |item| items.push(item);
        let mut inner = Sink::new(&mut emit);
        inner.report = std::mem::take(&mut out.report);
        read(&mut self.transcript, &mut inner);
        out.report = inner.report;
        for Item { step, key, may_be_shared } in items {
            match &step.body {
                Body::Usage(usage) => {
                    self.totals.reported(usage);
                    match may_be_shared {
                        true => out.unsure_usage(step, key),
                        false => out.usage(step, key),
                    }
                }
                _ => out.step(step),
            }
        }
    }
}

impl Reader for StreamLog {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        if line.starts_with(b"[") {
            // `--output-format json` with `--verbose` prints the same as one list.
            peek::elements(line).for_each(|record| self.line(record, out));
        } else {
            self.line(line, out);
        }
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        self.pass_on(out, Reader::finish);
    }
}

/// Returns whether a line is part of a message that follows as a whole. With `--include-partial-messages`, most are.
fn is_partial(line: &[u8]) -> bool {
    line.starts_with(br#"{"type":"stream_event""#)
}
