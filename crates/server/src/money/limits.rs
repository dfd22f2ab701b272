use std::collections::BTreeMap;

use deloop_policy::{BudgetsBlock, WhenUnknown};

use super::micros::{micros, usd};
use crate::project::Project;

/// The share of a budget at which people are warned.
const WARN_AT: f64 = 0.8;
/// The most that one request counts, in dollars. A request that fills the context of the dearest model costs about $90.
const REQUEST_USD: f64 = 100.0;
/// Which part of the budget of all projects one of them can use up, if it has no budget of its own: a quarter.
const SHARES: i64 = 4;

/// The budgets of a server, checked. Amounts are in millionths of a dollar.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BudgetLimits {
    session: Option<i64>,
    project: Option<i64>,
    pub(super) day: Option<i64>,
    request: Option<i64>,
    warn_at: f64,
    projects: BTreeMap<Project, (Option<i64>, Option<i64>)>,
    stops_when_unknown: bool,
}

impl BudgetLimits {
    /// Checks a configuration.
    ///
    /// # Errors
    /// When an amount, the share or a project's name is wrong; the error names the key.
    pub fn new(block: &BudgetsBlock) -> Result<Self, String> {
        let amount = |key: &str, usd: Option<f64>| match usd {
            Some(usd) if !usd.is_finite() || usd <= 0.0 => {
                Err(format!("`serve.budgets.{key}` must be more than 0 dollars"))
            }
            usd => Ok(usd.map(micros_of_limit)),
        };
        let warn_at = block.warn_at.unwrap_or(WARN_AT);
        if !(warn_at > 0.0 && warn_at <= 1.0) {
            return Err("`serve.budgets.warn_at` must be more than 0 and at most 1".to_owned());
        }
        let mut projects = BTreeMap::new();
        for (name, of) in &block.projects {
            let project =
                Project::parse(name).map_err(|error| format!("`serve.budgets.projects`: {error}"))?;
            let session = amount(&format!("projects.{name}.session_usd"), of.session_usd)?;
            let day = amount(&format!("projects.{name}.project_usd"), of.project_usd)?;
            projects.insert(project, (session, day));
        }
        Ok(Self {
            session: amount("session_usd", block.session_usd)?,
            project: amount("project_usd", block.project_usd)?,
            day: amount("day_usd", block.day_usd)?,
            request: amount("request_usd", block.request_usd)?,
            warn_at,
            projects,
            stops_when_unknown: block.when_unknown == WhenUnknown::Stop,
        })
    }

    /// Returns what one session of a project may spend.
    pub(super) fn session(&self, project: &Project) -> Option<i64> {
        self.projects.get(project).and_then(|of| of.0).or(self.session)
    }

    /// Returns what a project may spend per day.
    pub(super) fn project(&self, project: &Project) -> Option<i64> {
        self.projects.get(project).and_then(|of| of.1).or(self.project)
    }

    /// Returns how much of a project's spend counts for the budget of all projects: its own daily budget, or a quarter of
    /// that one.
    pub(super) fn share(&self, project: &str) -> i64 {
        let own = Project::parse(project).ok().and_then(|project| self.project(&project));
        own.or(self.day.map(|day| day / SHARES)).unwrap_or(i64::MAX)
    }

    /// Returns the most that one request counts, in dollars.
    pub(crate) fn request_usd(&self) -> f64 {
        self.request.map_or(REQUEST_USD, usd)
    }

    /// Returns whether anything is limited.
    pub(super) fn is_limited(&self, project: &Project) -> bool {
        self.day.is_some() || self.session(project).is_some() || self.project(project).is_some()
    }

    /// Returns the spend at which people are warned.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a share of a bounded amount"
    )]
    pub(super) fn warning(&self, limit: i64) -> i64 {
        (limit as f64 * self.warn_at).round() as i64
    }

    pub(super) fn warn_at(&self) -> f64 {
        self.warn_at
    }

    pub(super) fn stops_when_unknown(&self) -> bool {
        self.stops_when_unknown
    }
}

/// Returns a limit in millionths of a dollar. Unlike a request, it may be large.
fn micros_of_limit(usd: f64) -> i64 {
    let thousands = (usd / 1000.0).trunc().min(1e9);
    #[expect(clippy::cast_possible_truncation, reason = "it is bounded")]
    let whole = thousands as i64 * 1_000_000_000;
    whole + micros((usd - thousands * 1000.0).min(1000.0)).max(i64::from(whole == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_limits_name_their_key() {
        let with = |change: fn(&mut BudgetsBlock)| {
            let mut block = BudgetsBlock::default();
            change(&mut block);
            BudgetLimits::new(&block)
        };
        for (limits, key) in [
            (with(|block| block.day_usd = Some(0.0)), "serve.budgets.day_usd"),
            (with(|block| block.session_usd = Some(f64::NAN)), "serve.budgets.session_usd"),
            (with(|block| block.warn_at = Some(1.5)), "serve.budgets.warn_at"),
            (with(|block| block.projects = [("a/b".to_owned(), Default::default())].into()), "projects"),
        ] {
            assert!(limits.as_ref().is_err_and(|error| error.contains(key)), "{limits:?}");
        }
        let limits = with(|block| {
            block.project_usd = Some(250_000.25);
            let own = deloop_policy::ProjectBudgetBlock { project_usd: Some(1.0), session_usd: None };
            block.projects.insert("small".to_owned(), own);
        })
        .unwrap();
        assert_eq!(limits.project(&Project::default()), Some(250_000_250_000));
        assert_eq!(limits.project(&Project::parse("small").unwrap()), Some(1_000_000));
        assert_eq!(limits.warning(1_000_000), 800_000);
        assert!(!limits.stops_when_unknown() && limits.session(&Project::default()).is_none());
    }
}
