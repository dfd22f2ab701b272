//! What an engine must know before a step enters its session: what other sessions did.

use deloop_detect::{KnownFailures, Nesting, SwarmCount};
use deloop_store::{Store, StoreError};
use deloop_types::{Body, Step};

use crate::{Engine, Session};

/// What other sessions did, as far as it concerns a step.
pub(crate) struct Surroundings {
    /// The swarm's tallies for each call of the step.
    pub(crate) swarm: Vec<Option<SwarmCount>>,
    /// Where the session stands among sessions that started each other; `None` if the profile doesn't look.
    pub(crate) spawned: Option<Nesting>,
    /// The failures that the project's sessions met; `None` if the step names no project or the profile doesn't look.
    pub(crate) failures: Option<KnownFailures>,
}

impl Engine {
    /// Returns whether a detector of the profile needs the failures of the project.
    pub(crate) fn reads_failures(&self) -> bool {
        self.profile().watches.iter().any(|watch| watch.detector.reads_failures())
    }

    /// Reads where the session stands: below the one that started it. Only a step that starts a subagent needs it.
    pub(crate) fn nesting<S: Store<Session>>(
        &self,
        store: &S,
        step: &Step,
    ) -> Result<Option<Nesting>, StoreError> {
        if !self.profile().watches.iter().any(|watch| watch.detector.whole_session()) {
            return Ok(None);
        }
        let Some(controller) = step.controller.as_ref().filter(|_| step.agent.is_none()) else {
            return Ok(Some(Nesting::default()));
        };
        let tools = &self.profile().tools;
        let spawns =
            matches!(&step.body, Body::Turn(turn) if turn.calls.iter().any(|c| tools.spawns(&c.tool)));
        if !spawns || *controller == step.session {
            return Ok(Some(Nesting::default()));
        }
        let look = |session: &Session| session.whole.tree.as_ref().map(|tree| tree.started_session());
        let above = match store.look(self, controller, look) {
            // The update decides what becomes of such a state.
            Err(error) if error.is_unreadable() => None,
            above => above?.flatten(),
        };
        Ok(Some(above.unwrap_or(Nesting { depth: 1, relays: 0 })))
    }

    /// Reads the failures of the step's project, if it makes a call or has a result.
    pub(crate) fn known_failures<S: Store<Session>>(
        &self,
        store: &S,
        step: &Step,
    ) -> Result<Option<KnownFailures>, StoreError> {
        let concerns = match &step.body {
            Body::Turn(turn) => !turn.calls.is_empty(),
            body => matches!(body, Body::Result(_)),
        };
        match &step.project {
            Some(project) if concerns && self.reads_failures() => store.failures(project).map(Some),
            _ => Ok(None),
        }
    }
}
