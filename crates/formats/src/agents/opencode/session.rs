//! A session's messages to Steps, wherever they come from.

use std::borrow::Cow;

use deloop_types::{Body, Call, Millis, Origin, Outcome, SessionId, Usage};
use xxhash_rust::xxh3::xxh3_64;

use super::record::{
    OpencodeCallState, OpencodeMessage, OpencodeMessageInfo, OpencodePart, OpencodeSession, OpencodeTokens,
};
use crate::Sink;
use crate::step_writer::StepWriter;
use crate::timeout::says_timeout;

/// Hands out the steps of one session, whose messages are in order. `writer` is who to take it for where it does
/// not say.
pub(super) fn read(
    mut writer: StepWriter,
    session: OpencodeSession<'_>,
    messages: Vec<OpencodeMessage<'_>>,
    out: &mut Sink<'_>,
) {
    let id = session.id.get().or_else(|| messages.iter().find_map(|m| m.info.0.as_ref()?.session.get()));
    if let Some(id) = id {
        writer.session = SessionId::from(id);
    }
    let mut prompted = false;
    if let Some(parent) = session.parent.get() {
        writer.agent = Some(writer.session.as_str().to_owned());
        writer.session = SessionId::from(parent);
        prompted = true;
    }
    out.report.project = session.directory.owned().or_else(|| {
        messages.iter().find_map(|m| m.info.0.as_ref()?.path.0.as_ref()?.root.get()).map(str::to_owned)
    });
    out.report.version = session.version.owned();
    let mut reader = OpencodeSessionReader { writer, prompted, compacting: false };
    for message in messages {
        reader.message(message, out);
    }
}

struct OpencodeSessionReader {
    writer: StepWriter,
    /// The next message of the user was written by the agent that started this one.
    prompted: bool,
    /// The context was cut, the summary is yet to come.
    compacting: bool,
}

impl OpencodeSessionReader {
    fn message(&mut self, message: OpencodeMessage<'_>, out: &mut Sink<'_>) {
        let info = message.info.0.unwrap_or_default();
        match info.role.as_str() {
            "user" => self.user(&info, message.parts.0, out),
            "assistant" => self.model(&info, message.parts.0, out),
            "" => out.unknown("(no role)"),
            other => out.unknown(other),
        }
    }

    fn user(&mut self, info: &OpencodeMessageInfo<'_>, parts: Vec<OpencodePart<'_>>, out: &mut Sink<'_>) {
        let ts = created(info);
        let mut said = Vec::new();
        let mut added = Vec::new();
        for part in parts {
            match part.kind.as_str() {
                "text" if part.ignored.0 == Some(true) => {}
                "text" if part.synthetic.0 == Some(true) => added.extend(part.text.owned()),
                "text" => said.extend(part.text.owned()),
                "compaction" => self.compacted(ts, out),
                kind => known(kind, out),
            }
        }
        let prompted = std::mem::take(&mut self.prompted);
        let by_person = !said.is_empty() && !prompted;
        let text = if said.is_empty() { added } else { said }.join("\n");
        let origin = if by_person { Origin::Human } else { Origin::Harness };
        self.writer.at(ts).user(text, origin, out);
    }

    fn compacted(&mut self, ts: Option<Millis>, out: &mut Sink<'_>) {
        self.compacting = true;
        self.writer.at(ts).write(Body::Compact, out);
    }

    fn model(&mut self, info: &OpencodeMessageInfo<'_>, parts: Vec<OpencodePart<'_>>, out: &mut Sink<'_>) {
        if info.summary.0 == Some(true) && !self.compacting {
            self.compacted(created(info), out);
        }
        self.compacting = false;
        let mut request = Request::new(created(info));
        let mut counted = false;
        for part in parts {
            match part.kind.as_str() {
                "step-start" => self.finish(request.restart(), info, out),
                "step-finish" => {
                    request.usage = part.tokens.0.as_ref().map(|tokens| used(info, tokens, part.cost.0));
                    request.key = key(&part.id);
                    counted |= request.usage.is_some();
                }
                "text" if part.ignored.0 != Some(true) => {
                    request.began(part.time.0.as_ref().and_then(|time| time.start.0));
                    request.texts.extend(part.text.owned());
                }
                "tool" => request.call(part),
                kind => known(kind, out),
            }
        }
        if !counted {
            request.usage = info.tokens.0.as_ref().map(|tokens| used(info, tokens, info.cost.0));
            request.key = key(&info.id);
        }
        self.finish(request, info, out);
    }

    fn finish(&mut self, request: Request, info: &OpencodeMessageInfo<'_>, out: &mut Sink<'_>) {
        let Request { ts, texts, calls, results, usage, key, .. } = request;
        if info.summary.0 != Some(true) {
            self.writer.at(ts).turn(texts.join("\n"), calls, out);
        }
        if let Some(usage) = usage {
            self.writer.at(ts).usage(usage, key, out);
        }
        for OpencodeResult { ts, id, ended, output } in results {
            self.writer.at(ts).result(id, Some(ended), output, out);
        }
    }
}

