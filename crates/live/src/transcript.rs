//! Reads what hooks don't carry from the transcript: the model's text and its usage.
//!
//! Calls and results come only from the hook, so that each counts once. The stored state is how far the transcript
//! was read, and the fingerprints of the last messages.

use std::io::{Read, Seek, SeekFrom};

use deloop_detect::short_hash;
use deloop_formats::hooks::{HookAgent, HookEvent, HookKind};
use deloop_formats::{Format, Item, Shape, Source};
use deloop_types::{Body, SessionId, Step};
use serde::{Deserialize, Serialize};

/// Maximum number of bytes that one hook reads. Of more new content, the beginning is skipped.
const MOST: u64 = 1 << 20;
/// Number of messages remembered. A message may be written in parts, or again after a change.
const MESSAGES: usize = 8;
/// Number of calls remembered with their requests.
const CALLS: usize = 32;

/// Opens a transcript and returns its size in bytes.
pub type OpenTranscript = fn(&std::path::Path) -> std::io::Result<(u64, Box<dyn ReadSeek>)>;

/// A reader that can seek.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// How far a transcript has been read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TranscriptPosition {
    /// Position in bytes; `None` before the first read.
    read: Option<u64>,
    /// Hashes of the last requests to the model and of the text in their answers.
    messages: Vec<(u64, u64)>,
    /// Hashes of the last calls and of their requests. The calls of one request are one turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<(u64, u64)>,
    /// Whether something came after the last request: a result, or a message to the agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    answered: bool,
    /// Tells requests apart whose answers have one name.
    #[serde(skip_serializing_if = "is_zero")]
    shared: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// New content of a transcript.
#[derive(Debug, Default)]
pub(crate) struct TranscriptNews {
    /// The usage.
    pub(crate) usage: Vec<Step>,
    /// The text that came with the calls of this event, or at the end of the turn.
    pub(crate) text: Option<String>,
}

/// Reads what was added to the transcript since the last event. An unreadable transcript counts as empty.
pub(crate) fn since(
    agent: &dyn HookAgent,
    event: &HookEvent,
    position: &mut TranscriptPosition,
    open: OpenTranscript,
) -> TranscriptNews {
    // A subagent's events name its session's file.
    let path = event.transcript.as_deref().filter(|_| event.subagent.is_none());
    let format = deloop_formats::find(agent.name()).filter(|f| f.shape() == Shape::Lines);
    let (Some(path), Some(format)) = (path, format) else { return TranscriptNews::default() };
    let begins = matches!(event.kind, HookKind::SessionStart | HookKind::Prompt);
    let Some(bytes) = fresh(path, position, begins, open) else { return TranscriptNews::default() };
    let mut items = read(format, path, bytes);
    items.retain(|item| item.step.agent.is_none());
    news(items, event, position)
}

/// Reads what a subagent used from its own transcript, if it has one.
pub(crate) fn subagent_usage(
    agent: &dyn HookAgent,
    event: &HookEvent,
    position: &mut TranscriptPosition,
    open: OpenTranscript,
) -> Vec<Step> {
    let path = event.subagent.as_deref().zip(event.transcript.as_deref());
    let path = path.and_then(|(subagent, session)| agent.subagent_transcript(session, subagent));
    let format = deloop_formats::find(agent.name()).filter(|f| f.shape() == Shape::Lines);
    let (Some(path), Some(format)) = (path, format) else { return Vec::new() };
    let Some(bytes) = fresh(&path, position, false, open) else { return Vec::new() };
    let mut usage = news(read(format, &path, bytes), event, position).usage;
    usage.iter_mut().for_each(|step| step.agent.clone_from(&event.subagent));
    usage
}

fn read(format: &'static dyn Format, path: &str, bytes: Vec<u8>) -> Vec<Item> {
    let bytes = deloop_formats::bound_lines(bytes);
    let source = Source { path: Some(std::path::Path::new(path)) };
    let mut items: Vec<Item> = Vec::new();
    deloop_formats::read(format, &bytes, &source, &mut |item| items.push(item));
    items
}

