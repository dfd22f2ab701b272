//! Reading a step off the wire.

use serde_json::Value;

/// Whose state a step belongs to. No agent is an agent of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Worker {
    pub session: String,
    pub agent: Option<String>,
}

impl Worker {
    pub fn of(step: &Value) -> Self {
        Self {
            session: step["session"].as_str().unwrap_or("default").to_owned(),
            agent: step["agent"].as_str().map(str::to_owned),
        }
    }
}

/// One tool call. Arguments that are absent are null.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub id: Option<String>,
    pub tool: String,
    pub args: Value,
}

impl Call {
    fn of(call: &Value) -> Self {
        Self {
            id: call["id"].as_str().map(str::to_owned),
            tool: call["tool"].as_str().unwrap_or_default().to_owned(),
            args: call["args"].clone(),
        }
    }
}

/// A `turn` step, or a `call` step, which is a turn with one call and no text.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub worker: Worker,
    pub id: Option<String>,
    pub swarm: Option<String>,
    pub task: Option<String>,
    pub text: Option<String>,
    pub calls: Vec<Call>,
    pub embedding: Value,
    /// Its number in the session.
    pub step: u64,
    /// Whether the step is more of a turn that has begun.
    pub continued: bool,
}

impl Turn {
    pub fn of(step: &Value) -> Self {
        let (text, calls) = if step["type"] == "call" {
            (None, vec![Call::of(step)])
        } else {
            let text = step["text"].as_str().filter(|text| !text.trim().is_empty());
            let calls = step["calls"].as_array().map(Vec::as_slice);
            (text.map(str::to_owned), calls.unwrap_or_default().iter().map(Call::of).collect())
        };
        let id = step["turn_id"].as_str().map(str::to_owned);
        let name = |key: &str| step[key].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        let (swarm, task) = (name("swarm"), name("task"));
        let embedding = step["embedding"].clone();
        Self { worker: Worker::of(step), id, swarm, task, text, calls, embedding, step: 0, continued: false }
    }

    /// Neither text nor a call.
    pub fn is_empty(&self) -> bool {
        self.text.is_none() && self.calls.is_empty()
    }
}
