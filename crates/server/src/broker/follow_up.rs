//! What follows from a decision: messages for other workers, events, alerts and audit records.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use deloop_policy::{AlertKind, AlertLevel};
use deloop_store::{RecordName, SharedRecords, StoreError};
use deloop_types::{Millis, SessionId, Step};
use serde_json::json;

use super::SentStep;
use super::declared_swarms::{DeclaredSwarms, SwarmDeclaration};
use super::judge::JudgedStep;
use crate::alerts::{Alert, AlertContext, Alerts, ClaimFn};
use crate::audit::{AuditEntry, BrokerAudit, LiftedBy};
use crate::clock::Clock;
use crate::events::{EventHub, ServerEvent};
use crate::money::{AuditedChange, Money};
use crate::project::Project;
use crate::reports;
use crate::requester::Requester;
use crate::shared::{ServerNotice, TellFn};

/// How long the record of a check is kept.
const CHECKED: Duration = Duration::from_secs(60);
/// How long servers remember that one of them sent an alert.
const CLAIMED: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Tells everybody who must know what was decided or done. What fails here is reported and changes nothing else.
pub(crate) struct FollowUp {
    pub(super) records: Arc<dyn SharedRecords>,
    pub(super) swarms: DeclaredSwarms,
    pub(super) events: EventHub,
    pub(super) alerts: Option<Alerts>,
    pub(super) audit: Option<BrokerAudit>,
    pub(super) tell: TellFn,
    /// The minute in which reports were last looked at.
    pub(super) minute: AtomicI64,
}

