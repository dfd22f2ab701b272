//! Lines into Steps: whose they are, which belong to one message, and which say what was said before.

use std::collections::BTreeMap;
use std::sync::Arc;

use deloop_types::{Body, Millis, Origin, Step};
use xxhash_rust::xxh3::xxh3_64;

use crate::json::tolerant::{self, Shaped, Text};
use crate::recent::{RecentMap, RecentSet};
use crate::step_writer::StepWriter;
use crate::text::append;
use crate::{OwnFiles, Reader, Sink, Source};

use super::message::{ClaudeOpenMessage, counted, is_result, read_tokens, request, result};
use super::outcome::ClaudeOutcomeFields;
use super::record::{Attachment, ClaudeBlock, ClaudeMessage, ClaudeProgress, ClaudeRecord, ResultDetails};
use super::skip::{is_agent_progress, is_progress, result_details, split};
use super::user_text::{declared, texts, user_text};

/// Types of records that are known to say nothing about the session's steps.
const SILENT: [&str; 16] = [
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
    /// The tools of the calls, by the hashes of their ids.
    tools: RecentMap<u64, Box<str>>,
    /// The message that each agent has under way, by the agent's name.
    open: BTreeMap<String, ClaudeOpenMessage>,
    compacted: bool,
    /// The uuid of the latest record that a timer went off.
    fired: Option<u64>,
    /// The subagents whose messages are read from files of their own.
    own_files: OwnFiles,
    /// The memory that lines are put together in.
    spare: Vec<u8>,
}

impl ClaudeTranscript {
    pub(in crate::agents) fn new(source: &Source<'_>) -> Self {
        Self {
            writer: StepWriter::for_file(source),
            seen: RecentSet::default(),
            sidechains: RecentMap::default(),
            tools: RecentMap::default(),
            open: BTreeMap::new(),
            compacted: false,
            fired: None,
            own_files: OwnFiles::default(),
            spare: Vec::new(),
        }
    }

