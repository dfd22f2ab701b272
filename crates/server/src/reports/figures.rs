use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::usd;

/// What was spent and found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportFigures {
    /// Requests to models.
    pub requests: u64,
    /// Tokens, including those read from and written to the cache.
    pub tokens: u64,
    /// Their cost, in dollars.
    pub cost_usd: f64,
    /// Requests whose price is unknown; their cost isn't included.
    pub unpriced_requests: u64,
    /// The cost of requests that repeated what a loop had done before, in dollars.
    pub loop_waste_usd: f64,
    /// Loops found.
    pub loops: u64,
    /// Sessions that deloop stopped because of a loop.
    pub terminated: u64,
    /// Sessions of the week; not part of daily figures.
    #[serde(skip)]
    pub(super) sessions: u64,
    /// Exact amounts, in millionths of a dollar.
    #[serde(skip)]
    pub(super) exact: ExactAmounts,
}

/// Amounts in millionths of a dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ExactAmounts {
    pub(super) cost: i64,
    waste: i64,
}

impl ReportFigures {
    /// Adds a total from a table.
    pub(super) fn add_coded(&mut self, code: &str, total: i64) {
        let count = u64::try_from(total).unwrap_or(0);
        let counter = match code {
            "r" => &mut self.requests,
            "t" => &mut self.tokens,
            "u" => &mut self.unpriced_requests,
            "l" => &mut self.loops,
            "x" => &mut self.terminated,
            "s" => &mut self.sessions,
            "c" => return self.add_amounts(total, 0),
            "w" => return self.add_amounts(0, total),
            _ => return,
        };
        *counter = counter.saturating_add(count);
    }

    /// Adds other figures.
    pub(super) fn add(&mut self, other: &Self) {
        for (total, more) in [
            (&mut self.requests, other.requests),
            (&mut self.tokens, other.tokens),
            (&mut self.unpriced_requests, other.unpriced_requests),
            (&mut self.loops, other.loops),
            (&mut self.terminated, other.terminated),
            (&mut self.sessions, other.sessions),
        ] {
            *total = total.saturating_add(more);
        }
        self.add_amounts(other.exact.cost, other.exact.waste);
    }

    fn add_amounts(&mut self, cost: i64, waste: i64) {
        self.exact.cost = self.exact.cost.saturating_add(cost);
        self.exact.waste = self.exact.waste.saturating_add(waste);
        (self.cost_usd, self.loop_waste_usd) = (usd(self.exact.cost), usd(self.exact.waste));
    }
}

/// The budgets of a server: limits, today's spend and overrides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetsReport {
    /// Today (UTC).
    pub date: String,
    /// The share of a budget at which people are warned.
    pub warn_at: f64,
    /// What all projects may spend per day, in dollars.
    pub day_limit_usd: Option<f64>,
    /// What all projects spent today, in dollars; null in an answer about one project.
    pub day_spent_usd: Option<f64>,
    /// The projects.
    pub projects: Vec<ProjectBudget>,
    /// The session, if the request names one.
    pub session: Option<SessionBudget>,
    /// The overrides in force.
    pub overrides: Vec<serde_json::Value>,
}

/// The budget of a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectBudget {
    /// The project.
    pub project: String,
    /// What it spent today, in dollars.
    pub spent_usd: f64,
    /// What it may spend per day, in dollars.
    pub limit_usd: Option<f64>,
    /// What each of its sessions may spend, in dollars.
    pub session_limit_usd: Option<f64>,
}

/// The budget of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionBudget {
    /// The session.
    pub session: String,
    /// What it spent, in dollars; null if sessions have no budget.
    pub spent_usd: Option<f64>,
    /// What it may spend, in dollars.
    pub limit_usd: Option<f64>,
}
