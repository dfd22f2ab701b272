//! The HTTP API of `deloop serve`: Steps in, Decisions out, for many agents at once.
//!
//! [`Broker`] decides and stores, and blocks while it does. [`serve`] puts it behind HTTP and is the only async code of
//! the workspace. Nothing here prints: the caller gets a [`ServerNotice`] for what people should see.

mod access;
mod admission;
mod alerts;
mod audit;
mod broker;
mod caller_options;
mod clock;
mod connections;
mod events;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod host_name;
mod http_error;
mod listener;
mod metrics;
mod money;
mod openapi;
mod project;
mod readiness;
mod reports;
mod requester;
mod routes;
mod shared;
mod step_batch;
mod step_queue;
mod steps_request;
#[cfg(test)]
#[path = "../../engine/tests/redis/wait.rs"]
mod wait;
mod workers;

pub use access::{
    AccessSettings, ApiKey, KEY_FILE, KeyFile, KeyProject, KeyRecord, KeyScope, RateLimits, ServerAccess,
    TlsFiles, check_certificates,
};
pub use alerts::{
    Alert, AlertContext, AlertDetail, AlertOutcome, AlertRoute, AlertStats, Alerts, BacklogReport, ClaimFn,
    backlog_reports,
};
pub use audit::{
    AuditEntry, AuditError, AuditEvidence, AuditFilter, AuditHead, AuditKey, AuditLog, AuditProblem,
    AuditRecord, AuditSettings, AuditedDecision, AuditedTurn, StepRange, TurnCall, TurnForm, TurnHistory,
    Verification, audit_server, configuration_hash, published_heads, read_records, safe_json, verify,
};
pub use broker::{Broker, BrokerStore, PriceFn};
pub use clock::Clock;
pub use connections::ConnectionLimits;
pub use host_name::host_name;
pub use listener::serve;
pub use money::{BudgetKind, BudgetLevel, BudgetLimits, BudgetVerdict};
pub use openapi::openapi_document;
pub use project::Project;
pub use reports::{
    BudgetsReport, DailyReport, ProjectBudget, ProjectDay, ReportFigures, ReportRow, Rise, SessionBudget,
    WeeklyLoops, WeeklyReport,
};
pub use shared::{ServerNotice, TellFn};
