//! One line of a chat, as far as deloop reads it.

use serde::Deserialize;
use serde_json::Value;

use crate::json::tolerant::{Flag, Number, Shaped, Text};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct QwenRecord<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) subtype: Text<'a>,
    #[serde(borrow)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow)]
    pub(super) forked_from: Shaped<'a, Forked<'a>>,
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) agent_id: Text<'a>,
    /// Which round of a subagent a record begins.
    pub(super) agent_round: Number,
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow)]
    pub(super) version: Text<'a>,
    #[serde(borrow)]
    pub(super) provenance: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Shaped<'a, QwenMessage<'a>>,
    #[serde(borrow)]
    pub(super) usage_metadata: Shaped<'a, QwenTokens>,
    #[serde(borrow)]
    pub(super) tool_call_result: Shaped<'a, QwenToolCallResult<'a>>,
    #[serde(borrow)]
    pub(super) system_payload: Shaped<'a, Display<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Forked<'a> {
    #[serde(borrow)]
    pub(super) message_uuid: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct QwenMessage<'a> {
    #[serde(borrow)]
    pub(super) parts: Shaped<'a, QwenPart<'a>>,
}

/// A piece of a message: text, a call, a result or data.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct QwenPart<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    pub(super) thought: Flag,
    #[serde(borrow)]
    pub(super) function_call: Shaped<'a, QwenFunctionCall<'a>>,
    #[serde(borrow)]
    pub(super) function_response: Shaped<'a, QwenFunctionResponse<'a>>,
    #[serde(borrow)]
    pub(super) inline_data: Shaped<'a, Inline<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct QwenFunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) args: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct QwenFunctionResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) response: Value,
    #[serde(borrow)]
    pub(super) parts: Shaped<'a, Media<'a>>,
}

/// Data beside the text of a result.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Media<'a> {
    #[serde(borrow)]
    pub(super) inline_data: Shaped<'a, Inline<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Inline<'a> {
    #[serde(borrow)]
    pub(super) data: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct QwenTokens {
    pub(super) prompt_token_count: Number,
    pub(super) cached_content_token_count: Number,
    pub(super) candidates_token_count: Number,
    pub(super) total_token_count: Number,
}

/// How a call ended.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct QwenToolCallResult<'a> {
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) error_type: Text<'a>,
}

/// What the user sees of a message.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Display<'a> {
    #[serde(borrow)]
    pub(super) display_text: Text<'a>,
}
