use deloop_policy::notice;
use deloop_types::{Action, ControllerNotice, Decision, Role};

/// Returns the decision with notices about other agents added to its message. They need no action of their own, so they
/// go out as a nudge if there is nothing stronger.
pub(crate) fn with_notices(mut decision: Decision, notices: &[ControllerNotice]) -> Decision {
    if notices.is_empty() || decision.action == Action::Stop {
        return decision;
    }
    let mut lines: Vec<String> = notices.iter().map(notice).collect();
    if decision.action >= Action::Nudge {
        lines.splice(..0, decision.message.take());
    } else {
        decision.action = Action::Nudge;
        decision.role = Some(Role::User);
    }
    decision.message = Some(lines.join("\n\n"));
    decision
}
