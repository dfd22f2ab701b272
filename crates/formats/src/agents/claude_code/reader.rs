//! Lines into Steps: whose they are, which belong to one message, and which say what was said before.

use std::collections::BTreeMap;

use deloop_types::{Body, Millis, Step, Usage};
use xxhash_rust::xxh3::xxh3_64;

use crate::json::tolerant::{self, Shaped, Text};
use crate::recent::{RecentMap, RecentSet};
use crate::step_writer::StepWriter;
use crate::text::append;
use crate::{Reader, Sink, Source};

use super::message::{ClaudeOpenMessage, counted, is_result, read_tokens, request, result};
use super::outcome::ClaudeOutcomeFields;
use super::record::{Attachment, ClaudeMessage, ClaudeRecord, ResultDetails};
use super::skip::{is_progress, result_details, split};
use super::user_text::{texts, user_text};

/// Types of records that are known to say nothing about the session's steps.
const SILENT: [&str; 17] = [
    "agent-color",
    "agent-name",
    "ai-title",
    "api-request",
    "api-request-blob",
    "atis-latch",
    "cost-state",
    "custom-title",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "queue-operation",
    "summary",
    "tag",
];

/// Reads one transcript.
pub(in crate::agents) struct ClaudeTranscript {
    writer: StepWriter,
    /// The uuids of the records and the names of the requests that were there before.
    seen: RecentSet<u64>,
    /// Which subagent a record is of that names none, by the record's uuid.
    sidechains: RecentMap<u64, String>,
    /// The message that each agent has under way, by the agent's name.
    open: BTreeMap<String, ClaudeOpenMessage>,
    compacted: bool,
    /// The memory that lines are put together in.
    spare: Vec<u8>,
}

impl ClaudeTranscript {
    pub(in crate::agents) fn new(source: &Source<'_>) -> Self {
        Self {
            writer: StepWriter::for_file(source),
            seen: RecentSet::default(),
            sidechains: RecentMap::default(),
            open: BTreeMap::new(),
            compacted: false,
            spare: Vec::new(),
        }
    }

    fn is_repeated(&mut self, uuid: &Text<'_>) -> bool {
        uuid.get().is_some_and(|uuid| !self.seen.insert(xxh3_64(uuid.as_bytes()), ()))
    }

    /// Takes what the record says about the session as a whole.
    fn note(&mut self, record: &ClaudeRecord<'_>, out: &mut Sink<'_>) {
        if let Some(session) = record.session_id.get()
            && session != self.writer.session.as_str()
        {
            self.writer.session = session.into();
        }
        if out.report.project.is_none() {
            out.report.project = record.cwd.get().map(str::to_owned);
        }
        if let Some(version) = record.version.get()
            && out.report.version.as_deref() != Some(version)
        {
            out.report.version = Some(version.to_owned());
        }
    }

    /// The subagent that a record is of; empty for the main agent. Old versions give subagents no names: there,
    /// each chain of records that starts anew is one.
    fn agent(&mut self, record: &ClaudeRecord<'_>) -> String {
        if let Some(agent) = record.agent_id.get() {
            return agent.to_owned();
        }
        if !record.is_sidechain.is_true() {
            return String::new();
        }
        let hash = |uuid: &Text<'_>| uuid.get().map(|uuid| xxh3_64(uuid.as_bytes()));
        let known = hash(&record.parent_uuid).and_then(|parent| self.sidechains.get(&parent)).cloned();
        let agent = known.unwrap_or_else(|| {
            let start: String = record.uuid.as_str().chars().take(8).collect();
            format!("sidechain-{start}")
        });
        if let Some(uuid) = hash(&record.uuid) {
            self.sidechains.insert(uuid, agent.clone());
        }
        agent
    }

    fn step(&self, agent: &str, ts: Option<Millis>, body: Body) -> Step {
        let agent = (!agent.is_empty()).then(|| agent.to_owned());
        let mut made = self.writer.step(body);
        made.agent = agent;
        made.ts = ts;
        made
    }

    /// Hands a step out, or keeps it until the message before it is complete.
    fn put(&mut self, agent: &str, ts: Option<Millis>, body: Body, out: &mut Sink<'_>) {
        let step = self.step(agent, ts, body);
        match self.open.get_mut(agent) {
            Some(open) => open.behind.push(step),
            None => out.step(step),
        }
    }

    fn assistant(&mut self, record: ClaudeRecord<'_>, out: &mut Sink<'_>) {
        let agent = self.agent(&record);
        let ts = time(&record.timestamp);
        let cost = record.cost_usd.get();
        let Shaped::Object(message) = record.message else { return };
        if record.is_api_error_message.is_true() || message.model.get() == Some("<synthetic>") {
            return;
        }
        self.compacted = false;
        let name = request(&message.id, &record.request_id);
        let ClaudeMessage { model, content, usage, .. } = message;
        let usage = usage.object().map(|tokens| counted(&tokens, &model, cost));
        self.begin(agent.clone(), name, ts, usage.as_ref(), out);

        let mut results = Vec::new();
        if let Some(open) = self.open.get_mut(&agent) {
            open.usage = usage.or(open.usage.take());
            match content {
                Shaped::List(blocks) => blocks.into_iter().for_each(|block| results.extend(open.add(block))),
                content => texts(content).into_iter().for_each(|text| append(&mut open.turn.text, text)),
            }
        }
        for result in results {
            self.put(&agent, ts, Body::Result(result), out);
        }
    }

