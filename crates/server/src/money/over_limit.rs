use std::time::Duration;

use deloop_store::RecordName;
use deloop_types::{Action, Event, EventKind, Millis, Step};

use super::Money;
use super::calendar::UtcDay;
use super::micros::{dollars, micros, usd};
use super::scope::group;
use crate::project::Project;

/// How long the shared records remember that people were told.
const ANNOUNCED_FOR: Duration = Duration::from_secs(2 * 24 * 3600);

impl Money {
    /// Counts that a request reported this many dollars more than one can cost, at this step. Returns the event for people:
    /// one per project, owner and day over all servers.
    pub(crate) fn over_limit(
        &self,
        (project, owner): (&Project, Option<&str>),
        step: &Step,
        (over, index): (f64, u64),
        now: Millis,
    ) -> Option<Event> {
        self.counters.over_limit(micros(over));
        let group = group(project.as_str());
        let name = format!("over-limit/{}/{}", UtcDay::of(now).date(), owner.unwrap_or_default());
        if self.lock().is_paused(now) {
            return None;
        }
        let claim = self.records.claim(RecordName::new(&group, &name), ANNOUNCED_FOR, now);
        if !self.reached(claim, now)? {
            return None;
        }
        let limit = micros(self.limits.request_usd());
        let reported = dollars(limit.saturating_add(micros(over)));
        let session = deloop_detect::clean(step.session.as_str(), 80);
        let mut event = Event::new(EventKind::BudgetWarning, step.session.clone(), index);
        event.agent.clone_from(&step.agent);
        event.ts = step.ts;
        (event.action, event.level) = (Some(Action::Warn), Some(1));
        event.total_usd = Some(usd(limit));
        event.reason = Some(format!(
            "[deloop] Session {session} of project {project} reported {reported} or more for one request. It counts as {}, \
             the most that one request can cost (`request_usd` under `[serve.budgets]`).",
            dollars(limit)
        ));
        Some(event)
    }
}
