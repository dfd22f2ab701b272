//! Events to Steps.

use deloop_types::{Body, Call, Millis, Origin, SessionId, Usage};
use xxhash_rust::xxh3::xxh3_64;

use super::outcome;
use super::record::{CopilotRecord, Data};
use super::totals::CopilotTotals;
use crate::json::tolerant;
use crate::json::tolerant::Object;
use crate::recent::{RecentMap, RecentSet};
use crate::step_writer::StepWriter;
use crate::{Reader, Sink, Source};

pub(super) struct Events {
    writer: StepWriter,
    /// The last message, of which more may follow.
    held: Option<PendingMessage>,
    /// What the request of the next message used, by the request's name.
    used: Option<(String, Usage)>,
    /// Calls that a person or a rule refused.
    denied: RecentSet<u64>,
    /// The tools of the calls, by the hashes of their ids.
    tools: RecentMap<u64, Box<str>>,
    totals: CopilotTotals,
    /// When the message came that carries the event.
    carried: Option<Millis>,
}

/// What the model said in one go; the response may be cut into several events.
struct PendingMessage {
    agent: Option<String>,
    response: Option<String>,
    ts: Option<Millis>,
    texts: Vec<String>,
    calls: Vec<Call>,
    model: Option<String>,
    written: u64,
    used: Option<Usage>,
}

impl Events {
    pub(super) fn new(source: &Source<'_>) -> Self {
        let mut writer = StepWriter::for_file(source);
        let folder = source.path.and_then(|path| path.parent()?.file_name()?.to_str());
        if let (Some("events"), Some(folder)) = (source.stem(), folder) {
            writer.session = SessionId::from(folder);
        }
        Self {
            writer,
            held: None,
            used: None,
            denied: RecentSet::default(),
            tools: RecentMap::default(),
            totals: CopilotTotals::default(),
            carried: None,
        }
    }

    /// Names the session.
    pub(super) fn name(&mut self, session: &str) {
        self.writer.session = SessionId::from(session);
    }

    /// Reads an event that came inside another message at this time.
    pub(super) fn wrapped(&mut self, event: &[u8], carried: Option<Millis>, out: &mut Sink<'_>) {
        self.carried = carried;
        self.read(event, out);
        self.carried = None;
    }

    fn event(&mut self, event: CopilotRecord<'_>, out: &mut Sink<'_>) {
        let data = event.data.0.unwrap_or_default();
        let ts = event.timestamp.0.or(self.carried);
        let agent =
            [&event.agent_id, &data.parent_tool_call_id].iter().find_map(|id| id.get()).map(str::to_owned);
        let kind = event.kind.as_str();
        if kind != "assistant.message" {
            self.flush(out);
        }
        match kind {
            "session.start" | "session.resume" => self.started(data, out),
            "assistant.message" => self.said(agent, ts, data, out),
            "assistant.usage" => self.used(data, out),
            "tool.execution_complete" => self.done(agent, ts, data, out),
            "user.message" => self.user(agent, ts, data, out),
            "system.notification" => {
                let text = data.content.owned().unwrap_or_default();
                self.writer(agent, ts).user(text, Origin::Notice, out);
            }
            "permission.completed" => self.permission(&data),
            "session.compaction_complete" if data.success.0 == Some(false) => {}
            "session.compaction_complete"
            | "session.truncation"
            | "session.snapshot_rewind"
            | "session.context_cleared" => self.writer(agent, ts).write(Body::Compact, out),
            "session.shutdown" => self.shut_down(event.id.as_str(), ts, data, out),
            "" => out.unknown("(no type)"),
            kind if quiet(kind) => {}
            kind => out.unknown(kind),
        }
    }

    fn writer(&self, agent: Option<String>, ts: Option<Millis>) -> StepWriter {
        StepWriter { session: self.writer.session.clone(), agent, ts }
    }

    fn started(&mut self, data: Data<'_>, out: &mut Sink<'_>) {
        if let Some(id) = data.session_id.get() {
            self.writer.session = SessionId::from(id);
        }
        if let Some(cwd) = data.context.0.and_then(|context| context.cwd.owned()) {
            out.report.project = Some(cwd);
        }
        if let Some(version) = data.copilot_version.owned() {
            out.report.version = Some(version);
        }
    }

    fn said(&mut self, agent: Option<String>, ts: Option<Millis>, data: Data<'_>, out: &mut Sink<'_>) {
        let response = data.api_call_id.owned();
        let goes_on = self
            .held
            .as_ref()
            .is_some_and(|held| response.is_some() && held.response == response && held.agent == agent);
        if !goes_on {
            self.flush(out);
        }
        let used = self.used.take_if(|(request, _)| response.as_ref() == Some(request));
        let said = self.held.get_or_insert_with(|| PendingMessage {
            agent,
            response: response.or_else(|| data.message_id.owned()),
            ts,
            texts: Vec::new(),
            calls: Vec::new(),
            model: data.model.owned(),
            written: 0,
            used: None,
        });
        said.used = used.map(|(_, usage)| usage).or(said.used.take());
        // The parts of one response tell its tokens each, or only one of them does.
        said.written = said.written.max(data.output_tokens.0);
        said.texts.extend(data.content.owned());
        for request in data.tool_requests.0 {
            let mut made = Call::new(request.name.owned().unwrap_or_default(), request.arguments.into_args());
            made.id = request.tool_call_id.owned();
            if let Some(id) = &made.id {
                self.tools.insert(xxh3_64(id.as_bytes()), made.tool.as_str().into());
            }
            said.calls.push(made);
        }
    }

