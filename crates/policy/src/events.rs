use deloop_types::{Action, Body, Decision, Event, EventKind, SessionId, Step};
use serde::{Deserialize, Serialize};

use crate::TASK_UPDATE;

/// The events sent in the current episodes, so that each is sent once per level and episode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AlertsSent {
    episodes: Vec<(String, u64, u32)>,
}

impl AlertsSent {
    /// Returns whether this is new: a new episode, or a higher level of a known one.
    fn is_news(&mut self, detector: &str, since: u64, level: u32) -> bool {
        match self.episodes.iter_mut().find(|(name, _, _)| name == detector) {
            Some(known) if known.1 == since && known.2 >= level => false,
            Some(known) => {
                (known.1, known.2) = (since, level);
                true
            }
            None => {
                self.episodes.push((detector.to_owned(), since, level));
                true
            }
        }
    }
}

/// Returns the events of one step: cost, findings and actions. With `every`, a finding is sent again at each step; alerts
/// aren't.
#[must_use]
pub fn events(
    step: &Step,
    decision: &Decision,
    ledger: &deloop_detect::Ledger,
    controller: Option<&SessionId>,
    sent: &mut AlertsSent,
    every: bool,
) -> Vec<Event> {
    let base = |kind| {
        let mut event = Event::new(kind, decision.session.clone(), decision.step);
        event.agent.clone_from(&step.agent);
        event.controller = controller.cloned();
        event.task.clone_from(&step.task);
        event.ts = step.ts;
        event
    };
    let mut out = Vec::new();
    if let Body::Usage(usage) = &step.body {
        let mut event = base(EventKind::CostAttributed);
        event.model.clone_from(&usage.model);
        event.tokens = Some(usage.all_tokens());
        event.cost_usd = usage.dollars();
        event.total_tokens = Some(ledger.all_tokens);
        event.total_usd = Some(ledger.usd);
        out.push(event);
    }
    let Some(finding) = decision.main_finding() else { return out };
    let full = decision.uncapped();
    let is_news = sent.is_news(&finding.detector, finding.since, full.level);
    if !is_news && !every {
        return out;
    }
    let about = |kind| {
        let mut event = base(kind);
        event.action = Some(decision.action);
        event.level = Some(full.level);
        event.reason = full.message.clone().or_else(|| Some(finding.summary.clone()));
        event.status.clone_from(&decision.status);
        event.finding = Some(finding.clone());
        event.calls.clone_from(&decision.calls);
        event
    };
    if finding.is_budget() {
        out.push(about(EventKind::BudgetWarning));
    } else {
        out.push(about(EventKind::LoopDetected));
    }
    match decision.action {
        Action::Continue => {}
        Action::Warn if !is_news => {}
        Action::Warn => out.push(about(EventKind::Alert)),
        Action::Nudge => out.push(about(EventKind::Nudge)),
        Action::Ask => out.push(about(EventKind::Ask)),
        Action::Block => out.push(about(EventKind::Block)),
        Action::Stop => {
            out.push(about(EventKind::SessionTerminated));
            if is_news {
                out.push(about(EventKind::Alert));
            }
        }
    }
    if let Some(update) = decision.extra.get(TASK_UPDATE) {
        let mut event = about(EventKind::TaskUpdate);
        event.task_update = Some(update.clone());
        out.push(event);
    }
    out
}
