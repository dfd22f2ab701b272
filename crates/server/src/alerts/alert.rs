use deloop_detect::Ledger;
use deloop_policy::{AlertKind, AlertLevel};
use deloop_types::{Action, Event, EventKind, Finding, Millis, Repeats};
use serde::{Deserialize, Serialize};

use super::sink_text::plain;
use crate::project::Project;

/// Maximum length of a name and of a detail, in characters.
const NAME: usize = 200;
/// Maximum length of a reason, in characters.
const REASON: usize = 2000;
/// The first millisecond with a year of five digits.
const YEAR_10000: i64 = 253_402_300_800_000;
/// Maximum number of details.
const DETAILS: usize = 20;

/// Something that people should know. Its texts have no secrets and no control characters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// The idempotency key: the same for every attempt and every route, and different for each level and episode.
    pub id: String,
    /// When it happened, in milliseconds.
    pub ts: Millis,
    /// How urgent it is.
    pub level: AlertLevel,
    /// What it is about.
    pub kind: AlertKind,
    /// The project.
    pub project: String,
    /// The session, if it is about one.
    pub session: Option<String>,
    /// The worker or subagent, if the step named one.
    pub agent: Option<String>,
    /// The swarm, if it is about one or about a session in one.
    pub swarm: Option<String>,
    /// The model, if it is known.
    pub model: Option<String>,
    /// A few words.
    pub title: String,
    /// The reason, for people.
    pub reason: String,
    /// More about it, in the order to show it in.
    pub details: Vec<AlertDetail>,
}

/// A name and a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertDetail {
    /// The name, such as `count`.
    pub name: String,
    /// The value.
    pub value: String,
}

/// What is known about the session of an event.
#[derive(Debug, Clone, Copy)]
pub struct AlertContext<'a> {
    /// The project.
    pub project: &'a Project,
    /// The swarm of the step.
    pub swarm: Option<&'a str>,
    /// The model, if it is known.
    pub model: Option<&'a str>,
    /// What the session has used so far.
    pub ledger: Option<&'a Ledger>,
    /// The time of an event without one.
    pub now: Millis,
}

