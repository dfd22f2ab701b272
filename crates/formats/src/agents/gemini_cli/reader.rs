//! Messages to Steps, whichever shape of file they come from.

use std::collections::HashSet;
use std::path::Path;

use deloop_types::{Body, Millis, Origin, Outcome, SessionId, Usage};

use super::identity::{CALL, MESSAGE, RESULT, hash};
use super::model_message::{CompletedCall, ModelMessage, batches};
use super::outcome;
use super::record::{GeminiMessage, GeminiRecord, Texts};
use crate::json::tolerant;
use crate::recent::RecentSet;
use crate::step_writer::StepWriter;
use crate::{Reader, Sink, Source};

/// Reads lines as well as documents: a document is a header that holds its messages.
pub(super) struct GeminiSession {
    writer: StepWriter,
    parent: Option<String>,
    /// The model's last message, of which a later record may be a newer version or the rest.
    held: Vec<ModelMessage>,
    /// Ids of the model's messages that were handed out and that its context still holds.
    context: RecentSet<u64>,
    /// Ids of the messages, calls and results that were handed out.
    done: RecentSet<u64>,
    /// Hash of a person's last words.
    prompt: Option<u64>,
}

impl GeminiSession {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self {
            writer: StepWriter::for_file(source),
            parent: source.path.and_then(folder_of_parent),
            held: Vec::new(),
            context: RecentSet::default(),
            done: RecentSet::default(),
            prompt: None,
        }
    }

    fn record(&mut self, record: GeminiRecord<'_>, out: &mut Sink<'_>) {
        if let Some(patch) = record.patch.0 {
            self.named(patch.session_id.get(), None);
            worked_on(&patch.directories, out);
            if let Some(messages) = patch.messages {
                self.replaced(messages.0, out);
            }
        } else if record.rewind_to.0.is_some() {
            self.flush(out);
            self.context = RecentSet::default();
            self.writer.at(None).write(Body::Compact, out);
        } else if record.session_id.get().is_some() && record.id.get().is_none() {
            self.named(record.session_id.get(), record.kind.get());
            worked_on(&record.directories, out);
            for message in record.messages.0 {
                self.message(message, out);
            }
        } else {
            self.message(record.into_message(), out);
        }
    }

    fn named(&mut self, id: Option<&str>, kind: Option<&str>) {
        let Some(id) = id else { return };
        if kind == Some("subagent") {
            self.writer.agent = Some(id.to_owned());
            self.writer.session = SessionId::from(self.parent.as_deref().unwrap_or(id));
        } else if self.writer.agent.is_none() {
            self.writer.session = SessionId::from(id);
        }
    }

    fn message(&mut self, message: GeminiMessage<'_>, out: &mut Sink<'_>) {
        match message.role.as_str() {
            "gemini" => self.model(message, out),
            "user" => self.user(&message, out),
            "info" | "warning" | "error" => {}
            "" => out.unknown("(no type)"),
            other => out.unknown(other),
        }
    }

    /// The history was rewritten: masked outputs keep all messages, a summary replaces some. What follows the last
    /// known message is new; if none is known, all of it is a summary.
    fn replaced(&mut self, messages: Vec<GeminiMessage<'_>>, out: &mut Sink<'_>) {
        self.flush(out);
        let ids: Vec<Option<u64>> = messages.iter().map(|m| hash(MESSAGE, m.id.get())).collect();
        let known = ids.iter().rposition(|id| id.is_some_and(|id| self.done.get(&id).is_some()));
        let fresh = if self.done.len() == 0 { 0 } else { known.map_or(ids.len(), |at| at + 1) };
        let kept: HashSet<u64> = ids.into_iter().flatten().collect();
        if self.context.retain(|id| kept.contains(id)) {
            let ts = messages.iter().filter_map(|m| m.timestamp.0).max();
            self.writer.at(ts).write(Body::Compact, out);
        }
        for message in messages.into_iter().skip(fresh) {
            self.message(message, out);
        }
    }

    fn model(&mut self, message: GeminiMessage<'_>, out: &mut Sink<'_>) {
        let said = ModelMessage::new(message);
        if let Some(held) = self.held.iter_mut().find(|held| held.id.is_some() && held.id == said.id) {
            *held = said;
            return;
        }
        let rest = said.text.is_empty() && !said.calls.is_empty();
        if !(rest && self.held.iter().all(|held| held.calls.is_empty())) {
            self.flush(out);
        }
        self.held.push(said);
    }

    fn user(&mut self, message: &GeminiMessage<'_>, out: &mut Sink<'_>) {
        self.flush(out);
        let ts = message.timestamp.0;
        for response in &message.content.responses {
            let output = outcome::response(response);
            let ended = outcome::of_response(response, &output);
            self.result(ts, response.id.get(), Some(ended), Some(output), out);
        }
        let news = self.first_time(hash(MESSAGE, message.id.get()));
        if !news {
            return;
        }
        let (shown, sent) = (message.display_content.text(), message.content.text());
        // A hook that keeps the agent going sends words of its own, shown as the person's last ones.
        let again = !shown.is_empty() && self.prompt == hash(MESSAGE, Some(&shown));
        let continued = again && !sent.contains(shown.as_str());
        let text = if shown.is_empty() || continued { sent } else { shown };
        let automatic = self.writer.agent.is_some()
            || !message.content.responses.is_empty()
            || continued
            || automatic(text.trim());
        let origin = if automatic { Origin::Harness } else { Origin::Human };
        if !automatic {
            self.prompt = hash(MESSAGE, Some(&text));
        }
        self.writer.at(ts).user(text, origin, out);
    }

    fn flush(&mut self, out: &mut Sink<'_>) {
        let held = std::mem::take(&mut self.held);
        let ts = held.first().and_then(|said| said.ts);
        let mut text = String::new();
        let mut usage = None;
        let mut calls = Vec::new();
        for said in held {
            let news = self.first_time(said.id);
            if news {
                if let Some(id) = said.id.filter(|_| !said.text.is_empty() || !said.calls.is_empty()) {
                    self.context.insert(id, ());
                }
                usage = usage.or(said.usage.map(|used| (said.id, used)));
                text.push_str(&said.text);
            }
            calls.extend(said.calls.into_iter().filter(|done| news || done.call.id.is_some()));
        }
        let mut batches = batches(calls).into_iter();
        self.batch(ts, text, usage, batches.next().unwrap_or_default(), out);
        for batch in batches {
            let ts = batch.first().and_then(|done| done.ts);
            self.batch(ts, String::new(), None, batch, out);
        }
    }

    fn batch(
        &mut self,
        ts: Option<Millis>,
        text: String,
        usage: Option<(Option<u64>, Usage)>,
        batch: Vec<CompletedCall>,
        out: &mut Sink<'_>,
    ) {
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for CompletedCall { call, ts, result } in batch {
            results.extend(result.map(|(ended, output)| (ts, call.id.clone(), ended, output)));
            if self.first_time(hash(CALL, call.id.as_deref())) {
                calls.push(call);
            }
        }
        self.writer.at(ts).turn(text, calls, out);
        if let Some((id, usage)) = usage {
            self.writer.at(ts).usage(usage, id, out);
        }
        for (ts, id, ended, output) in results {
            self.result(ts, id.as_deref(), ended, output, out);
        }
    }

    fn result(
        &mut self,
        ts: Option<Millis>,
        id: Option<&str>,
        ended: Option<Outcome>,
        output: Option<String>,
        out: &mut Sink<'_>,
    ) {
        if self.first_time(hash(RESULT, id)) {
            self.writer.at(ts).result(id.map(str::to_owned), ended, output, out);
        }
    }

    /// Returns whether this has not been handed out yet; what has no id cannot be told.
    fn first_time(&mut self, id: Option<u64>) -> bool {
        id.is_none_or(|id| self.done.insert(id, ()))
    }
}