    fn flush(&mut self, out: &mut Sink<'_>) {
        let Some(said) = self.held.take() else { return };
        let writer = self.writer(said.agent, said.ts);
        writer.turn(said.texts.join("\n"), said.calls, out);
        let usage = said.used.unwrap_or_else(|| {
            let mut usage = Usage::default();
            usage.model = said.model;
            usage.output_tokens = said.written;
            usage
        });
        self.totals.message(&usage);
        let key = said.response.map(|id| xxh3_64(id.as_bytes()));
        writer.usage(usage, key, out);
    }

    /// What a request used comes before its message, in logs that programs keep.
    fn used(&mut self, data: Data<'_>, out: &mut Sink<'_>) {
        self.without_message(out);
        let (read, write) = (data.cache_read_tokens.0, data.cache_write_tokens.0);
        let input = data.input_tokens.0;
        let mut usage = Usage::default();
        usage.input_tokens = input.checked_sub(read.saturating_add(write)).unwrap_or(input);
        usage.output_tokens = data.output_tokens.0;
        usage.cache_read_tokens = read;
        usage.cache_write_tokens = write;
        usage.model = data.model.owned();
        self.used = Some((data.api_call_id.owned().unwrap_or_default(), usage));
    }

    /// Writes the usage of a request whose message never came.
    fn without_message(&mut self, out: &mut Sink<'_>) {
        let Some((request, usage)) = self.used.take() else { return };
        self.totals.message(&usage);
        let key = (!request.is_empty()).then(|| xxh3_64(request.as_bytes()));
        self.writer.usage(usage, key, out);
    }

    fn done(&mut self, agent: Option<String>, ts: Option<Millis>, data: Data<'_>, out: &mut Sink<'_>) {
        if data.is_user_requested.0 == Some(true) {
            return;
        }
        let denied =
            data.tool_call_id.get().is_some_and(|id| self.denied.remove(&xxh3_64(id.as_bytes())).is_some());
        let content = data.result.0.as_ref().and_then(|result| result.content.0.as_deref());
        let message = data.error.0.as_ref().and_then(|error| error.message.get());
        let output = message.filter(|_| content.is_none_or(str::is_empty)).or(content).map(str::to_owned);
        let tool = data.tool_call_id.get().and_then(|id| self.tools.get(&xxh3_64(id.as_bytes())));
        let tool = tool.map_or("", AsRef::as_ref);
        let ended = outcome::of(&data, tool, output.as_deref().unwrap_or_default(), denied);
        self.writer(agent, ts).result(data.tool_call_id.owned(), ended, output, out);
    }

    fn user(&mut self, agent: Option<String>, ts: Option<Millis>, data: Data<'_>, out: &mut Sink<'_>) {
        let automatic = agent.is_some()
            || data.is_autopilot_continuation.0 == Some(true)
            || data.source.get().is_some_and(|source| source != "user");
        let origin = if automatic { Origin::Harness } else { Origin::Human };
        let text = data.content.owned().unwrap_or_default();
        self.writer(agent, ts).user(text, origin, out);
    }

    fn permission(&mut self, data: &Data<'_>) {
        let answer = data.result.0.as_ref().map_or("", |result| result.kind.as_str());
        if let (true, Some(id)) = (answer.starts_with("denied"), data.tool_call_id.get()) {
            self.denied.insert(xxh3_64(id.as_bytes()), ());
        }
    }

    fn shut_down(&mut self, id: &str, ts: Option<Millis>, data: Data<'_>, out: &mut Sink<'_>) {
        self.without_message(out);
        for (model, metric) in data.model_metrics.0.unwrap_or_default() {
            let usage = self.totals.told(&model, &metric.0.unwrap_or_default());
            let key = xxh3_64(format!("{id}/{model}").as_bytes());
            self.writer.at(ts).usage(usage, Some(key), out);
        }
    }
}

impl Reader for Events {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        if kind(line).is_some_and(long_winded) {
            return;
        }
        match tolerant::read(line) {
            Ok(Object(Some(event))) => self.event(event, out),
            Ok(Object(None)) => out.unreadable("not a JSON object"),
            Err(error) => out.unreadable(error),
        }
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        self.flush(out);
        self.without_message(out);
    }
}

/// The type of a line that begins with it, as they all do.
fn kind(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    rest.get(..memchr::memchr(b'"', rest)?)
}

/// Types that say nothing of use and make up half of a file: not worth parsing.
fn long_winded(kind: &[u8]) -> bool {
    matches!(kind, b"hook.start" | b"hook.end" | b"system.message" | b"tool.execution_start")
}

/// Returns whether this agent has events of the type, or of its family.
pub(super) fn is_known(kind: &str) -> bool {
    kind.starts_with("user.") || quiet(kind)
}

/// Types that are known and say nothing about the session's steps.
fn quiet(kind: &str) -> bool {
    const FAMILIES: [&str; 20] = [
        "assistant",
        "auto_mode_switch",
        "capabilities",
        "command",
        "commands",
        "elicitation",
        "exit_plan_mode",
        "external_tool",
        "factory",
        "hook",
        "mcp",
        "model",
        "pending_messages",
        "permission",
        "session",
        "skill",
        "subagent",
        "system",
        "tool",
        "user_input",
    ];
    let family = kind.split('.').next().unwrap_or(kind);
    matches!(kind, "abort" | "result") || FAMILIES.contains(&family)
}
