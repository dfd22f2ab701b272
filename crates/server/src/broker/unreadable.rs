//! Steps of sessions whose stored state this release can't read. The state stays as it is, for a release that can.

use std::collections::HashSet;

use deloop_store::StoreError;
use deloop_types::{Decision, Millis, SessionId};

use super::view::ProjectView;
use super::{Broker, SentStep, StepAnswers};
use crate::caller_options::CallerOptions;
use crate::requester::Requester;

impl Broker {
    /// Decides about the steps whose sessions can be read, and lets the agents of the others continue unless they were
    /// stopped. `error` is why not all of them can be decided about.
    pub(super) fn observe_readable(
        &self,
        requester: &Requester,
        caller: CallerOptions,
        steps: &[SentStep<'_>],
        error: StoreError,
        now: Millis,
    ) -> Result<StepAnswers, StoreError> {
        let view = self.backend.view(&requester.project, now);
        let sessions: HashSet<&SessionId> = steps.iter().map(|sent| &sent.step.session).collect();
        let is_unreadable = |session: &&SessionId| {
            let seen = view.see(&self.judge.engine, session, |_| ());
            seen.is_err_and(|error| error.is_unreadable())
        };
        let unreadable: HashSet<&SessionId> = sessions.into_iter().filter(is_unreadable).collect();
        if unreadable.is_empty() {
            return Err(error);
        }
        let readable = steps.iter().filter(|sent| !unreadable.contains(&sent.step.session));
        let mut readable: Vec<_> = readable.map(|sent| SentStep::new(sent.step.clone(), sent.json)).collect();
        let answers = self.observe(requester, caller, &mut readable, now)?;
        let mut answered = answers.decisions.into_iter();
        let (limited, mut failed_open) = (answers.limited, answers.failed_open);
        let mut decisions = Vec::with_capacity(steps.len());
        for sent in steps {
            if unreadable.contains(&sent.step.session) {
                decisions.push(Ok(self.decide_unread(&view, sent)?));
                failed_open += 1;
            } else {
                decisions.extend(answered.next());
            }
        }
        Ok(StepAnswers { decisions, limited, failed_open })
    }

    /// Returns the stop that stands, or `continue`.
    fn decide_unread(&self, view: &ProjectView<'_>, sent: &SentStep<'_>) -> Result<Decision, StoreError> {
        let step = &sent.step;
        let nothing = Decision::go_on(step.session.clone(), 0);
        if self.off {
            return Ok(nothing);
        }
        let Some(session) = view.salvage(&self.judge.engine, &step.session)? else { return Ok(nothing) };
        let Some(mut stop) = session.stop_of(step.agent.as_deref()).cloned() else { return Ok(nothing) };
        stop.step = session.steps();
        Ok(stop)
    }
}