    /// Makes sure that the agent's open message is the one that `name` names.
    fn begin(
        &mut self,
        agent: String,
        name: Option<u64>,
        ts: Option<Millis>,
        usage: Option<&Usage>,
        out: &mut Sink<'_>,
    ) {
        let prompt = usage.map_or(0, read_tokens);
        if self.open.get(&agent).is_some_and(|open| open.goes_on(name, prompt)) {
            return;
        }
        self.close(&agent, out);
        let step = self.step(&agent, ts, Body::End);
        self.open.insert(agent, ClaudeOpenMessage::new(name, prompt, step));
    }

    /// Hands out an agent's open message and what came after it.
    fn close(&mut self, agent: &str, out: &mut Sink<'_>) {
        let Some(open) = self.open.remove(agent) else { return };
        let counted = open.name().is_some_and(|name| !self.seen.insert(name, ()));
        open.hand_out(counted, out);
    }

    fn user(&mut self, record: ClaudeRecord<'_>, out: &mut Sink<'_>) {
        let agent = self.agent(&record);
        let ts = time(&record.timestamp);
        if record.is_compact_summary.is_true() {
            self.compact(&agent, ts, out);
            return;
        }
        let automatic = record.is_meta.is_true()
            || !agent.is_empty()
            || record.prompt_source.get() == Some("system")
            || is_automatic(record.origin.object().and_then(|origin| origin.kind.take()).as_deref());
        let Shaped::Object(message) = record.message else { return };
        let words = match message.content {
            Shaped::List(blocks) => {
                let (results, rest): (Vec<_>, Vec<_>) = blocks.into_iter().partition(is_result);
                for block in results {
                    let denial = record.tool_denial_kind.get();
                    let evidence = ClaudeOutcomeFields {
                        denial,
                        details: &record.tool_use_result,
                        failed: block.is_error.is_true(),
                    };
                    self.put(&agent, ts, Body::Result(result(block, &evidence)), out);
                }
                texts(Shaped::List(rest))
            }
            content => texts(content),
        };
        if let Some(user) = user_text(words, automatic) {
            self.put(&agent, ts, Body::User(user), out);
        }
    }

    /// A message that a person wrote while the agent was busy is an attachment; so are reminders, which are not read.
    fn attachment(&mut self, record: ClaudeRecord<'_>, out: &mut Sink<'_>) {
        let agent = self.agent(&record);
        let ts = time(&record.timestamp);
        let Shaped::Object(attachment) = record.attachment else { return };
        let Attachment { kind, prompt, command_mode, origin, is_meta } = attachment;
        if kind.get() != Some("queued_command") {
            return;
        }
        let automatic = is_meta.is_true()
            || !agent.is_empty()
            || !matches!(command_mode.get(), None | Some("prompt"))
            || is_automatic(origin.object().and_then(|origin| origin.kind.take()).as_deref());
        if let Some(user) = user_text(texts(prompt), automatic) {
            self.put(&agent, ts, Body::User(user), out);
        }
    }

    fn system(&mut self, record: &ClaudeRecord<'_>, out: &mut Sink<'_>) {
        if matches!(record.subtype.get(), Some("compact_boundary" | "microcompact_boundary")) {
            let agent = self.agent(record);
            self.compact(&agent, time(&record.timestamp), out);
        }
    }

    /// A boundary and the summary after it are one compaction.
    fn compact(&mut self, agent: &str, ts: Option<Millis>, out: &mut Sink<'_>) {
        if !self.compacted {
            self.put(agent, ts, Body::Compact, out);
        }
        self.compacted = true;
    }
}

impl Reader for ClaudeTranscript {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        if is_progress(line) {
            return;
        }
        let Some((before, after, result)) = split(line) else {
            return self.record(line, Shaped::Nothing, out);
        };
        let mut rest = std::mem::take(&mut self.spare);
        rest.clear();
        rest.extend_from_slice(before);
        rest.extend_from_slice(after);
        self.record(&rest, result_details(result), out);
        self.spare = rest;
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        for agent in self.open.keys().cloned().collect::<Vec<_>>() {
            self.close(&agent, out);
        }
    }
}

impl ClaudeTranscript {
    /// Reads a record, without the `details` that were cut out of it.
    fn record<'a>(&mut self, line: &'a [u8], details: Shaped<'a, ResultDetails<'a>>, out: &mut Sink<'_>) {
        let mut record: ClaudeRecord<'_> = match tolerant::read(line) {
            Ok(record) => record,
            Err(error) => return out.unreadable(error),
        };
        if !matches!(details, Shaped::Nothing) {
            record.tool_use_result = details;
        }
        self.accept(record, out);
    }

    /// Reads a parsed record.
    pub(in crate::agents) fn accept(&mut self, record: ClaudeRecord<'_>, out: &mut Sink<'_>) {
        let kind = record.kind.as_str();
        if SILENT.contains(&kind) {
            return;
        }
        if !matches!(kind, "assistant" | "user" | "system" | "attachment") {
            return out.unknown(kind);
        }
        if self.is_repeated(&record.uuid) {
            return;
        }
        self.note(&record, out);
        match kind {
            "assistant" => self.assistant(record, out),
            "user" => self.user(record, out),
            "attachment" => self.attachment(record, out),
            _ => self.system(&record, out),
        }
    }
}

fn time(timestamp: &Text<'_>) -> Option<Millis> {
    timestamp.get().and_then(Millis::parse)
}

/// Returns whether a record's `origin` is something other than a person.
fn is_automatic(origin: Option<&str>) -> bool {
    origin.is_some_and(|kind| kind != "human")
}
