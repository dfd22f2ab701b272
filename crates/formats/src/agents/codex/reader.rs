//! Lines into Steps: which items are one turn, and which tokens were counted before.

use deloop_types::{Body, Millis, Outcome, ToolResult, Turn};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::json::tolerant::{self, Shaped, Text};
use crate::step_writer::{StepWriter, tool_result};
use crate::text::append;
use crate::{Reader, Sink, Source};

use super::call::call;
use super::pending_calls::PendingCalls;
use super::record::{CodexLine, CodexTokenInfo, CodexTokens, Payload};
use super::tokens::{counted, numbers};
use super::user_text::user_text;

/// Types of lines that are known to say nothing about the session's steps.
const SILENT_LINES: [&str; 6] = [
    "inter_agent_communication",
    "inter_agent_communication_metadata",
    "realtime_item",
    "retained_context",
    "security_risk_score",
    "world_state",
];

/// Types of events that repeat what an item says, or say nothing about the session's steps.
const SILENT_EVENTS: [&str; 18] = [
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "entered_review_mode",
    "exited_review_mode",
    "image_generation_end",
    "sub_agent_activity",
    "task_complete",
    "task_started",
    "thread_goal_updated",
    "thread_name_updated",
    "turn_aborted",
    "turn_complete",
    "turn_started",
    "user_message",
    "view_image_tool_call",
    "web_search_begin",
    "web_search_end",
];

/// A turn that may go on.
struct CodexOpenTurn {
    ts: Option<Millis>,
    turn: Turn,
    /// The results of calls that the model's server made itself.
    results: Vec<ToolResult>,
}

/// Reads one rollout.
pub(super) struct Rollout {
    writer: StepWriter,
    /// Whether the file has said which session it is; what it says later is about the session it was forked from.
    named: bool,
    /// The thread whose tokens are counted: a fork goes on counting those of the thread it was forked from.
    counted: String,
    /// Lines before this ordinal are the history of the agent that started this one.
    begins_at: Option<u64>,
    model: Option<String>,
    /// What the model has said since it was last told something.
    open: Option<CodexOpenTurn>,
    pending: PendingCalls,
    /// The session's tokens so far, as last told.
    total: Option<[u64; 4]>,
    /// Whether each request tells its own tokens, so that the sums need not be read.
    counts_requests: bool,
    compacted: bool,
}

impl Rollout {
    pub(super) fn new(source: &Source<'_>) -> Self {
        Self {
            writer: StepWriter::for_file(source),
            named: false,
            counted: String::new(),
            begins_at: None,
            model: None,
            open: None,
            pending: PendingCalls::default(),
            total: None,
            counts_requests: false,
            compacted: false,
        }
    }

    /// Hands a step out, after the turn before it.
    fn put(&mut self, ts: Option<Millis>, body: Body, out: &mut Sink<'_>) {
        self.close(out);
        self.writer.at(ts).write(body, out);
    }

    /// The turn that the model is in.
    fn turn(&mut self, ts: Option<Millis>) -> &mut CodexOpenTurn {
        self.compacted = false;
        self.open.get_or_insert_with(|| CodexOpenTurn { ts, turn: Turn::default(), results: Vec::new() })
    }

    /// The turn is over: hands it out.
    fn close(&mut self, out: &mut Sink<'_>) {
        let Some(CodexOpenTurn { ts, turn, results }) = self.open.take() else { return };
        let writer = self.writer.at(ts);
        writer.turn(turn.text, turn.calls, out);
        results.into_iter().for_each(|result| writer.write(Body::Result(result), out));
    }

    fn begin(&mut self, meta: &Payload<'_>, out: &mut Sink<'_>) {
        let id = meta.id.get();
        if let Some(counted) = meta.forked_from_id.get().or(id) {
            counted.clone_into(&mut self.counted);
        }
        if std::mem::replace(&mut self.named, true) {
            return;
        }
        let spawned = match &meta.source {
            Shaped::Object(origin) => &origin.subagent,
            _ => &Value::Null,
        };
        let parent = meta.parent_thread_id.get().or_else(|| parent(spawned));
        if let Some(session) = meta.session_id.get().or(parent).or(id) {
            self.writer.session = session.into();
        }
        if parent.is_some() || !spawned.is_null() {
            self.writer.agent = id.map(str::to_owned);
        }
        self.begins_at = ordinal(&meta.subagent_history_start_ordinal);
        out.report.project = meta.cwd.get().map(str::to_owned);
        out.report.version = meta.cli_version.get().map(str::to_owned);
    }

