use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The settings of `deloop serve`. Only your own configuration can have them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ServeBlock {
    /// What sessions and projects may spend.
    pub budgets: BudgetsBlock,
}

/// What sessions and projects may spend on models. A budget that is absent doesn't limit anything. Days are UTC days.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct BudgetsBlock {
    /// What one session may spend, in dollars.
    pub session_usd: Option<f64>,
    /// What one project may spend per day, in dollars.
    pub project_usd: Option<f64>,
    /// What all projects together may spend per day, in dollars.
    pub day_usd: Option<f64>,
    /// The share of a budget at which people are warned, 0 to 1; 0.8 if absent.
    pub warn_at: Option<f64>,
    /// What happens while the server can't find out what was spent.
    pub when_unknown: WhenUnknown,
    /// Budgets of single projects, by name. They replace those above.
    pub projects: BTreeMap<String, ProjectBudgetBlock>,
}

/// The budgets of one project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ProjectBudgetBlock {
    /// What one session of the project may spend, in dollars.
    pub session_usd: Option<f64>,
    /// What the project may spend per day, in dollars.
    pub project_usd: Option<f64>,
}

/// What happens while a server can't find out what was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WhenUnknown {
    /// Agents continue. What this server itself counted still applies.
    #[default]
    Continue,
    /// Agents whose budgets are unknown for more than five seconds are stopped.
    Stop,
}