/// What a call came back with, and when.
struct OpencodeResult {
    ts: Option<Millis>,
    id: Option<String>,
    ended: Outcome,
    output: Option<String>,
}

/// One request to the model; older versions put several into one message.
struct Request {
    ts: Option<Millis>,
    empty: bool,
    texts: Vec<String>,
    calls: Vec<Call>,
    results: Vec<OpencodeResult>,
    usage: Option<Usage>,
    key: Option<u64>,
}

impl Request {
    fn new(ts: Option<Millis>) -> Self {
        Self {
            ts,
            empty: true,
            texts: Vec::new(),
            calls: Vec::new(),
            results: Vec::new(),
            usage: None,
            key: None,
        }
    }

    /// Begins the next request, and gives this one away.
    fn restart(&mut self) -> Self {
        let unused = self.empty && self.usage.is_none();
        let ts = if unused { self.ts } else { None };
        std::mem::replace(self, Self::new(ts))
    }

    fn began(&mut self, ts: Option<Millis>) {
        self.empty = false;
        self.ts = self.ts.or(ts);
    }

    fn call(&mut self, part: OpencodePart<'_>) {
        let state = part.state.0.unwrap_or_default();
        let (start, end) = state.time.0.as_ref().map_or((None, None), |time| (time.start.0, time.end.0));
        self.began(start);
        let id = part.call.owned();
        if let Some(ended) = ended(part.tool.as_str(), &state) {
            let output = if ended_badly(&state) { state.error } else { state.output };
            let output = output.0.map(Cow::into_owned);
            self.results.push(OpencodeResult { ts: end, id: id.clone(), ended, output });
        }
        self.calls.push({
            let mut made = Call::new(part.tool.owned().unwrap_or_default(), state.input.0);
            made.id = id;
            made
        });
    }
}

fn ended_badly(state: &OpencodeCallState<'_>) -> bool {
    state.status.as_str() == "error" && state.error.get().is_some()
}

/// How the call ended; nothing if it has not. A command that failed is `completed`, with its exit code beside it. One that was
/// ended has none, and a note of opencode's at the end of its output.
fn ended(tool: &str, state: &OpencodeCallState<'_>) -> Option<Outcome> {
    const REFUSED: [&str; 5] = [
        "rejected permission",
        "The user dismissed this question",
        "Permission denied by ruleset",
        "Rule prevents tool usage",
        "specified a rule which prevents",
    ];
    let error = state.error.as_str();
    let exit = state.metadata.0.as_ref().and_then(|m| m.exit.0);
    let has_note = tool == "bash" && exit.is_none();
    let note =
        state.output.as_str().rsplit_once("<bash_metadata>").filter(|_| has_note).map_or("", |(_, n)| n);
    match state.status.as_str() {
        "completed" if says_timeout(note) => Some(Outcome::Timeout),
        "completed" if note.contains("User aborted") => Some(Outcome::Cancelled),
        "completed" => {
            let failed = exit.is_some_and(|exit| exit != 0.0);
            Some(if failed { Outcome::Error } else { Outcome::Ok })
        }
        "error" if REFUSED.iter().any(|words| error.contains(words)) => Some(Outcome::Denied),
        // What a tool threw begins with the name of the error.
        "error" if error == "Tool execution aborted" => Some(Outcome::Cancelled),
        "error" => Some(Outcome::Error),
        _ => None,
    }
}

fn used(info: &OpencodeMessageInfo<'_>, tokens: &OpencodeTokens, cost: Option<f64>) -> Usage {
    let (read, write) = tokens.cache.0.as_ref().map_or((0, 0), |cache| (cache.read.0, cache.write.0));
    let (input, output, reasoning) = (tokens.input.0, tokens.output.0, tokens.reasoning.0);
    let apart = [input, output, reasoning, read, write].iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
    let output = if apart == Some(tokens.total.0) { output.saturating_add(reasoning) } else { output };
    let mut made = Usage::default();
    made.model = info.model.get().map(str::to_owned);
    made.input_tokens = input;
    made.output_tokens = output;
    made.cache_read_tokens = read;
    made.cache_write_tokens = write;
    made.cost_usd = cost;
    made
}

fn key(id: &crate::json::tolerant::Text<'_>) -> Option<u64> {
    id.get().map(|id| xxh3_64(id.as_bytes()))
}

fn created(info: &OpencodeMessageInfo<'_>) -> Option<Millis> {
    info.time.0.as_ref()?.created.0
}

fn known(kind: &str, out: &mut Sink<'_>) {
    const QUIET: [&str; 10] = [
        "text",
        "reasoning",
        "file",
        "agent",
        "subtask",
        "snapshot",
        "patch",
        "retry",
        "step-start",
        "step-finish",
    ];
    if !QUIET.contains(&kind) {
        out.unknown(if kind.is_empty() { "(no type)" } else { kind });
    }
}
