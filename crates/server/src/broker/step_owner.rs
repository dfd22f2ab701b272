//! Whose sessions are whose: a session belongs to the group of keys that first wrote to it.

use std::borrow::Cow;
use std::sync::Arc;

use deloop_engine::{Engine, Session};
use deloop_store::{Codec, StoreError};
use deloop_types::{SessionId, Step};

use super::view::ProjectView;
use crate::requester::Requester;

/// Why a step of another owner's session isn't decided about.
pub(crate) const FOREIGN_SESSION: &str = "this session belongs to another key. Send its steps with that key, use a session \
    name of your own, or put both keys into one group: `deloop keys add NAME --group GROUP`";

/// What separates a project from an owner in the log of steps. Neither name has one.
const SEPARATOR: char = '/';

/// The group of keys that sends steps.
#[derive(Debug, Clone, Default)]
pub(super) struct StepOwner {
    /// The owner of the sessions that it opens; `None` on a server without keys, and for operators.
    group: Option<Arc<str>>,
    /// Whether its steps may enter sessions of others.
    pub(super) enters_all: bool,
}

impl StepOwner {
    pub(super) fn of(requester: &Requester) -> Self {
        Self { group: requester.owner.clone(), enters_all: requester.enters_all_sessions() }
    }

    /// Returns the group that a session without an owner belongs to from now on.
    pub(super) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Returns how a step's project and owner are logged.
    pub(super) fn logged<'a>(&self, project: &'a str) -> Cow<'a, str> {
        match &self.group {
            None => Cow::Borrowed(project),
            Some(group) => Cow::Owned(format!("{project}{SEPARATOR}{group}")),
        }
    }

    /// Reads what [`Self::logged`] returned: the project and the owner.
    pub(super) fn from_logged(text: &str, enters_all: bool) -> (&str, Self) {
        match text.split_once(SEPARATOR) {
            None => (text, Self { group: None, enters_all }),
            Some((project, group)) => (project, Self { group: Some(group.into()), enters_all }),
        }
    }

    /// Returns whether a session belongs to somebody else.
    pub(super) fn is_kept_out(
        &self,
        view: &ProjectView<'_>,
        codec: &dyn Codec<Session>,
        session: &SessionId,
    ) -> Result<bool, StoreError> {
        let Some(group) = self.group().filter(|_| !self.enters_all) else { return Ok(false) };
        let is_foreign =
            view.see(codec, session, |state| state.extras.owner().is_some_and(|owner| owner != group))?;
        Ok(is_foreign == Some(true))
    }

    /// Returns a step as it may be decided about: a session of another owner isn't its controller, which would get notices
    /// about it.
    pub(super) fn with_own_controller<'s>(
        &self,
        view: &ProjectView<'_>,
        engine: &Engine,
        step: &'s Step,
    ) -> Result<Cow<'s, Step>, StoreError> {
        let controller = step.controller.as_ref().filter(|controller| **controller != step.session);
        match controller.filter(|_| engine.profile().tell_controller) {
            Some(controller) if self.is_kept_out(view, engine, controller)? => {
                let mut step = step.clone();
                step.controller = None;
                Ok(Cow::Owned(step))
            }
            _ => Ok(Cow::Borrowed(step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_keeps_the_owner_and_reads_entries_without_one() {
        let owner = StepOwner { group: Some("ci".into()), enters_all: false };
        let text = owner.logged("web");
        let (project, read) = StepOwner::from_logged(&text, false);
        assert_eq!((project, read.group()), ("web", Some("ci")));
        assert_eq!(StepOwner::default().logged("web"), "web");
        let (project, read) = StepOwner::from_logged("web", false);
        assert_eq!((project, read.group()), ("web", None));
    }
}
