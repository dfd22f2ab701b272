//! The events of a session.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::json::tolerant::{Count, Flag, Json, Number, Object, Objects, Text, Timestamp};

/// One line.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CopilotRecord<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    pub(super) timestamp: Timestamp,
    /// The subagent, if it is of one.
    #[serde(borrow)]
    pub(super) agent_id: Text<'a>,
    #[serde(borrow)]
    pub(super) data: Object<Data<'a>>,
}

/// What the events say; each type has some of these fields.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Data<'a> {
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) copilot_version: Text<'a>,
    #[serde(borrow)]
    pub(super) context: Object<Context<'a>>,
    #[serde(borrow)]
    pub(super) content: Text<'a>,
    #[serde(borrow)]
    pub(super) source: Text<'a>,
    pub(super) is_autopilot_continuation: Flag,
    #[serde(borrow)]
    pub(super) api_call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) message_id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_tokens: Count,
    pub(super) cache_write_tokens: Count,
    #[serde(borrow)]
    pub(super) tool_requests: Objects<ToolRequest<'a>>,
    /// The call that started the subagent, in older versions.
    #[serde(borrow)]
    pub(super) parent_tool_call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_call_id: Text<'a>,
    pub(super) success: Flag,
    pub(super) is_user_requested: Flag,
    #[serde(borrow)]
    pub(super) result: Object<CopilotResult<'a>>,
    #[serde(borrow)]
    pub(super) error: Object<CopilotError<'a>>,
    pub(super) shell_execution: Object<ShellExecution>,
    pub(super) model_metrics: Object<BTreeMap<String, Object<Metric>>>,
}

/// Where the session works.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Context<'a> {
    #[serde(borrow)]
    pub(super) cwd: Text<'a>,
}

/// One call.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolRequest<'a> {
    #[serde(borrow)]
    pub(super) tool_call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) arguments: Json,
}

/// What a call came back with (`content`), or how a question for permission was answered (`kind`).
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CopilotResult<'a> {
    #[serde(borrow)]
    pub(super) content: Text<'a>,
    #[serde(borrow)]
    pub(super) kind: Text<'a>,
}

/// Why a call failed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CopilotError<'a> {
    #[serde(borrow)]
    pub(super) code: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Text<'a>,
}

/// How a command ended.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ShellExecution {
    pub(super) exit_code: Number,
}

/// What a model was used for, all requests together.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metric {
    pub(super) requests: Object<Requests>,
    pub(super) usage: Object<CopilotTokens>,
}

/// How many requests there were.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Requests {
    pub(super) count: Count,
}

/// The tokens of all requests; `input_tokens` includes those of the cache.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CopilotTokens {
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_tokens: Count,
    pub(super) cache_write_tokens: Count,
}
