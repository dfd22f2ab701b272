//! What requests about sessions are answered, and the body of a message.

use deloop_engine::Checkpoint;
use deloop_types::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::sessions::LONGEST_MESSAGE;
use crate::openapi::all_required;

/// A page of the sessions of a project.
#[derive(Serialize, JsonSchema)]
#[schemars(transform = all_required)]
pub(super) struct SessionPage {
    /// Names, in the order of their bytes.
    #[schemars(with = "Vec<String>")]
    pub(super) sessions: Vec<SessionId>,
    /// The `after` of the next page; null on the last one.
    #[schemars(with = "Option<String>")]
    pub(super) next: Option<SessionId>,
}

/// A session whose state was deleted.
#[derive(Serialize, JsonSchema)]
pub(super) struct ResetSession {
    #[schemars(with = "String")]
    pub(super) session: SessionId,
    /// Whether there was one.
    pub(super) existed: bool,
}

/// A session that was deleted for good.
#[derive(Serialize, JsonSchema)]
pub(super) struct PurgedSession {
    #[schemars(with = "String")]
    pub(super) session: SessionId,
    /// Whether there was one.
    pub(super) existed: bool,
    /// How many records of the audit log were about it.
    pub(super) purged_records: u64,
}

/// A session whose agent gets a message.
#[derive(Serialize, JsonSchema)]
pub(super) struct QueuedMessage {
    #[schemars(with = "String")]
    pub(super) session: SessionId,
    /// Always true.
    pub(super) queued: bool,
}

/// A session whose state was replaced.
#[derive(Serialize, JsonSchema)]
pub(super) struct RestoredSession {
    #[schemars(with = "String")]
    pub(super) session: SessionId,
    /// Always true.
    pub(super) restored: bool,
}

/// A message for an agent.
#[derive(Deserialize, JsonSchema)]
pub(super) struct MessageBody {
    /// The text, not only spaces.
    #[schemars(length(max = LONGEST_MESSAGE), regex(pattern = "\\S"))]
    pub(super) text: String,
}

/// Returns what is stored of a session, as an example.
pub(super) fn session_example() -> Value {
    json!({
        "session": "s1",
        "steps": 6,
        "ledger": {
            "steps": 6, "tokens": 0, "all_tokens": 0, "usd": 0.0, "first": 1_763_337_600_000_i64, "last": 1_763_337_601_000_i64,
            "active": {"ms": 1_000, "last": 1_763_337_601_000_i64}, "turns": 3, "subagents": 0, "raises": 0, "raised_at": 0,
            "warned": false, "reached_at": null,
        },
        "controller": null,
        "ended": null,
        "loop_detection_state": null,
        "agents": [{
            "agent": null,
            "last_tool": "bash",
            "reached": [{"detector": "repeated-failure", "level": 1, "rungs": 5, "action": "nudge", "rung": "nudge"}],
            "stop": null,
            "loop_detection_state": null,
        }],
    })
}

/// Returns a checkpoint, as an example.
pub(super) fn checkpoint_example() -> Value {
    json!({
        "version": Checkpoint::VERSION,
        "steps": 0,
        "ledger": {
            "steps": 0, "tokens": 0, "all_tokens": 0, "usd": 0.0, "first": null, "last": null,
            "active": {"ms": 0, "last": null}, "turns": 0, "subagents": 0, "raises": 0, "raised_at": 0, "warned": false,
            "reached_at": null,
        },
        "agents": [],
    })
}
