use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Millis, SessionId};

/// One thing that happened in an agent's session.
///
/// Read one from its JSON line with [`str::parse`] or [`Step::from_slice`]; build one with the
/// constructors.
///
/// ```
/// use deloop_types::Step;
/// let step = Step::call("s1", "bash", serde_json::json!({"command": "ls"})).by("worker-1");
/// let line = serde_json::to_string(&step)?;
/// assert_eq!(line.parse::<Step>()?, step);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The session it belongs to; `default` when the line names none.
    pub session: SessionId,
    /// Which worker or subagent of the session; history is kept for each of them.
    pub agent: Option<String>,
    /// Workers with one goal, over many sessions.
    pub swarm: Option<String>,
    /// The task the session works on.
    pub task: Option<String>,
    /// When it happened, if known.
    pub ts: Option<Millis>,
    /// What happened.
    pub body: Body,
}

/// What happened in a [`Step`].
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The model spoke: text, calls or both.
    Turn(Turn),
    /// A call came back.
    Result(ToolResult),
    /// A message to the agent.
    User(UserText),
    /// What a request to the model used.
    Usage(Usage),
    /// A piece of a message that still streams; the turn that it becomes comes when it is whole.
    Chunk(String),
    /// The agent's context was cut or summarised.
    Compact,
    /// Whether the message of an earlier decision reached the agent.
    Delivery(Delivery),
    /// The session is over and may be forgotten.
    End,
}

/// What the model said and asked for in one go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// The text; empty when there was none.
    pub text: String,
    /// The calls, in order; several are parallel calls.
    pub calls: Vec<Call>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The id a result refers to.
    pub id: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// Its arguments, any JSON.
    pub args: Value,
}

/// What a call came back with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    /// The call's id; without one the result belongs to the oldest unanswered call of the latest turn
    /// that has any.
    pub id: Option<String>,
    /// Whether it went well, where the agent says so.
    pub ok: Option<bool>,
    /// Says more than `ok` does.
    pub outcome: Option<Outcome>,
    /// What came back: a string or any JSON.
    pub output: Value,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It went well.
    Ok,
    /// It failed.
    Error,
    /// A person or a policy refused it.
    Denied,
    /// It was called off.
    Cancelled,
    /// It took too long.
    Timeout,
    /// It still runs.
    Running,
}

/// A message to the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserText {
    /// What it says.
    pub text: String,
    /// Who wrote it.
    pub origin: Origin,
}

/// Who wrote a message to the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A person.
    #[default]
    Human,
    /// The program around the agent: an automatic "continue".
    Harness,
}

/// What a request to the model used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// The model's name.
    pub model: Option<String>,
    /// Tokens read, without those from the cache.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the provider's cache.
    pub cache_write_tokens: u64,
    /// What it cost, where the agent says so.
    pub cost_usd: Option<f64>,
}

/// Whether the message of an earlier decision reached the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The `step` of that decision.
    pub step: u64,
    /// Whether it reached the agent.
    pub ok: bool,
}

impl Step {
    /// A step of `session` with nothing but its body.
    pub fn new(session: impl Into<SessionId>, body: Body) -> Self {
        Self { session: session.into(), agent: None, swarm: None, task: None, ts: None, body }
    }

    /// A turn with one call and no text.
    pub fn call(session: impl Into<SessionId>, tool: impl Into<String>, args: Value) -> Self {
        let call = Call { id: None, tool: tool.into(), args };
        Self::new(session, Body::Turn(Turn { text: String::new(), calls: vec![call] }))
    }

    /// A turn with text and no call.
    pub fn text(session: impl Into<SessionId>, text: impl Into<String>) -> Self {
        Self::new(session, Body::Turn(Turn { text: text.into(), calls: Vec::new() }))
    }

    /// The result of a call that is not named: the oldest unanswered one of the latest turn that has any.
    pub fn result(session: impl Into<SessionId>, ok: bool, output: impl Into<Value>) -> Self {
        let result = ToolResult { ok: Some(ok), output: output.into(), ..ToolResult::default() };
        Self::new(session, Body::Result(result))
    }

    /// A message from a person.
    pub fn user(session: impl Into<SessionId>, text: impl Into<String>) -> Self {
        Self::new(session, Body::User(UserText { text: text.into(), origin: Origin::Human }))
    }

    /// A piece of a message that still streams.
    pub fn chunk(session: impl Into<SessionId>, text: impl Into<String>) -> Self {
        Self::new(session, Body::Chunk(text.into()))
    }

    /// The end of a session.
    pub fn end(session: impl Into<SessionId>) -> Self {
        Self::new(session, Body::End)
    }

    /// The same step, of this worker or subagent.
    #[must_use]
    pub fn by(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// The same step, at this time.
    #[must_use]
    pub fn at(mut self, ts: Millis) -> Self {
        self.ts = Some(ts);
        self
    }
}

impl Turn {
    /// The text, or `None` when it is empty or only white space.
    #[must_use]
    pub fn said(&self) -> Option<&str> {
        (!self.text.trim().is_empty()).then_some(self.text.as_str())
    }
}

impl ToolResult {
    /// How it ended, from `outcome` or else from `ok`; `None` when the agent did not say.
    #[must_use]
    pub fn ended(&self) -> Option<Outcome> {
        self.outcome.or_else(|| self.ok.map(|ok| if ok { Outcome::Ok } else { Outcome::Error }))
    }
}

impl Usage {
    /// All tokens, those from and for the cache included.
    #[must_use]
    pub fn all_tokens(&self) -> u64 {
        let parts = [self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

impl Outcome {
    /// Whether the call failed: an error or a time-out. A refusal is nobody's failure.
    #[must_use]
    pub fn failed(self) -> bool {
        matches!(self, Self::Error | Self::Timeout)
    }
}
