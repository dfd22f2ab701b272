//! Whose steps a file holds, and the making of those steps.

use deloop_types::{Body, Call, Millis, Origin, Outcome, SessionId, Step, Turn, Usage, UserText};

use crate::parts;

/// The session and, in it, the agent whose steps are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Author {
    /// The session.
    pub(crate) session: SessionId,
    /// The subagent, if it is one.
    pub(crate) agent: Option<String>,
}

impl Author {
    /// The main agent of a session, named by the file until a record names it.
    pub(crate) fn of(source: &crate::Source<'_>) -> Self {
        Self { session: source.stem().map_or_else(SessionId::default, SessionId::from), agent: None }
    }

    /// A step of this author.
    pub(crate) fn step(&self, ts: Option<Millis>, body: Body) -> Step {
        let mut step = Step::new(self.session.clone(), body);
        step.agent.clone_from(&self.agent);
        step.ts = ts;
        step
    }

    /// What the model said and called; nothing if it did neither.
    pub(crate) fn turn(&self, ts: Option<Millis>, text: String, calls: Vec<Call>) -> Option<Step> {
        (!calls.is_empty() || !text.trim().is_empty())
            .then(|| self.step(ts, Body::Turn(Turn::new(text, calls))))
    }

    /// What a call came back with; no output when the file does not hold it.
    pub(crate) fn result(
        &self,
        ts: Option<Millis>,
        id: Option<String>,
        ended: Option<Outcome>,
        output: impl Into<Option<String>>,
    ) -> Step {
        self.step(ts, Body::Result(parts::result(id, ended, output)))
    }

    /// A message to the agent; nothing if it says nothing.
    pub(crate) fn user(&self, ts: Option<Millis>, text: String, origin: Origin) -> Option<Step> {
        (!text.trim().is_empty()).then(|| self.step(ts, Body::User(UserText::new(text, origin))))
    }

    /// What a request used; nothing if it used nothing.
    pub(crate) fn usage(&self, ts: Option<Millis>, usage: Usage) -> Option<Step> {
        let tokens =
            usage.input_tokens | usage.output_tokens | usage.cache_read_tokens | usage.cache_write_tokens;
        let used = tokens > 0 || usage.cost_usd.is_some_and(|cost| cost > 0.0);
        used.then(|| self.step(ts, Body::Usage(usage)))
    }
}
