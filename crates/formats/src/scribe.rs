//! Writes the Steps of one agent of one session.

use deloop_types::{Body, Call, Millis, Origin, SessionId, Step, ToolResult, Turn, Usage, UserText};

use crate::{Item, Sink};

pub(crate) use crate::parts::result;

/// Who speaks, and when; whatever is written goes out under this name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scribe {
    pub(crate) session: SessionId,
    pub(crate) agent: Option<String>,
    pub(crate) ts: Option<Millis>,
}

impl Scribe {
    /// The main agent of the session named, or of the session `default`.
    pub(crate) fn new(session: Option<String>) -> Self {
        Self { session: session.map_or_else(SessionId::default, SessionId::from), agent: None, ts: None }
    }

    /// A message of the model; nothing when it is empty.
    pub(crate) fn turn(&self, text: &str, calls: Vec<Call>, out: &mut Sink<'_>) {
        let text = text.trim();
        if !text.is_empty() || !calls.is_empty() {
            out.step(self.step(Body::Turn(Turn::new(text.to_owned(), calls))));
        }
    }

    /// What a call came back with.
    pub(crate) fn result(&self, result: ToolResult, out: &mut Sink<'_>) {
        out.step(self.step(Body::Result(result)));
    }

    /// A message to the agent; nothing when it is blank.
    pub(crate) fn user(&self, text: &str, origin: Origin, out: &mut Sink<'_>) {
        let text = text.trim();
        if !text.is_empty() {
            out.step(self.step(Body::User(UserText::new(text.to_owned(), origin))));
        }
    }

    /// What a request used; nothing when it says nothing.
    pub(crate) fn usage(&self, usage: Usage, key: Option<u64>, out: &mut Sink<'_>) {
        let counts =
            [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens];
        if counts.iter().any(|n| *n > 0) || usage.cost_usd.is_some_and(|c| c > 0.0) {
            out.usage(self.step(Body::Usage(usage)), key);
        }
    }

    fn step(&self, body: Body) -> Step {
        {
            let mut made = Step::new(self.session.clone(), body);
            made.agent = self.agent.clone();
            made.ts = self.ts;
            made
        }
    }
}

/// What `write` writes, held back; what it reports goes to `out`.
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
