//! Writes the Steps of one agent of one session.

use deloop_types::{Body, Call, Millis, Origin, Outcome, SessionId, Step, ToolResult, Turn, Usage, UserText};
use serde_json::Value;

use crate::timeout::refine;
use crate::{Item, Sink, Source};

/// The session, agent and time of the next Steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct StepWriter {
    pub(crate) session: SessionId,
    /// The subagent, if any.
    pub(crate) agent: Option<String>,
    pub(crate) ts: Option<Millis>,
}

impl StepWriter {
    /// Writes for the main agent of this session, or of the session `default`.
    pub(crate) fn new(session: Option<impl Into<SessionId>>) -> Self {
        Self { session: session.map_or_else(SessionId::default, Into::into), ..Self::default() }
    }

    /// Writes for the main agent of the session that a file is named after.
    pub(crate) fn for_file(source: &Source<'_>) -> Self {
        Self::new(source.stem())
    }

    /// Sets the time of the Steps that follow.
    pub(crate) fn at(&mut self, ts: Option<Millis>) -> &Self {
        self.ts = ts;
        self
    }

    /// Creates a Step without writing it.
    pub(crate) fn step(&self, body: Body) -> Step {
        let mut step = Step::new(self.session.clone(), body);
        step.agent.clone_from(&self.agent);
        step.ts = self.ts;
        step
    }

    /// Writes a Step.
    pub(crate) fn write(&self, body: Body, out: &mut Sink<'_>) {
        out.step(self.step(body));
    }

    /// Writes a message of the model, unless it has neither text nor calls.
    pub(crate) fn turn(&self, text: impl Into<String>, calls: Vec<Call>, out: &mut Sink<'_>) {
        let text = text.into();
        if !calls.is_empty() || !text.trim().is_empty() {
            self.write(Body::Turn(Turn::new(text, calls)), out);
        }
    }

    /// Writes the result of a call; see [`tool_result`].
    pub(crate) fn result(
        &self,
        id: Option<String>,
        ended: Option<Outcome>,
        output: impl Into<Option<String>>,
        out: &mut Sink<'_>,
    ) {
        self.write(Body::Result(tool_result(id, ended, output)), out);
    }

    /// Writes a message to the agent, unless it is blank.
    pub(crate) fn user(&self, text: impl Into<String>, origin: Origin, out: &mut Sink<'_>) {
        let text = text.into();
        if !text.trim().is_empty() {
            self.write(Body::User(UserText::new(text, origin)), out);
        }
    }

    /// Writes the usage of a request, unless it is zero; `key` identifies the request across files.
    pub(crate) fn usage(&self, usage: Usage, key: Option<u64>, out: &mut Sink<'_>) {
        if usage.all_tokens() > 0 || usage.cost_usd.is_some_and(|cost| cost > 0.0) {
            out.usage(self.step(Body::Usage(usage)), key);
        }
    }
}

/// Creates the result of a call from how it ended, if the format records that, and its output, if the file contains it.
/// `ok` covers plain success and error; every other ending is an `outcome`.
pub(crate) fn tool_result(
    id: Option<String>,
    ended: Option<Outcome>,
    output: impl Into<Option<String>>,
) -> ToolResult {
    let output = output.into();
    let ended = ended.map(|ended| refine(ended, output.as_deref().unwrap_or_default()));
    let (ok, outcome) = match ended {
        Some(Outcome::Ok) => (Some(true), None),
        Some(Outcome::Error) => (Some(false), None),
        other => (None, other),
    };
    let mut made = ToolResult::default();
    made.id = id;
    made.ok = ok;
    made.outcome = outcome;
    made.output = output.map_or(Value::Null, Value::String);
    made
}

/// Collects the items that `write` writes; its reports go to `out`.
pub(crate) fn collect(out: &mut Sink<'_>, write: impl FnOnce(&mut Sink<'_>)) -> Vec<Item> {
    let mut items = Vec::new();
    let mut emit = |item| items.push(item);
    let mut sink = Sink::new(&mut emit);
    write(&mut sink);
    for (kind, count) in sink.report.unknown {
        (0..count).for_each(|_| out.unknown(&kind));
    }
    items
}