    fn is_repeated(&mut self, uuid: &Text<'_>) -> bool {
        hash(uuid).is_some_and(|uuid| !self.seen.insert(uuid, ()))
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
        let prompt = usage.as_ref().map_or(0, read_tokens);
        if !self.open.get(&agent).is_some_and(|open| open.goes_on(name, prompt, &content)) {
            self.close(&agent, out);
            let step = self.step(&agent, ts, Body::End);
            self.open.insert(agent.clone(), ClaudeOpenMessage::new(name, prompt, step));
        }

        let mut results = Vec::new();
        if let Shaped::List(blocks) = &content {
            self.note_tools(blocks);
        }
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

    /// Notes which tools are called, because a result names only its call.
    fn note_tools(&mut self, blocks: &[ClaudeBlock<'_>]) {
        for block in blocks.iter().filter(|block| block.kind.as_str().ends_with("tool_use")) {
            if let Some(id) = hash(&block.id) {
                self.tools.insert(id, block.name.as_str().into());
            }
        }
    }

    /// Hands out an agent's open message and what came after it.
    fn close(&mut self, agent: &str, out: &mut Sink<'_>) {
        if let Some(open) = self.open.remove(agent) {
            open.hand_out(&mut self.seen, out);
        }
    }

    /// Hands out the open message with this call, so that a subagent comes after the call that started it.
    fn close_caller(&mut self, call: &Text<'_>, out: &mut Sink<'_>) {
        let calls =
            |open: &ClaudeOpenMessage| open.turn.calls.iter().any(|made| made.id.as_deref() == call.get());
        let caller = self.open.iter().find(|(_, open)| call.get().is_some() && calls(open));
        if let Some(agent) = caller.map(|(agent, _)| agent.clone()) {
            self.close(&agent, out);
        }
    }

    fn user(&mut self, record: ClaudeRecord<'_>, out: &mut Sink<'_>) {
        let agent = self.agent(&record);
        let ts = time(&record.timestamp);
        if record.is_compact_summary.is_true() {
            self.compact(&agent, ts, out);
            return;
        }
        let automatic =
            record.is_meta.is_true() || !agent.is_empty() || record.prompt_source.get() == Some("system");
        // Versions that don't name the task have the prompt right behind the record that the timer went off.
        let scheduled = record.scheduled_task_id.get().is_some()
            || (automatic && self.fired.is_some() && hash(&record.parent_uuid) == self.fired);
        let origin = if scheduled {
            Some(Origin::Schedule)
        } else {
            let kind = record.origin.object().and_then(|origin| origin.kind.take());
            declared(kind.as_deref()).or(automatic.then_some(Origin::Harness))
        };
        let Shaped::Object(message) = record.message else { return };
        let words = match message.content {
            Shaped::List(blocks) => {
                let (results, rest): (Vec<_>, Vec<_>) = blocks.into_iter().partition(is_result);
                for block in results {
                    let denial = record.tool_denial_kind.get();
                    let tool = hash(&block.tool_use_id).and_then(|id| self.tools.get(&id));
                    let evidence = ClaudeOutcomeFields {
                        tool: tool.map_or("", AsRef::as_ref),
                        denial,
                        details: &record.tool_use_result,
                        failed: block.is_error.is_true(),
                    };
                    let result = result(block, &evidence);
                    self.put(&agent, ts, Body::Result(result), out);
                }
                texts(Shaped::List(rest))
            }
            content => texts(content),
        };
        if let Some(user) = user_text(words, origin) {
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
        let automatic = is_meta.is_true() || !agent.is_empty();
        let kind = origin.object().and_then(|origin| origin.kind.take());
        let origin = match command_mode.get() {
            Some("task-notification") => Some(Origin::Notice),
            None | Some("prompt") => declared(kind.as_deref()).or(automatic.then_some(Origin::Harness)),
            Some(_) => declared(kind.as_deref()).or(Some(Origin::Harness)),
        };
        if let Some(user) = user_text(texts(prompt), origin) {
            self.put(&agent, ts, Body::User(user), out);
        }
    }

    fn system(&mut self, record: &ClaudeRecord<'_>, out: &mut Sink<'_>) {
        match record.subtype.as_str() {
            "compact_boundary" | "microcompact_boundary" => {
                let agent = self.agent(record);
                self.compact(&agent, time(&record.timestamp), out);
            }
            "scheduled_task_fire" => self.fired = hash(&record.uuid),
            _ => {}
        }
    }

    /// Reads the message of a subagent that a `progress` record holds. A subagent with a file of its own has it there.
    fn progress<'a>(&mut self, record: ClaudeRecord<'a>, out: &mut Sink<'_>) {
        let Shaped::Object(ClaudeProgress { kind, agent_id, message }) = record.data else { return };
        let Shaped::Object(message) = message else { return };
        let has_own_file = agent_id.get().is_none_or(|agent| self.own_files.contains(agent));
        if kind.get() != Some("agent_progress") || has_own_file {
            return;
        }
        self.close_caller(&record.parent_call, out);
        let mut message: ClaudeRecord<'a> = *message;
        message.agent_id = agent_id;
        message.session_id = record.session_id;
        message.cwd = record.cwd;
        message.version = record.version;
        if !matches!(record.tool_use_result, Shaped::Nothing) {
            message.tool_use_result = record.tool_use_result;
        }
        self.step_of(message, out);
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
        if is_progress(line) && !is_agent_progress(line) {
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

    fn leave_to_own_files(&mut self, subagents: &OwnFiles) {
        self.own_files = Arc::clone(subagents);
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
        if kind == "progress" {
            self.progress(record, out);
        } else if matches!(kind, "assistant" | "user" | "system" | "attachment") {
            self.step_of(record, out);
        } else if !SILENT.contains(&kind) {
            out.unknown(kind);
        }
    }

    /// Reads a record that says something about the session's steps, unless it was there before.
    fn step_of(&mut self, record: ClaudeRecord<'_>, out: &mut Sink<'_>) {
        if self.is_repeated(&record.uuid) {
            return;
        }
        self.note(&record, out);
        match record.kind.as_str() {
            "assistant" => self.assistant(record, out),
            "user" => self.user(record, out),
            "attachment" => self.attachment(record, out),
            "system" => self.system(&record, out),
            _ => {}
        }
    }
}

fn hash(uuid: &Text<'_>) -> Option<u64> {
    uuid.get().map(|uuid| xxh3_64(uuid.as_bytes()))
}

fn time(timestamp: &Text<'_>) -> Option<Millis> {
    timestamp.get().and_then(Millis::parse)
}
