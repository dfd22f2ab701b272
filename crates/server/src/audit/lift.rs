use deloop_types::{Body, Millis, SessionId, Step};
use serde_json::json;

use super::entry::{AuditEntry, StepRange};
use crate::requester::Requester;

/// The action of a record about a stop that was lifted.
const LIFT: &str = "session.lift";

/// What lifted a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiftedBy {
    /// A person's message.
    Message,
    Intervention,
    End,
    Reset,
    Restore,
    Purge,
}

impl LiftedBy {
    fn name(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Intervention => "intervention",
            Self::End => "end",
            Self::Reset => "reset",
            Self::Restore => "restore",
            Self::Purge => "purge",
        }
    }

    fn of_step(step: &Step) -> Self {
        match step.body {
            Body::Intervention => Self::Intervention,
            Body::End => Self::End,
            _ => Self::Message,
        }
    }
}

impl AuditEntry {
    /// Creates an entry about an operation that lifted the stops of a session.
    pub(crate) fn of_lift(now: Millis, requester: &Requester, session: &SessionId, by: LiftedBy) -> Self {
        Self::new(now, &requester.actor, LIFT)
            .in_project(&requester.project)
            .of_session(session)
            .with_detail(json!({"by": by.name()}))
    }

    /// Creates an entry about a step that lifted a stop. `index` is the step's index in its session.
    pub(super) fn of_lifting_step(now: Millis, requester: &Requester, step: &Step, index: u64) -> Self {
        let lift = Self::of_lift(now, requester, &step.session, LiftedBy::of_step(step));
        Self { agent: step.agent.clone(), steps: Some(StepRange { first: index, last: index }), ..lift }
    }
}

/// Returns whether an action is the one of a lifted stop.
pub(super) fn is_lift(action: &str) -> bool {
    action == LIFT
}