impl FollowUp {
    /// Tells those who must know of decisions, adds what agents must know of their swarms, and records it all.
    pub(super) fn decided(
        &self,
        requester: &Requester,
        steps: &[SentStep<'_>],
        decided: &mut [JudgedStep],
        now: Millis,
    ) {
        let mut is_away = false;
        let accepted = steps
            .iter()
            .zip(&mut *decided)
            .filter(|(sent, decided)| !sent.is_refused() && !decided.is_refused());
        for (sent, decided) in accepted {
            // One step waits for records that can't be had, not every step of the request.
            if !is_away && let Err(error) = self.follow_swarm(&requester.project, &sent.step, decided, now) {
                is_away = true;
                (self.tell)(ServerNotice::Failed(error.to_string()));
            }
            self.announce(&requester.project, &sent.step, decided, now);
        }
        if let Some(audit) = &self.audit {
            let entries = audit.entries(requester, steps, decided, now);
            if !entries.is_empty() {
                audit.append(&entries);
            }
        }
    }

    fn follow_swarm(
        &self,
        project: &Project,
        step: &Step,
        decided: &mut JudgedStep,
        now: Millis,
    ) -> Result<(), StoreError> {
        if let Some(declared) = self.swarms.follow(project, step, decided, now)? {
            self.declared(project, step, &declared, now);
        }
        Ok(())
    }

    /// Publishes the events of a decision and raises its alert.
    pub(super) fn announce(&self, project: &Project, step: &Step, decided: &JudgedStep, now: Millis) {
        for event in &decided.events {
            self.events.publish(ServerEvent::of(event, project));
        }
        if let Some(alerts) = &self.alerts {
            let context = AlertContext {
                project,
                swarm: step.swarm.as_deref(),
                model: decided.model.as_deref(),
                ledger: decided.ledger.as_ref(),
                now,
            };
            let alert = decided.events.iter().find_map(|event| Alert::of_event(event, &context));
            alert.into_iter().for_each(|alert| alerts.raise(alert));
        }
    }

    fn declared(&self, project: &Project, step: &Step, declared: &SwarmDeclaration, now: Millis) {
        self.events.publish(
            ServerEvent::new("swarm.declared", project, now)
                .with("session", json!(step.session))
                .with("swarm", json!(declared.swarm))
                .with("tool", json!(declared.tool))
                .with("count", json!(declared.count))
                .with("workers", json!(declared.workers))
                .with("reason", json!(declared.message)),
        );
        if let Some(alerts) = &self.alerts {
            let episode = [declared.swarm.as_str(), &declared.episode()];
            let alert = Alert::new(AlertKind::SwarmDeclared, AlertLevel::Critical, project, now, &episode)
                .about_swarm(&declared.swarm)
                .because(&declared.message)
                .detail("tool", declared.tool.as_deref().unwrap_or_default())
                .detail("calls", &declared.count.to_string())
                .detail("workers", &declared.workers.to_string());
            alerts.raise(alert);
        }
    }

    /// Checks that shared records can be written: a server that is full still answers questions.
    pub(super) fn check(&self, now: Millis) -> Result<(), StoreError> {
        self.records.put(RecordName::new("check", "ready"), "", CHECKED, now)
    }

    /// Forgets the turns of a session.
    pub(super) fn forget(&self, requester: &Requester, session: &SessionId) {
        self.audit.iter().for_each(|audit| audit.forget(requester, session));
    }

    /// Tells those who must know what a person or another program does with a session or a swarm, before it is done.
    pub(super) fn operated(&self, requester: &Requester, action: &str, subject: (&str, &str), now: Millis) {
        let (kind, name) = subject;
        if let Some(audit) = &self.audit {
            let entry = AuditEntry::new(now, &requester.actor, action).in_project(&requester.project);
            let entry = match kind {
                "swarm" => entry.of_swarm(name),
                _ => entry.of_session(&name.into()),
            };
            audit.append(&[entry]);
        }
        self.events.publish(
            ServerEvent::new(action, &requester.project, now)
                .with(kind, json!(name))
                .with("actor", json!(&*requester.actor)),
        );
    }

    /// Records that an operation lifted the stops of a session.
    pub(super) fn lifted(&self, requester: &Requester, session: &SessionId, by: LiftedBy, now: Millis) {
        if let Some(audit) = &self.audit {
            audit.append(&[AuditEntry::of_lift(now, requester, session, by)]);
        }
    }

    /// Tells those who must know that an operator changed a budget.
    pub(super) fn budget_changed(&self, change: &AuditedChange, now: Millis) {
        if let Some(audit) = &self.audit {
            let entry = AuditEntry::new(now, &change.actor, change.action).in_project(&change.project);
            let entry = match &change.session {
                Some(session) => entry.of_session(session),
                None => entry,
            };
            audit.append(&[entry.with_detail(change.detail.clone())]);
        }
        self.events.publish(
            ServerEvent::new(change.action, &change.project, now)
                .with("session", json!(change.session))
                .with("actor", json!(&*change.actor)),
        );
    }

    /// Raises the daily report and agents that loop more often than before, if they are due.
    pub(super) fn tick(&self, money: &Money, now: Millis) -> Result<(), StoreError> {
        let Some(alerts) = &self.alerts else { return Ok(()) };
        let minute = now.0 / 60_000;
        if self.minute.swap(minute, Ordering::Relaxed) == minute {
            return Ok(());
        }
        if let Some(report) = reports::due(money.records(), now)? {
            alerts.raise(report.alert(now));
        }
        if minute % 60 == 0 {
            for rise in reports::rises(money.records(), now)? {
                alerts.raise(rise.alert(now));
            }
        }
        Ok(())
    }

    /// Returns a function that lets one of all servers send an alert. If that can't be found out, it is sent: twice is
    /// better than not at all.
    pub(super) fn alert_claims(&self, is_shared: bool, clock: Clock) -> ClaimFn {
        let records = Arc::clone(&self.records);
        Box::new(move |alert| {
            !is_shared
                || records.claim(RecordName::new("alerts", alert), CLAIMED, clock.now()).unwrap_or(true)
        })
    }

    /// Returns counts in the text format of Prometheus.
    pub(super) fn metrics(&self) -> String {
        let lost = self.events.lost();
        let mut text = format!(
            "# HELP deloop_lost_events_total Events that couldn't be published.\n\
             # TYPE deloop_lost_events_total counter\ndeloop_lost_events_total {lost}\n"
        );
        let failures = self.audit.as_ref().map_or(0, |audit| audit.log().failures());
        text.push_str(&format!(
            "# HELP deloop_audit_failures_total Audit records that couldn't be written.\n\
             # TYPE deloop_audit_failures_total counter\ndeloop_audit_failures_total {failures}\n"
        ));
        text.push_str(&self.alerts.as_ref().map_or_else(String::new, Alerts::metrics));
        text
    }
}
