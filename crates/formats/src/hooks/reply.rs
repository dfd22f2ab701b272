use deloop_types::{Action, Decision};
use serde_json::{Map, Value};

/// What the agent's hook process writes, and how it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code.
    pub exit_code: u8,
}

/// A reply, and how far it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// What to answer.
    pub reply: Reply,
    /// What the agent does because of it: it may be less than what was decided, `continue` when the reply cannot carry it.
    pub carried: Action,
}

impl Encoded {
    /// Says nothing: the agent goes on. No output and exit code 0 mean that to every agent.
    #[must_use]
    pub fn nothing() -> Self {
        Self { reply: Reply::default(), carried: Action::Continue }
    }

    /// One JSON object on standard output.
    pub(crate) fn json(object: Map<String, Value>, carried: Action) -> Self {
        if object.is_empty() {
            return Self::nothing();
        }
        let stdout = format!("{}\n", Value::Object(object));
        Self { reply: Reply { stdout, ..Reply::default() }, carried }
    }
}

/// What the agent is told.
pub(crate) fn message(decision: &Decision) -> String {
    match &decision.message {
        Some(message) => message.clone(),
        None => format!("[deloop] {}", summary(decision)),
    }
}

/// One line for the person: that deloop stepped in, what it did and why.
pub(crate) fn line(decision: &Decision, carried: Action) -> String {
    let did = match (decision.action, carried) {
        (Action::Stop, Action::Stop) => "deloop ended the run",
        (Action::Stop, Action::Block) => "deloop has this run end: every further call is refused",
        (_, Action::Block) => "deloop refused a call",
        (_, Action::Ask) => "deloop asks about a call",
        (_, Action::Nudge) => "deloop told the agent that it seems stuck",
        _ => "deloop",
    };
    let id = decision.id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
    format!("{did}: {}{id}", summary(decision))
}

fn summary(decision: &Decision) -> &str {
    match decision.findings.first() {
        Some(finding) => finding.summary.trim_end_matches('.'),
        None => decision.status.as_deref().unwrap_or("it repeats itself"),
    }
}
