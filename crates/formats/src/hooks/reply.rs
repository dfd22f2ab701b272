use deloop_types::{Action, Decision};
use serde_json::{Map, Value};

/// The output of the agent's hook process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code.
    pub exit_code: u8,
}

/// A reply and the action it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The reply.
    pub reply: Reply,
    /// The action that the agent takes because of it. It may be weaker than the decision: `continue` when the reply
    /// can't carry it.
    pub carried: Action,
}

impl Encoded {
    /// Returns an empty reply: no output and exit code 0, after which every agent continues.
    #[must_use]
    pub fn nothing() -> Self {
        Self { reply: Reply::default(), carried: Action::Continue }
    }

    /// Returns a reply with one JSON object on standard output.
    pub(crate) fn json(object: Map<String, Value>, carried: Action) -> Self {
        if object.is_empty() {
            return Self::nothing();
        }
        let stdout = format!("{}\n", Value::Object(object));
        Self { reply: Reply { stdout, ..Reply::default() }, carried }
    }
}

/// Returns the message for the agent.
pub(crate) fn message(decision: &Decision) -> String {
    match &decision.message {
        Some(message) => message.clone(),
        None => format!("[deloop] {}", summary(decision)),
    }
}

/// Returns one line for the person: what the agent does because of the reply, and why.
pub(crate) fn line(decision: &Decision, carried: Action) -> String {
    if let Some(message) = decision.user_message.as_ref().filter(|_| carried == decision.action) {
        return message.clone();
    }
    let did = match (decision.action, carried) {
        (Action::Stop, Action::Block) => "deloop is stopping the run and blocks every further call",
        (_, Action::Stop) => "deloop stopped the run",
        (_, Action::Block) => "deloop blocked a call",
        (_, Action::Ask) => "deloop asks about this call",
        (_, Action::Nudge) => "deloop messaged the agent",
        _ => "deloop",
    };
    let id = decision.id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
    format!("{did}: {}{id}", summary(decision))
}

fn summary(decision: &Decision) -> &str {
    match decision.main_finding() {
        Some(finding) => finding.summary.trim_end_matches('.'),
        None => decision.status.as_deref().unwrap_or("it repeats itself"),
    }
}
