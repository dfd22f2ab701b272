use deloop_types::{Action, Body, Decision, Event, EventKind, Mode, SessionId, Step};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

use super::calendar::UtcDay;
use super::micros::{dollars, usd};
use crate::project::Project;

/// The status of a run that a budget ended.
pub(crate) const BUDGET_EXCEEDED: &str = "BUDGET_EXCEEDED";
/// The status of a run that ended because nobody knows what was spent.
pub(crate) const BUDGET_UNKNOWN: &str = "BUDGET_UNKNOWN";

/// Which budget a verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// What one session may spend.
    Session,
    /// What one project may spend per day.
    Project,
    /// What all projects may spend per day.
    Day,
}

/// How much of a budget is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLevel {
    /// Most of it.
    Warning,
    /// All of it.
    Exceeded,
    /// Nobody knows: the totals can't be read.
    Unknown,
}

/// What is known of a budget at a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetVerdict {
    /// How much of it is used.
    pub level: BudgetLevel,
    /// Which budget it is.
    pub budget: BudgetKind,
    /// The project of the step.
    pub project: String,
    /// The session, if it is a session's budget.
    pub session: Option<String>,
    /// The day (UTC).
    pub date: String,
    /// The budget, in dollars.
    pub limit_usd: f64,
    /// What was spent, in dollars.
    pub spent_usd: f64,
    /// What it means and how to lift it.
    pub message: String,
}

impl BudgetVerdict {
    /// Creates a verdict. Amounts are in millionths of a dollar.
    pub(super) fn new(
        level: BudgetLevel,
        budget: BudgetKind,
        (project, session): (&Project, &SessionId),
        day: UtcDay,
        (spent, limit): (i64, i64),
    ) -> Self {
        let name = deloop_detect::clean(session.as_str(), 80);
        let whose = match budget {
            BudgetKind::Session => format!("session {name}"),
            BudgetKind::Project => format!("project {project} on {} (UTC)", day.date()),
            BudgetKind::Day => format!("all projects on {} (UTC)", day.date()),
        };
        let standing = format!("{} of {}", dollars(spent), dollars(limit));
        let flag = match budget {
            // People paste the command into a shell, and clients choose the name.
            BudgetKind::Session if is_plain(session.as_str()) => format!(" --session {session}"),
            BudgetKind::Session => " --session ID".to_owned(),
            BudgetKind::Project | BudgetKind::Day => String::new(),
        };
        let lift = format!(
            "An operator can lift it with `deloop budget override --project {project}{flag} --usd AMOUNT --until 2h \
             --reason TEXT`."
        );
        let message = match level {
            BudgetLevel::Warning => format!("[deloop] The budget of {whose} is nearly used up: {standing}."),
            BudgetLevel::Exceeded if budget == BudgetKind::Session => {
                format!(
                    "[deloop] The budget of {whose} is used up: {standing}. The session is stopped. {lift}"
                )
            }
            BudgetLevel::Exceeded => {
                let end = day.plus(1).date();
                format!(
                    "[deloop] The budget of {whose} is used up: {standing}. Sessions are stopped until {end}. {lift}"
                )
            }
            BudgetLevel::Unknown => format!(
                "[deloop] What {whose} spent is unknown, because the server can't reach its shared records. Sessions are \
                 stopped until it can (`when_unknown` in its configuration)."
            ),
        };
        Self {
            level,
            budget,
            project: project.to_string(),
            session: (budget == BudgetKind::Session).then(|| session.to_string()),
            date: day.date(),
            limit_usd: usd(limit),
            spent_usd: usd(spent),
            message,
        }
    }

    fn status(&self) -> &'static str {
        if self.level == BudgetLevel::Unknown { BUDGET_UNKNOWN } else { BUDGET_EXCEEDED }
    }

    /// Returns the event for people and other programs.
    pub(crate) fn event(&self, step: &Step, index: u64) -> Event {
        let mut event = Event::new(EventKind::BudgetWarning, step.session.clone(), index);
        event.agent.clone_from(&step.agent);
        event.controller.clone_from(&step.controller);
        event.task.clone_from(&step.task);
        event.ts = step.ts;
        let is_stop = self.level != BudgetLevel::Warning;
        event.action = Some(if is_stop { Action::Stop } else { Action::Warn });
        event.level = Some(if is_stop { 2 } else { 1 });
        event.reason = Some(self.message.clone());
        event.status = is_stop.then(|| self.status().to_owned());
        event.total_usd = Some(self.spent_usd);
        event
    }

    /// Returns the decision about a step of a session whose budget is used up, within what the mode allows.
    pub(crate) fn stop(&self, step: &Step, decided: Decision, mode: Mode) -> Decision {
        if matches!(step.body, Body::End | Body::SwarmEnd | Body::State) || decided.action == Action::Stop {
            return decided;
        }
        let mut stop = Decision::go_on(decided.session.clone(), decided.step);
        let hash = xxh3_64(format!("{}\0{}\0budget", self.project, decided.session).as_bytes());
        stop.id = Some(format!("b{:010x}", (hash ^ decided.step) & 0xff_ffff_ffff));
        (stop.action, stop.level) = (Action::Stop, 2);
        stop.message = Some(self.message.clone());
        stop.user_message = Some(self.message.clone());
        stop.status = Some(self.status().to_owned());
        if let Body::Turn(turn) = &step.body {
            let id =
                |(n, call): (usize, &deloop_types::Call)| call.id.clone().unwrap_or_else(|| format!("#{n}"));
            stop.calls = turn.calls.iter().enumerate().map(id).collect();
        }
        stop.findings.clone_from(&decided.findings);
        stop.notices.clone_from(&decided.notices);
        if mode.cap() >= Action::Stop {
            return stop;
        }
        let mut capped = decided;
        capped.would = Some(Box::new(stop));
        capped
    }
}

/// Returns whether a name means nothing to a shell.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':');
    name.len() <= 80
        && name.bytes().next().is_some_and(is_plain)
        && name.bytes().all(|byte| is_plain(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_become_a_command() {
        let day = UtcDay::parse("2026-11-15").unwrap();
        let message = |session: &str| {
            let of = (&Project::default(), &SessionId::from(session));
            BudgetVerdict::new(BudgetLevel::Exceeded, BudgetKind::Session, of, day, (2_000_000, 1_000_000))
                .message
        };
        assert!(
            message("s-1").contains("--project default --session s-1 --usd AMOUNT"),
            "{}",
            message("s-1")
        );
        for hostile in ["'; rm -rf ~ #", "$(id)", "a b", "--help", "x\u{1b}[2J", ""] {
            let message = message(hostile);
            assert!(message.contains("--session ID --usd") && !message.contains('\u{1b}'), "{message}");
        }
    }
}