    fn item(&mut self, item: Payload<'_>, ts: Option<Millis>, out: &mut Sink<'_>) {
        match item.kind.as_str() {
            "message" if item.role.get() == Some("assistant") => self.spoke(item, ts),
            "message" | "agent_message" => {
                let automatic = item.role.get() != Some("user") || self.writer.agent.is_some();
                if let Some(user) = user_text(item.content, item.metadata, automatic) {
                    self.put(ts, Body::User(user), out);
                }
            }
            "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
                let call = self.pending.called(item);
                self.turn(ts).turn.calls.push(call);
            }
            "web_search_call" | "image_generation_call" => self.server_call(item, ts),
            "function_call_output"
            | "custom_tool_call_output"
            | "local_shell_call_output"
            | "tool_search_output" => self.answer(item, ts, out),
            "compaction" | "context_compaction" | "compaction_trigger" => self.compact(ts, out),
            "reasoning" | "ghost_snapshot" | "configuration_update" => {}
            other => out.unknown(&format!("response_item/{other}")),
        }
    }

    fn spoke(&mut self, item: Payload<'_>, ts: Option<Millis>) {
        let turn = &mut self.turn(ts).turn;
        match item.content {
            Shaped::List(parts) => {
                let texts = parts.into_iter().filter_map(|part| part.text.take());
                texts.for_each(|text| append(&mut turn.text, text));
            }
            Shaped::Text(text) => append(&mut turn.text, text),
            Shaped::Object(_) | Shaped::Nothing => {}
        }
    }

    /// A call that the model's server made itself: what came back is not in the file, only how it ended.
    fn server_call(&mut self, item: Payload<'_>, ts: Option<Millis>) {
        let ended = match item.status.as_str() {
            "completed" => Some(Outcome::Ok),
            "failed" | "incomplete" => Some(Outcome::Error),
            _ => None,
        };
        let call = call(item);
        let open = self.turn(ts);
        if call.id.is_some() {
            open.results.push(tool_result(call.id.clone(), ended, None));
        }
        open.turn.calls.push(call);
    }

    fn answer(&mut self, item: Payload<'_>, ts: Option<Millis>, out: &mut Sink<'_>) {
        let (id, ended, text) = self.pending.answered(item);
        self.close(out);
        self.writer.at(ts).result(id, ended, text, out);
    }

    fn event(&mut self, event: Payload<'_>, ts: Option<Millis>, out: &mut Sink<'_>) {
        match event.kind.as_str() {
            "token_count" => {
                if let (false, Shaped::Object(info)) = (self.counts_requests, event.info) {
                    self.sums(&info, ts, out);
                }
            }
            "thread_settings_applied" => {
                if let Shaped::Object(settings) = event.thread_settings {
                    self.use_model(&settings.model);
                }
            }
            "exec_command_end" | "patch_apply_end" | "mcp_tool_call_end" | "item_completed" => {
                self.pending.reported(event);
            }
            "context_compacted" | "thread_rolled_back" => self.compact(ts, out),
            silent if SILENT_EVENTS.contains(&silent) => {}
            other => out.unknown(&format!("event_msg/{other}")),
        }
    }

    fn use_model(&mut self, model: &Text<'_>) {
        if let Some(model) = model.get()
            && self.model.as_deref() != Some(model)
        {
            self.model = Some(model.to_owned());
        }
    }

    /// The sums of the session and of its last request, which are also told again when nothing was added.
    fn sums(&mut self, info: &CodexTokenInfo<'_>, ts: Option<Millis>, out: &mut Sink<'_>) {
        let Shaped::Object(last) = &info.last_token_usage else { return };
        let sum = match &info.total_token_usage {
            Shaped::Object(total) => numbers(total),
            _ => numbers(last),
        };
        if self.total.replace(sum) == Some(sum) {
            return;
        }
        let name = format!("{} {sum:?} {:?}", self.counted, numbers(last));
        self.usage(last, xxh3_64(name.as_bytes()), ts, out);
    }

    fn usage(&mut self, tokens: &CodexTokens, key: u64, ts: Option<Millis>, out: &mut Sink<'_>) {
        self.close(out);
        let usage = counted(tokens, self.model.clone());
        out.usage(self.writer.at(ts).step(Body::Usage(usage)), Some(key));
    }

    /// A compaction is told by a line and an event.
    fn compact(&mut self, ts: Option<Millis>, out: &mut Sink<'_>) {
        if !self.compacted {
            self.put(ts, Body::Compact, out);
        }
        self.compacted = true;
    }

    /// A line of a version of mid-2025: an item, or what the session is, without what it is wrapped in today.
    fn bare(&mut self, line: &[u8], out: &mut Sink<'_>) {
        match tolerant::read::<Payload<'_>>(line) {
            Err(error) => out.unreadable(error),
            Ok(item) if item.kind.get().is_some() => self.item(item, None, out),
            Ok(meta) if meta.id.get().is_some() && meta.timestamp.get().is_some() => self.begin(&meta, out),
            Ok(state) => {
                if state.record_type.get().is_none() {
                    out.unknown("");
                }
            }
        }
    }
}

impl Reader for Rollout {
    fn read(&mut self, line: &[u8], out: &mut Sink<'_>) {
        let record: CodexLine<'_> = match tolerant::read(line) {
            Ok(record) => record,
            Err(error) => return out.unreadable(error),
        };
        let Shaped::Object(payload) = record.payload else { return self.bare(line, out) };
        let kind = record.kind.as_str();
        let ts = record.timestamp.get().and_then(Millis::parse);
        let is_history = self
            .begins_at
            .is_some_and(|begin| record.ordinal.get().is_some() && record.ordinal.count() < begin);
        match kind {
            "session_meta" => self.begin(&payload, out),
            _ if is_history => {}
            "turn_context" => self.use_model(&payload.model),
            "response_item" => self.item(payload, ts, out),
            "event_msg" => self.event(payload, ts, out),
            "compacted" => self.compact(ts, out),
            "token_usage_record" => {
                self.counts_requests = true;
                if let Shaped::Object(tokens) = &payload.usage {
                    let name = payload.response_id.get().unwrap_or(record.timestamp.as_str());
                    self.usage(tokens, xxh3_64(name.as_bytes()), ts, out);
                }
            }
            silent if SILENT_LINES.contains(&silent) => {}
            other => out.unknown(other),
        }
    }

    fn finish(&mut self, out: &mut Sink<'_>) {
        self.close(out);
    }
}

/// The thread that started a subagent, in versions that note it only there.
fn parent(spawned: &Value) -> Option<&str> {
    spawned.get("thread_spawn")?.get("parent_thread_id")?.as_str()
}

/// Written as a number or as a string of digits.
fn ordinal(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