impl Reader for GeminiSession {
    fn read(&mut self, bytes: &[u8], out: &mut Sink<'_>) {
        match tolerant::read(bytes) {
            Ok(tolerant::Object(Some(record))) => self.record(record, out),
            Ok(tolerant::Object(None)) => out.unreadable("not a JSON object"),
            Err(error) => out.unreadable(error),
        }
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        self.flush(out);
    }
}

/// Returns whether the program wrote it: its own continues and notes, and commands to it.
fn automatic(text: &str) -> bool {
    const STARTS: [&str; 5] =
        ["System: ", "[System: ", "<session_context>", "<hook_context>", "<state_snapshot>"];
    let command = text.strip_prefix('/').and_then(|rest| rest.split_whitespace().next());
    text == "Please continue."
        || STARTS.iter().any(|start| text.starts_with(start))
        || command.is_some_and(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b"-:_".contains(&b)))
}

fn worked_on(directories: &Texts<'_>, out: &mut Sink<'_>) {
    if let Some(directory) = directories.0.first() {
        out.report.project = Some(directory.clone().into_owned());
    }
}

/// Files of subagents are in a folder that is named after the session they belong to.
fn folder_of_parent(path: &Path) -> Option<String> {
    let name = path.parent()?.file_name()?.to_str()?;
    (name != "chats").then(|| name.to_owned())
}
