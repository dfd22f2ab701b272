use deloop_types::{Action, Body, Decision, Event, EventKind, Step};
use serde::{Deserialize, Serialize};

/// Which events went out in the current episodes, so that each goes out once per level and episode.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Told {
    episodes: Vec<(String, u64, u32)>,
}

impl Told {
    /// Whether this is news: a new episode, or a higher level of a known one.
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

/// The events of one step: what it cost, what was found and what was done about it.
#[must_use]
pub fn events(
    step: &Step,
    decision: &Decision,
    ledger: &deloop_detect::Ledger,
    told: &mut Told,
) -> Vec<Event> {
    let base = |kind| Event {
        agent: step.agent.clone(),
        task: step.task.clone(),
        ts: step.ts,
        ..Event::new(kind, decision.session.clone(), decision.step)
    };
    let mut out = Vec::new();
    if let Body::Usage(usage) = &step.body {
        out.push(Event {
            model: usage.model.clone(),
            tokens: Some(usage.all_tokens()),
            cost_usd: usage.cost_usd,
            total_tokens: Some(ledger.tokens),
            total_usd: Some(ledger.usd),
            ..base(EventKind::CostAttributed)
        });
    }
    let Some(finding) = decision.findings.first() else { return out };
    let full = decision.would.as_deref().unwrap_or(decision);
    if !told.is_news(&finding.detector, finding.since, full.level) {
        return out;
    }
    let about = |kind| Event {
        action: Some(decision.action),
        level: Some(full.level),
        reason: full.message.clone().or_else(|| Some(finding.summary.clone())),
        status: decision.status.clone(),
        finding: Some(finding.clone()),
        calls: decision.calls.clone(),
        ..base(kind)
    };
    if finding.is_budget() {
        out.push(about(EventKind::BudgetWarning));
    } else {
        out.push(about(EventKind::LoopDetected));
    }
    match decision.action {
        Action::Continue => {}
        Action::Warn => out.push(about(EventKind::Alert)),
        Action::Nudge => out.push(about(EventKind::Nudge)),
        Action::Ask => out.push(about(EventKind::Ask)),
        Action::Block => out.push(about(EventKind::Block)),
        Action::Stop => {
            out.push(about(EventKind::SessionTerminated));
            out.push(about(EventKind::Alert));
        }
    }
    if let Some(update) = &decision.task_update {
        out.push(Event { task_update: Some(update.clone()), ..about(EventKind::TaskUpdate) });
    }
    out
}
