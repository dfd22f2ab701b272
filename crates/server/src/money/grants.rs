//! What operators see of budgets and do about them.

use std::fmt;
use std::sync::Arc;

use deloop_store::StoreError;
use deloop_types::{Millis, SessionId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Money;
use super::calendar::UtcDay;
use super::micros::{micros, usd};
use super::overrides::{self, BudgetOverride, LONGEST};
use super::scope::{SpendScope, spent_of};
use crate::project::Project;
use crate::reports::{BudgetsReport, ProjectBudget, SessionBudget, projects_of};

/// Maximum length of a reason, in characters.
const LONGEST_REASON: usize = 500;

/// What an operator asks for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OverrideRequest {
    pub(crate) project: Option<String>,
    #[serde(default)]
    pub(crate) session: Option<String>,
    pub(crate) usd: f64,
    pub(crate) until: String,
    #[serde(default)]
    pub(crate) reason: String,
}

/// A change that an operator made, for the audit log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AuditedChange {
    pub(crate) actor: Arc<str>,
    /// `budget.override` or `budget.revoke`.
    pub(crate) action: &'static str,
    pub(crate) project: Project,
    pub(crate) session: Option<SessionId>,
    pub(crate) detail: Value,
}

impl fmt::Display for AuditedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} in project {}", self.action, self.actor, self.project)?;
        if let Some(session) = &self.session {
            write!(f, ", session {session}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

/// Why an override isn't granted.
#[derive(Debug)]
pub(crate) enum GrantError {
    /// The request is wrong.
    Wrong(String),
    /// The shared records failed.
    Store(StoreError),
}

impl From<StoreError> for GrantError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Returns the time that a text names: `90m`, `2h`, `3d`, or RFC 3339.
fn end(text: &str, now: Millis) -> Result<Millis, GrantError> {
    let unit = |text: &str| match text {
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(24 * 3_600_000),
        _ => None,
    };
    let split = text.char_indices().next_back().map_or(0, |(at, _)| at);
    let (count, last) = text.split_at(split);
    let length = unit(last).and_then(|unit| Some(i64::from(count.parse::<u32>().ok()?) * unit));
    let until = length.map(|length| Millis(now.0.saturating_add(length))).or_else(|| Millis::parse(text));
    let wrong = |why: &str| {
        Err(GrantError::Wrong(format!(
            "`until` {why}; give a length such as `90m`, `2h` or `3d`, or a time such as `2026-11-15T18:00:00Z`"
        )))
    };
    match until {
        None => wrong("isn't a time"),
        Some(until) if until <= now => wrong("has passed"),
        Some(until) if until.0 - now.0 > LONGEST => {
            wrong("is more than 7 days away, and an override is temporary")
        }
        Some(until) => Ok(until),
    }
}

impl Money {
    /// Lets a project or a session spend more for a while.
    ///
    /// # Errors
    /// When the request is wrong or the shared records fail.
    pub(crate) fn grant(
        &self,
        request: &OverrideRequest,
        project: &Project,
        actor: &Arc<str>,
        now: Millis,
    ) -> Result<(BudgetOverride, AuditedChange), GrantError> {
        if !request.usd.is_finite() || request.usd <= 0.0 || request.usd > 10_000.0 {
            return Err(GrantError::Wrong("`usd` must be more than 0 and at most 10000 dollars".to_owned()));
        }
        if request.reason.trim().is_empty() {
            return Err(GrantError::Wrong("`reason` is missing; the audit log keeps it".to_owned()));
        }
        let until = end(&request.until, now)?;
        let session = request.session.as_deref().map(SessionId::from);
        let scope = match &session {
            Some(session) => SpendScope::Session(project.clone(), session.clone()),
            None => SpendScope::Project(project.clone(), UtcDay::of(now)),
        };
        let spent_before = spent_of(&self.totals(&scope, now)?).max(self.spent(&scope, now).unwrap_or(0));
        let random = getrandom::u64().map_err(|_| GrantError::Wrong("no random numbers".to_owned()))?;
        let granted = BudgetOverride {
            id: format!("o{:012x}", random >> 16),
            project: project.to_string(),
            session: session.as_ref().map(ToString::to_string),
            amount: micros(request.usd),
            granted: now,
            until,
            actor: actor.to_string(),
            reason: deloop_detect::clean(&request.reason, LONGEST_REASON),
            spent_before,
        };
        if !overrides::put(self.records(), &granted, now)? {
            let message = "there are 1000 overrides, the limit; revoke one, or wait until one ends";
            return Err(GrantError::Wrong(message.to_owned()));
        }
        self.lock().overrides.push(granted.clone());
        let detail = granted.shown();
        let change = AuditedChange {
            actor: Arc::clone(actor),
            action: "budget.override",
            project: project.clone(),
            session,
            detail,
        };
        Ok((granted, change))
    }

    /// Ends an override of a project. Returns `None` if the project has no such override.
    ///
    /// # Errors
    /// When the shared records fail.
    pub(crate) fn revoke(
        &self,
        id: &str,
        project: &Project,
        actor: &Arc<str>,
        now: Millis,
    ) -> Result<Option<AuditedChange>, StoreError> {
        let found = overrides::get(self.records(), id, now)?;
        let Some(found) = found.filter(|found| found.project == project.as_str()) else { return Ok(None) };
        overrides::remove(self.records(), id)?;
        self.lock().overrides.retain(|kept| kept.id != id);
        Ok(Some(AuditedChange {
            actor: Arc::clone(actor),
            action: "budget.revoke",
            project: project.clone(),
            session: found.session.as_deref().map(SessionId::from),
            detail: json!({"override": found.shown()}),
        }))
    }

    /// Returns limits, spend and overrides of one project, or of all that spent anything today.
    ///
    /// # Errors
    /// When the shared records fail.
    pub(crate) fn report(
        &self,
        project: Option<&Project>,
        session: Option<&SessionId>,
        now: Millis,
    ) -> Result<BudgetsReport, StoreError> {
        let day = UtcDay::of(now);
        let names = match project {
            Some(project) => vec![project.clone()],
            None => {
                let names = projects_of(self.records(), day, now)?;
                names.iter().filter_map(|name| Project::parse(name).ok()).collect()
            }
        };
        let mut projects = Vec::with_capacity(names.len());
        for name in names {
            let spent = self.current(&SpendScope::Project(name.clone(), day), now)?;
            projects.push(ProjectBudget {
                spent_usd: usd(spent),
                limit_usd: self.limits.project(&name).map(usd),
                session_limit_usd: self.limits.session(&name).map(usd),
                project: name.to_string(),
            });
        }
        let session = project.zip(session).map(|(project, session)| {
            let limit = self.limits.session(project);
            let scope = SpendScope::Session(project.clone(), session.clone());
            let spent = limit.map(|_| self.current(&scope, now)).transpose()?;
            Ok::<_, StoreError>(SessionBudget {
                session: session.to_string(),
                spent_usd: spent.map(usd),
                limit_usd: limit.map(usd),
            })
        });
        let overrides = overrides::list(self.records(), now)?;
        let is_shown = |granted: &&BudgetOverride| project.is_none_or(|of| of.as_str() == granted.project);
        Ok(BudgetsReport {
            date: day.date(),
            warn_at: self.limits.warn_at(),
            day_limit_usd: self.limits.day.map(usd),
            day_spent_usd: match project {
                None => Some(usd(self.current(&SpendScope::Day(day, String::new()), now)?)),
                Some(_) => None,
            },
            projects,
            session: session.transpose()?,
            overrides: overrides.iter().filter(is_shown).map(BudgetOverride::shown).collect(),
        })
    }

    /// Returns what was spent, as the shared records and this server know it now.
    fn current(&self, scope: &SpendScope, now: Millis) -> Result<i64, StoreError> {
        let totals = self.totals(scope, now)?;
        let mut state = self.lock();
        state.spends.learn(scope, &totals, now);
        Ok(state.spends.known(scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_override_is_temporary() {
        let now = Millis::parse("2026-11-15T12:00:00Z").unwrap();
        let at =
            |text: &str| end(text, now).map(|until| until.0 - now.0).map_err(|error| format!("{error:?}"));
        assert_eq!(at("90m"), Ok(5_400_000));
        assert_eq!(at("7d"), Ok(LONGEST));
        assert_eq!(at("2026-11-15T12:00:01Z"), Ok(1000));
        for (text, why) in [
            ("8d", "7 days"),
            ("", "isn't a time"),
            ("2 h", "isn't a time"),
            ("-2h", "isn't a time"),
            ("h", "isn't a time"),
            ("4294967295d", "7 days"),
            ("2026-11-15T11:59:59Z", "has passed"),
            ("0m", "has passed"),
            ("2é", "isn't a time"),
        ] {
            assert!(at(text).is_err_and(|error| error.contains(why)), "{text}");
        }
    }
}
