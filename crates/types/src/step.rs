#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Millis, SessionId, TurnEmbedding, Usage};

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
#[non_exhaustive]
pub struct Step {
    /// The session it belongs to; `default` when the line names none.
    pub session: SessionId,
    /// The worker or subagent. Each one in a session has its own history.
    pub agent: Option<String>,
    /// The swarm: a group of workers with one goal, across sessions.
    pub swarm: Option<String>,
    /// The session that started this one and is responsible for it.
    pub controller: Option<SessionId>,
    /// The task the session works on.
    pub task: Option<String>,
    /// The project the session works on. What keeps failing is remembered per project, across sessions.
    pub project: Option<String>,
    /// When it happened, if known.
    pub ts: Option<Millis>,
    /// What happened.
    pub body: Body,
}

/// What happened in a [`Step`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Body {
    /// The model answered: text, calls or both.
    Turn(Turn),
    /// A call came back.
    Result(ToolResult),
    /// A message to the agent.
    User(UserText),
    /// What a request to the model used.
    Usage(Usage),
    /// A piece of a message that is still streaming. The complete turn follows as a step of its own.
    Chunk(String),
    /// The agent's context was cut or summarised.
    Compact,
    /// Whether the message of an earlier decision reached the agent.
    Delivery(Delivery),
    /// The embedding of an earlier turn, if it wasn't known yet when the turn arrived.
    Embedding(TurnEmbedding),
    /// A person intervened outside the conversation: current episodes are over, and a stop is lifted.
    Intervention,
    /// The session is over and may be forgotten.
    End,
    /// The step's swarm has completed and may be forgotten.
    SwarmEnd,
    /// Asks for the state of the session and of the step's swarm. Nothing happened, and nothing changes.
    State,
}

/// One answer of the model: its text and the calls it asked for.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// Names the turn. Steps with the same id are one turn, so parallel calls may arrive one by one.
    pub id: Option<String>,
    /// The text; empty when there was none.
    pub text: String,
    /// The calls, in order; several are parallel calls.
    pub calls: Vec<Call>,
    /// The text's embedding, for profiles that compare turns by meaning.
    pub embedding: Option<Vec<f32>>,
}

/// One tool call.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The id a result refers to. The same id twice in a session is the same call.
    pub id: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// Its arguments, any JSON; the raw text where the model wrote something that isn't JSON.
    pub args: Value,
}

/// What a call came back with.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The call's id; without one the result belongs to the oldest unanswered call of the latest turn
    /// that has any.
    pub id: Option<String>,
    /// Whether the call succeeded, if the agent reports it.
    pub ok: Option<bool>,
    /// How the call ended; more specific than `ok`.
    pub outcome: Option<Outcome>,
    /// What came back: a string or any JSON.
    pub output: Value,
    /// The kind of error, as the tool or framework names it: `ENOENT`, `ValueError`, `rate_limited`.
    pub error_type: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// The call succeeded.
    Ok,
    /// The call failed.
    Error,
    /// A person or a policy refused the call.
    Denied,
    /// The call was cancelled.
    Cancelled,
    /// The call timed out.
    Timeout,
    /// The call is still running.
    Running,
    /// The call never ran: the tool doesn't exist, or its arguments failed the tool's schema.
    Invalid,
}

/// A message to the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UserText {
    /// What it says.
    pub text: String,
    /// Who wrote it.
    pub origin: Origin,
}

/// Who wrote a message to the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A person.
    #[default]
    Human,
    /// The program around the agent: an automatic "continue".
    Harness,
    /// A program that reports something: a background task that ended, an event that was subscribed to, a subagent's
    /// notice. It is news, and asks for nothing.
    Notice,
    /// A timer: a heartbeat, a cron job, a loop command. The same words come again at every beat.
    Schedule,
}

/// Whether the message of an earlier decision reached the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// The `step` of that decision.
    pub step: u64,
    /// Whether it reached the agent.
    pub ok: bool,
}

impl Step {
    /// Creates a step of `session` with nothing but its body.
    pub fn new(session: impl Into<SessionId>, body: Body) -> Self {
        Self {
            session: session.into(),
            agent: None,
            swarm: None,
            controller: None,
            task: None,
            project: None,
            ts: None,
            body,
        }
    }

    /// Creates a turn with text, calls or both.
    pub fn turn(session: impl Into<SessionId>, text: impl Into<String>, calls: Vec<Call>) -> Self {
        Self::new(session, Body::Turn(Turn::new(text, calls)))
    }

    /// Creates a turn with one call and no text.
    pub fn call(session: impl Into<SessionId>, tool: impl Into<String>, args: Value) -> Self {
        Self::turn(session, "", vec![Call::new(tool, args)])
    }

    /// Creates a turn with text and no call.
    pub fn text(session: impl Into<SessionId>, text: impl Into<String>) -> Self {
        Self::turn(session, text, Vec::new())
    }

    /// Creates the result of a call. Name the call with [`Step::for_call`]; otherwise the result belongs to the
    /// oldest unanswered call of the latest turn that has any.
    pub fn result(session: impl Into<SessionId>, ok: bool, output: impl Into<Value>) -> Self {
        Self::new(session, Body::Result(ToolResult::new(output).with_ok(ok)))
    }

    /// Creates a message from a person.
    pub fn user(session: impl Into<SessionId>, text: impl Into<String>) -> Self {
        Self::new(session, Body::User(UserText::new(text, Origin::Human)))
    }

