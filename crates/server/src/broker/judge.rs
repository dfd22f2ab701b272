use std::borrow::Cow;

use deloop_engine::Engine;
use deloop_policy::name_task;
use deloop_store::StoreError;
use deloop_types::{Body, Decision, Event, Millis, Step, Usage};

use super::operator_message::{self, add_nudge};
use super::view::ProjectView;

/// Returns the cost of a request to a model, in dollars.
pub type CostFn = Box<dyn Fn(&Usage) -> Option<f64> + Send + Sync>;

/// Decides about steps.
pub(crate) struct Judge {
    pub(crate) engine: Engine,
    pub(crate) cost: CostFn,
}

/// What was decided about a step.
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    pub(crate) events: Vec<Event>,
}

impl Judge {
    /// Decides about a step. The same steps, at the same times, lead to the same decisions and states.
    pub(super) fn decide(
        &self,
        view: &ProjectView<'_>,
        step: &Step,
        now: Millis,
    ) -> Result<Decided, StoreError> {
        let step = self.complete(step, now);
        let observed = self.engine.observe(view, &step)?;
        let (mut decision, mut events) = (observed.decision, observed.events);
        if let Some(task) = &step.task {
            name_task(task, &mut decision, &mut events);
        }
        if !matches!(step.body, Body::End | Body::State) {
            let take = |state: &mut super::stored_session::StoredSession| {
                operator_message::take(&mut state.extras, &step, &decision)
            };
            if let Some(message) = view.change(&self.engine, &step.session, take)? {
                add_nudge(&mut decision, message, "operator", "deloop passed on a message from the operator");
            }
        }
        Ok(Decided { decision, events })
    }

    /// Adds the time and the cost if the step has none.
    fn complete<'a>(&self, step: &'a Step, now: Millis) -> Cow<'a, Step> {
        let mut step = Cow::Borrowed(step);
        if step.ts.is_none() {
            step.to_mut().ts = Some(now);
        }
        if let Body::Usage(usage) = &step.body
            && usage.cost_usd.is_none()
            && let Some(dollars) = (self.cost)(usage)
            && let Body::Usage(usage) = &mut step.to_mut().body
        {
            usage.cost_usd = Some(dollars);
        }
        step
    }
}