/// Returns the complete lines written since the last read, or the last of them if there are too many.
fn fresh(
    path: &str,
    position: &mut TranscriptPosition,
    begins: bool,
    open: OpenTranscript,
) -> Option<Vec<u8>> {
    let (size, mut file) = open(std::path::Path::new(path)).ok()?;
    let from = match position.read {
        // Content from before the first event is ignored.
        None if begins => size,
        None => 0,
        Some(read) if read > size => 0,
        Some(read) => read,
    };
    position.read = Some(from);
    let skipped = size.saturating_sub(MOST).max(from);
    if skipped == size {
        return None;
    }
    file.seek(SeekFrom::Start(skipped)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    // An incomplete line is read next time.
    let end = bytes.iter().rposition(|b| *b == b'\n')? + 1;
    bytes.truncate(end);
    position.read = Some(skipped + end as u64);
    if skipped > from {
        let start = bytes.iter().position(|b| *b == b'\n')? + 1;
        bytes.drain(..start);
    }
    Some(bytes)
}

fn news(items: Vec<Item>, event: &HookEvent, position: &mut TranscriptPosition) -> TranscriptNews {
    let mut news = TranscriptNews::default();
    let mut spoken: Option<deloop_types::Turn> = None;
    let mut last: Option<u64> = None;
    let mut calls: Vec<u64> = Vec::new();
    for Item { step, key, may_be_shared } in items {
        match step.body {
            Body::Turn(turn) => {
                last = Some(short_hash(turn.text.trim().as_bytes()));
                calls = turn.calls.iter().filter_map(|call| call.id.as_deref()).map(hash).collect();
                spoken = Some(turn);
            }
            Body::Result(_) | Body::User(_) => {
                spoken = None;
                position.answered = true;
            }
            Body::Usage(usage) => {
                let request = position.request(key.unwrap_or(0), may_be_shared);
                let words = last.take().unwrap_or(0);
                if key.is_some() && position.messages.contains(&(request, words)) {
                    spoken = None;
                }
                let known = key.is_some() && position.messages.iter().any(|(r, _)| *r == request);
                if key.is_some() {
                    position.remember((request, words));
                    position.remember_calls(calls.drain(..).map(|call| (call, request)));
                }
                if !known {
                    let session = SessionId::from(event.session.as_str());
                    news.usage.push(Step::new(session, Body::Usage(usage)));
                }
            }
            _ => {}
        }
    }
    news.text = spoken.filter(|turn| belongs(turn, event)).map(|turn| turn.text);
    news.text = news.text.filter(|text| !text.trim().is_empty());
    news
}

/// Returns whether the turn's text belongs to the calls of an event, or to the end of a turn.
fn belongs(turn: &deloop_types::Turn, event: &HookEvent) -> bool {
    match event.kind {
        HookKind::PreCall => {
            let mine = |id: &str| event.calls.iter().any(|c| c.transcript_id() == Some(id));
            let named = event.calls.iter().any(|c| c.transcript_id().is_some());
            let ids: Vec<&str> = turn.calls.iter().filter_map(|c| c.id.as_deref()).collect();
            !named || ids.is_empty() || ids.iter().any(|id| mine(id))
        }
        HookKind::Stop => turn.calls.is_empty() && event.said.is_none(),
        _ => false,
    }
}

impl TranscriptPosition {
    /// Returns whether nothing was read yet.
    pub(crate) fn is_new(&self) -> bool {
        self.read.is_none()
    }

    /// Returns what identifies a request: its `key`, and what came before it if others may have this key.
    fn request(&mut self, key: u64, may_be_shared: bool) -> u64 {
        let answered = std::mem::take(&mut self.answered);
        if !may_be_shared {
            return key;
        }
        self.shared = self.shared.wrapping_add(u64::from(answered));
        short_hash(format!("{key} {}", self.shared).as_bytes())
    }

    fn remember(&mut self, message: (u64, u64)) {
        self.messages.retain(|m| *m != message);
        if self.messages.len() >= MESSAGES {
            self.messages.remove(0);
        }
        self.messages.push(message);
    }

    fn remember_calls(&mut self, calls: impl Iterator<Item = (u64, u64)>) {
        self.calls.extend(calls);
        let over = self.calls.len().saturating_sub(CALLS);
        self.calls.drain(..over);
    }

    /// Sets the turn id of each step whose calls are in the transcript. Hooks that run once for each parallel call
    /// don't show that the calls are one turn.
    pub(crate) fn name_turns(&self, steps: &mut [Step]) {
        for step in steps {
            if let Body::Turn(turn) = &mut step.body
                && let Some(id) = turn.calls.first().and_then(|call| call.id.as_deref())
                && let Some((_, request)) = self.calls.iter().rev().find(|(call, _)| *call == hash(id))
            {
                turn.id = Some(format!("{request:016x}"));
            }
        }
    }
}

fn hash(id: &str) -> u64 {
    short_hash(id.as_bytes())
}

/// Adds the model's text to its turn.
pub(crate) fn attach(text: Option<String>, event: &HookEvent, steps: &mut Vec<Step>) {
    let Some(text) = text else { return };
    if event.kind == HookKind::Stop {
        steps.push(Step::text(event.session.as_str(), text));
        return;
    }
    for step in steps {
        if let Body::Turn(turn) = &mut step.body {
            turn.text = text;
            return;
        }
    }
}
