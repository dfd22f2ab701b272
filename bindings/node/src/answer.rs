use deloop_types::{Action, Decision};

/// Writes a value as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    // Decisions and events always have a JSON form.
    serde_json::to_string(value).unwrap_or_else(|error| refusal(&error))
}

/// Writes why a step can't be read.
pub(crate) fn refusal(why: &dyn std::fmt::Display) -> String {
    format!("!{why}")
}

/// Returns whether a decision says nothing but `continue`.
pub(crate) fn is_bare(decision: &Decision) -> bool {
    decision.action == Action::Continue
        && decision.level == 0
        && decision.id.is_none()
        && decision.rung.is_none()
        && decision.message.is_none()
        && decision.user_message.is_none()
        && decision.role.is_none()
        && decision.calls.is_empty()
        && decision.rollback.is_none()
        && decision.status.is_none()
        && decision.findings.is_empty()
        && decision.notices.is_empty()
        && decision.would.is_none()
        && decision.extra.is_empty()
}