    /// Creates a piece of a message that is still streaming.
    pub fn chunk(session: impl Into<SessionId>, text: impl Into<String>) -> Self {
        Self::new(session, Body::Chunk(text.into()))
    }

    /// Reports whether the message of the decision at `step` reached the agent.
    pub fn delivery(session: impl Into<SessionId>, step: u64, ok: bool) -> Self {
        Self::new(session, Body::Delivery(Delivery::new(step, ok)))
    }

    /// Adds the embedding of the turn at `step`, if it wasn't known yet when the turn arrived.
    pub fn embedding(session: impl Into<SessionId>, step: u64, vector: Vec<f32>) -> Self {
        Self::new(session, Body::Embedding(TurnEmbedding::new(step, vector)))
    }

    /// Reports that a person intervened outside the conversation, for example by pausing deloop.
    pub fn intervention(session: impl Into<SessionId>) -> Self {
        Self::new(session, Body::Intervention)
    }

    /// Creates the end of a session.
    pub fn end(session: impl Into<SessionId>) -> Self {
        Self::new(session, Body::End)
    }

    /// Creates the end of a swarm.
    pub fn swarm_end(session: impl Into<SessionId>, swarm: impl Into<String>) -> Self {
        Self::new(session, Body::SwarmEnd).in_swarm(swarm)
    }

    /// Asks for the state of a session; with [`Step::by`], of one of its subagents, and with [`Step::in_swarm`], also
    /// of that swarm.
    pub fn state(session: impl Into<SessionId>) -> Self {
        Self::new(session, Body::State)
    }

    /// Sets the id of the step's first call. Does nothing unless the step is a turn with calls.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        if let Body::Turn(Turn { calls, .. }) = &mut self.body
            && let Some(call) = calls.first_mut()
        {
            call.id = Some(id.into());
        }
        self
    }

    /// Sets the call that this result belongs to. Does nothing unless the step is a result.
    #[must_use]
    pub fn for_call(mut self, id: impl Into<String>) -> Self {
        if let Body::Result(result) = &mut self.body {
            result.id = Some(id.into());
        }
        self
    }

    /// Sets the turn's id. Does nothing unless the step is a turn.
    #[must_use]
    pub fn in_turn(mut self, id: impl Into<String>) -> Self {
        if let Body::Turn(turn) = &mut self.body {
            turn.id = Some(id.into());
        }
        self
    }

    /// Sets the worker or subagent.
    #[must_use]
    pub fn by(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Sets the swarm.
    #[must_use]
    pub fn in_swarm(mut self, swarm: impl Into<String>) -> Self {
        self.swarm = Some(swarm.into());
        self
    }

    /// Sets the session that started this one.
    #[must_use]
    pub fn started_by(mut self, controller: impl Into<SessionId>) -> Self {
        self.controller = Some(controller.into());
        self
    }

    /// Sets the project.
    #[must_use]
    pub fn in_project(mut self, project: impl Into<String>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Sets the time.
    #[must_use]
    pub fn at(mut self, ts: Millis) -> Self {
        self.ts = Some(ts);
        self
    }
}

impl Call {
    /// Creates a call without an id.
    pub fn new(tool: impl Into<String>, args: Value) -> Self {
        Self { id: None, tool: tool.into(), args }
    }

    /// Sets the id that its result refers to.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }
}

impl Delivery {
    /// Reports on the message of the decision at this step.
    #[must_use]
    pub fn new(step: u64, ok: bool) -> Self {
        Self { step, ok }
    }
}

impl UserText {
    /// Creates a message.
    pub fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self { text: text.into(), origin }
    }
}

impl Turn {
    /// Creates a turn without an id.
    pub fn new(text: impl Into<String>, calls: Vec<Call>) -> Self {
        Self { text: text.into(), calls, ..Self::default() }
    }

    /// Returns the text, or `None` when it is empty or only white space.
    #[must_use]
    pub fn said(&self) -> Option<&str> {
        (!self.text.trim().is_empty()).then_some(self.text.as_str())
    }
}

impl ToolResult {
    /// Creates a result that says neither which call it belongs to nor how it ended.
    pub fn new(output: impl Into<Value>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }

    /// Sets whether the call went well.
    #[must_use]
    pub fn with_ok(mut self, ok: bool) -> Self {
        self.ok = Some(ok);
        self
    }

    /// Sets how the call ended.
    #[must_use]
    pub fn with_outcome(mut self, outcome: impl Into<Option<Outcome>>) -> Self {
        self.outcome = outcome.into();
        self
    }

    /// Names the call it belongs to.
    #[must_use]
    pub fn for_call(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns how the call ended: from `outcome`, else from `ok`, else from the presence of `error_type`. Returns
    /// `None` when the agent didn't report it.
    #[must_use]
    pub fn ended(&self) -> Option<Outcome> {
        let ok = self.ok.or_else(|| self.error_type.as_ref().map(|_| false));
        self.outcome.or_else(|| ok.map(|ok| if ok { Outcome::Ok } else { Outcome::Error }))
    }
}

impl Outcome {
    /// Returns whether the call failed: an error, a time-out, or a call that couldn't run. A refusal isn't a failure.
    #[must_use]
    pub fn failed(self) -> bool {
        matches!(self, Self::Error | Self::Timeout | Self::Invalid)
    }
}
