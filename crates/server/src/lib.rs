//! The HTTP API of `deloop serve`: Steps in, Decisions out, for many agents at once.
//!
//! [`Broker`] decides and stores, and blocks while it does. [`serve`] puts it behind HTTP and is the only async code of
//! the workspace. Nothing here prints: the caller gets a [`ServerNotice`] for what people should see.

mod admission;
mod broker;
mod http_error;
mod listener;
mod metrics;
mod money;
mod project;
mod reports;
mod requester;
mod routes;
mod shared;
mod step_batch;

pub use broker::{Broker, CostFn, MoneySettings};
pub use listener::serve;
pub use money::{BudgetKind, BudgetLevel, BudgetLimits, BudgetVerdict};
pub use project::Project;
pub use reports::{
    BudgetsReport, DailyReport, ProjectBudget, ProjectDay, ReportFigures, ReportRow, Rise, SessionBudget,
    WeeklyLoops, WeeklyReport,
};
pub use shared::{ServerNotice, TellFn};
