//! One line of the stream, as far as deloop reads it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::agents::claude_code::record::{ClaudeMessage, ClaudeRecord, ResultDetails};
use crate::json::tolerant::{Count, Flag, Object, Objects, Shaped, Text};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamRecord<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    subtype: Text<'a>,
    #[serde(borrow)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow)]
    session_id: Text<'a>,
    /// The subagent; newer versions only.
    #[serde(borrow)]
    agent_id: Text<'a>,
    /// The call that started the subagent.
    #[serde(borrow)]
    parent_tool_use_id: Text<'a>,
    #[serde(borrow)]
    timestamp: Text<'a>,
    #[serde(borrow)]
    cwd: Text<'a>,
    #[serde(borrow)]
    claude_code_version: Text<'a>,
    #[serde(rename = "isSynthetic")]
    is_synthetic: Flag,
    #[serde(borrow)]
    message: Shaped<'a, ClaudeMessage<'a>>,
    #[serde(borrow)]
    tool_use_result: Shaped<'a, ResultDetails<'a>>,
    #[serde(borrow)]
    tool_result_meta: Objects<ToolResultMeta<'a>>,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Object<BTreeMap<String, Object<ModelUsage>>>,
    pub(super) model_usage_since_last_result: Object<BTreeMap<String, Object<ModelUsage>>>,
}

/// What Claude Code notes about a result beside what the model sees of it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolResultMeta<'a> {
    /// Why the call wasn't made.
    #[serde(borrow)]
    non_execution_kind: Text<'a>,
}

/// The tokens of one model.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelUsage {
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_input_tokens: Count,
    pub(super) cache_creation_input_tokens: Count,
    pub(super) cache_creation_ephemeral1h_input_tokens: Count,
}

impl<'a> StreamRecord<'a> {
    /// Returns the same as a record of a transcript.
    pub(super) fn into_transcript(self) -> ClaudeRecord<'a> {
        let is_named = |id: &Text<'_>| id.get().is_some_and(|id| !id.is_empty());
        let mut denials = self.tool_result_meta.0.into_iter().map(|meta| meta.non_execution_kind);
        let mut made = ClaudeRecord::default();
        made.kind = self.kind;
        made.subtype = self.subtype;
        made.uuid = self.uuid;
        // What a program sends as input may have an empty one.
        made.session_id = Some(self.session_id).filter(is_named).unwrap_or_default();
        made.agent_id =
            [self.agent_id, self.parent_tool_use_id].into_iter().find(is_named).unwrap_or_default();
        made.timestamp = self.timestamp;
        made.cwd = self.cwd;
        made.version = self.claude_code_version;
        made.is_meta = self.is_synthetic;
        made.tool_denial_kind = denials.find(is_named).unwrap_or_default();
        made.message = self.message;
        made.tool_use_result = self.tool_use_result;
        made
    }
}
