//! The audit log: every decision other than `continue` and every operator action, in files that show tampering.
//!
//! A record is one line of JSON. It names the hash of the record before it, so a record can't be changed, removed,
//! moved or inserted without breaking the chain from there on. What belongs to a session (its name, texts, turns) is a
//! payload beside the chained part, which holds only its salted hash: a purge replaces the payload, and the chain still
//! verifies. `docs/audit.md` describes the files.

mod audit_key;
mod broker_audit;
mod configuration;
mod entry;
mod head;
mod lift;
mod line;
mod lock;
mod log;
mod log_writer;
mod private_files;
mod published_heads;
mod purge;
mod query;
mod recorded;
mod recovery;
mod retention;
mod safe_json;
mod segments;
mod turn_histories;
mod turn_history;
mod verify;
mod verify_chain;

pub use audit_key::AuditKey;
pub(crate) use broker_audit::BrokerAudit;
pub use configuration::configuration_hash;
pub use entry::{AuditEntry, AuditedDecision, StepRange};
pub use head::AuditHead;
pub(crate) use lift::LiftedBy;
pub use line::AuditRecord;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use line::read_line;
pub use log::{AuditError, AuditLog, AuditSettings};
pub use published_heads::published_heads;
pub use query::{AuditFilter, read_records};
pub(crate) use recorded::DecisionIdentity;
pub use recovery::audit_server;
pub use safe_json::safe_json;
pub use turn_history::{AuditedTurn, TurnCall, TurnForm, TurnHistory};
pub use verify::{AuditEvidence, AuditProblem, Verification, verify};

#[cfg(test)]
mod forgery_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod tamper_tests;