impl Alert {
    /// Creates an alert. `episode` tells it from other alerts of the same kind and level in this project: an alert with
    /// the same parts is the same alert, and is sent once.
    #[must_use]
    pub fn new(kind: AlertKind, level: AlertLevel, project: &Project, ts: Millis, episode: &[&str]) -> Self {
        let mut hash = blake3::Hasher::new();
        let level_number = [level as u8];
        let parts = [project.as_str().as_bytes(), kind.as_str().as_bytes(), &level_number];
        for part in parts.into_iter().chain(episode.iter().map(|part| part.as_bytes())) {
            hash.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let id = format!("al_{}", &hash.finalize().to_hex()[..32]);
        Self {
            id,
            ts,
            level,
            kind,
            project: project.as_str().to_owned(),
            session: None,
            agent: None,
            swarm: None,
            model: None,
            title: title(kind, project.as_str()),
            reason: String::new(),
            details: Vec::new(),
        }
    }

    /// Creates the alert about an event: a warning, a stop, or a budget that is nearly or fully used up. Other events
    /// have none. The events of one step lead to one alert; the first that has one is enough.
    #[must_use]
    pub fn of_event(event: &Event, context: &AlertContext<'_>) -> Option<Self> {
        let (kind, level) = kind_of(event)?;
        // Services reject times that aren't dates.
        let ts = event.ts.filter(|ts| (0..YEAR_10000).contains(&ts.0)).unwrap_or(context.now);
        let finding = event.finding.as_ref();
        let (detector, since) = finding.map_or(("", 0), |finding| (finding.detector.as_str(), finding.since));
        let episode = [
            event.session.as_str(),
            event.agent.as_deref().unwrap_or_default(),
            detector,
            &since.to_string(),
            &event.step.to_string(),
            // A session that was reset counts its steps from zero again, and its next loop is another one.
            &ts.0.to_string(),
        ];
        let mut alert = Self::new(kind, level, context.project, ts, &episode)
            .about_session(event.session.as_str(), event.agent.as_deref())
            .because(event.reason.as_deref().unwrap_or_default());
        alert.swarm = context.swarm.map(|swarm| plain(swarm, NAME));
        alert.model = context.model.or(event.model.as_deref()).map(|model| plain(model, NAME));
        if let (AlertKind::SwarmDeclared, Some(swarm)) = (kind, &alert.swarm) {
            alert.title = title(kind, swarm);
        }
        if let Some(finding) = finding {
            alert = alert
                .detail("detector", &finding.detector)
                .detail("count", &finding.count.to_string())
                .detail("tool", finding.tool.as_deref().unwrap_or_default());
        }
        alert = alert.detail("status", event.status.as_deref().unwrap_or_default());
        if let Some(ledger) = context.ledger {
            alert = alert.detail("steps", &ledger.steps.to_string());
            if ledger.all_tokens > 0 {
                alert = alert.detail("tokens", &ledger.all_tokens.to_string());
            }
            alert = alert.detail("cost", &format!("${:.4}", ledger.usd));
        }
        let controller = event.controller.as_ref().map_or("", |controller| controller.as_str());
        Some(alert.detail("controller", controller))
    }

    /// Creates a test alert; each has a key of its own.
    #[must_use]
    pub fn test(now: Millis) -> Self {
        let random = getrandom::u64().unwrap_or_default().to_string();
        Self::new(AlertKind::Test, AlertLevel::Info, &Project::default(), now, &[&now.0.to_string(), &random])
            .about_session("example-session", None)
            .because("This is a test. If you can read it, alerts of this route arrive.")
            .detail("sent by", "deloop alerts test")
    }

    /// Names the session and its agent, also in the title.
    #[must_use]
    pub fn about_session(mut self, session: &str, agent: Option<&str>) -> Self {
        let session = plain(session, NAME);
        self.title = title(self.kind, &session);
        self.session = Some(session);
        self.agent = agent.map(|agent| plain(agent, NAME));
        self
    }

    /// Names the swarm, also in the title.
    #[must_use]
    pub fn about_swarm(mut self, swarm: &str) -> Self {
        let swarm = plain(swarm, NAME);
        self.title = title(self.kind, &swarm);
        self.swarm = Some(swarm);
        self
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(mut self, reason: &str) -> Self {
        self.reason = plain(reason, REASON);
        self
    }

    /// Adds a detail, unless its value is empty. An alert has at most 20.
    #[must_use]
    pub fn detail(mut self, name: &str, value: &str) -> Self {
        let value = plain(value, NAME);
        if !value.is_empty() && self.details.len() < DETAILS {
            self.details.push(AlertDetail { name: plain(name, NAME), value });
        }
        self
    }

    /// Returns what every sink shows: who it is about, then the details.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let about = [
            ("project", Some(&self.project)),
            ("session", self.session.as_ref()),
            ("agent", self.agent.as_ref()),
            ("swarm", self.swarm.as_ref()),
            ("model", self.model.as_ref()),
        ];
        let about = about.into_iter().filter_map(|(name, value)| Some((name, value?.as_str())));
        let details = self.details.iter().map(|detail| (detail.name.as_str(), detail.value.as_str()));
        about.chain(details).filter(|(_, value)| !value.is_empty())
    }
}

fn kind_of(event: &Event) -> Option<(AlertKind, AlertLevel)> {
    let action = event.action?;
    let budget = event.finding.as_ref().is_some_and(Finding::is_budget);
    let swarm = event.finding.as_ref().is_some_and(|finding| finding.repeats == Repeats::Swarm);
    match (event.event, action) {
        (_, Action::Continue) => None,
        (EventKind::Alert | EventKind::SessionTerminated | EventKind::BudgetWarning, Action::Stop) => {
            let kind = if budget { AlertKind::BudgetExceeded } else { AlertKind::SessionTerminated };
            Some((kind, AlertLevel::Critical))
        }
        (EventKind::BudgetWarning, _) => Some((AlertKind::BudgetWarning, AlertLevel::Warning)),
        (EventKind::Alert, _) if budget => Some((AlertKind::BudgetWarning, AlertLevel::Warning)),
        (EventKind::Alert, _) if swarm => Some((AlertKind::SwarmDeclared, AlertLevel::Warning)),
        (EventKind::Alert, _) => Some((AlertKind::LoopWarning, AlertLevel::Warning)),
        _ => None,
    }
}

fn title(kind: AlertKind, subject: &str) -> String {
    match kind {
        AlertKind::LoopWarning => format!("Loop warning: {subject}"),
        AlertKind::SessionTerminated => format!("Session terminated: {subject}"),
        AlertKind::SwarmDeclared => format!("Swarm loop: {subject}"),
        AlertKind::BudgetWarning => format!("Budget warning: {subject}"),
        AlertKind::BudgetExceeded => format!("Budget exceeded: {subject}"),
        AlertKind::LoopRise => format!("Loops are rising: {subject}"),
        AlertKind::ReportDaily => format!("Daily report: {subject}"),
        _ => "Test alert".to_owned(),
    }
}
