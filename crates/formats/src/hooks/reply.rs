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

/// Returns one line for the user: what deloop did and why.
pub(crate) fn line(decision: &Decision, carried: Action) -> String {
    match (&decision.user_message, decision.action, carried) {
        (_, Action::Stop, Action::Block) => {
            format!("deloop is stopping the run and blocks every further call: {}", summary(decision))
        }
        (Some(message), ..) => message.clone(),
        (None, ..) => format!("deloop: {}", summary(decision)),
    }
}

fn summary(decision: &Decision) -> &str {
    match decision.findings.first() {
        Some(finding) => finding.summary.trim_end_matches('.'),
        None => decision.status.as_deref().unwrap_or("it repeats itself"),
    }
}
