//! One line of a transcript, as far as deloop reads it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::json::tolerant::{Flag, Number, Shaped, Text};
use crate::text::stand_in;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::agents) struct ClaudeRecord<'a> {
    #[serde(borrow, rename = "type")]
    pub(in crate::agents) kind: Text<'a>,
    #[serde(borrow)]
    pub(in crate::agents) subtype: Text<'a>,
    #[serde(borrow)]
    pub(in crate::agents) uuid: Text<'a>,
    #[serde(borrow)]
    pub(super) parent_uuid: Text<'a>,
    #[serde(borrow)]
    pub(in crate::agents) session_id: Text<'a>,
    #[serde(borrow)]
    pub(in crate::agents) agent_id: Text<'a>,
    #[serde(borrow)]
    pub(super) request_id: Text<'a>,
    #[serde(borrow)]
    pub(in crate::agents) timestamp: Text<'a>,
    #[serde(borrow)]
    pub(in crate::agents) cwd: Text<'a>,
    #[serde(borrow)]
    pub(in crate::agents) version: Text<'a>,
    #[serde(borrow)]
    pub(super) prompt_source: Text<'a>,
    #[serde(borrow)]
    pub(in crate::agents) tool_denial_kind: Text<'a>,
    /// Of a prompt that a timer sent.
    #[serde(borrow)]
    pub(super) scheduled_task_id: Text<'a>,
    #[serde(borrow)]
    pub(super) origin: Shaped<'a, ClaudeOrigin<'a>>,
    pub(super) is_sidechain: Flag,
    pub(in crate::agents) is_meta: Flag,
    pub(super) is_compact_summary: Flag,
    pub(super) is_api_error_message: Flag,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Number,
    #[serde(borrow)]
    pub(in crate::agents) message: Shaped<'a, ClaudeMessage<'a>>,
    /// Left out when [`split`](super::skip::split) has cut it out.
    #[serde(borrow)]
    pub(in crate::agents) tool_use_result: Shaped<'a, ResultDetails<'a>>,
    #[serde(borrow)]
    pub(super) attachment: Shaped<'a, Attachment<'a>>,
    /// Of a record of type `progress`: the call that it is about.
    #[serde(borrow, rename = "parentToolUseID")]
    pub(super) parent_call: Text<'a>,
    /// Of a record of type `progress`.
    #[serde(borrow)]
    pub(super) data: Shaped<'a, ClaudeProgress<'a>>,
}

/// What a `progress` record reports; of a subagent, one of its messages.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaudeProgress<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) agent_id: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Shaped<'a, Box<ClaudeRecord<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeOrigin<'a> {
    #[serde(borrow)]
    pub(super) kind: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::agents) struct ClaudeMessage<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Shaped<'a, ClaudeBlock<'a>>,
    #[serde(borrow)]
    pub(super) usage: Shaped<'a, ClaudeTokens<'a>>,
}

/// A piece of a message: text, a call or a result.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) input: Value,
    #[serde(borrow)]
    pub(super) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Shaped<'a, ClaudeResultPart<'a>>,
    pub(super) is_error: Flag,
}

/// A piece of a result.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeResultPart<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    tool_name: Text<'a>,
    #[serde(borrow)]
    source: Shaped<'a, ClaudeImageSource<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeImageSource<'a> {
    #[serde(borrow)]
    data: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeTokens<'a> {
    pub(super) input_tokens: Number,
    pub(super) output_tokens: Number,
    pub(super) cache_read_input_tokens: Number,
    pub(super) cache_creation_input_tokens: Number,
    #[serde(borrow)]
    pub(super) cache_creation: Shaped<'a, ClaudeCacheCreation>,
}

/// The parts of what was written to the cache, by how long they are kept.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClaudeCacheCreation {
    pub(super) ephemeral_1h_input_tokens: Number,
}

/// What the agent noted about a result beside what the model saw of it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::agents) struct ResultDetails<'a> {
    pub(super) interrupted: Flag,
    #[serde(borrow)]
    pub(super) background_task_id: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) task: Shaped<'a, ClaudeBackgroundTask<'a>>,
    /// Of a look at a command that runs in the background.
    #[serde(borrow)]
    pub(super) shell_id: Text<'a>,
    pub(super) exit_code: Number,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaudeBackgroundTask<'a> {
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    pub(super) exit_code: Number,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attachment<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) prompt: Shaped<'a, ClaudeBlock<'a>>,
    #[serde(borrow)]
    pub(super) command_mode: Text<'a>,
    #[serde(borrow)]
    pub(super) origin: Shaped<'a, ClaudeOrigin<'a>>,
    pub(super) is_meta: Flag,
}

/// The text of a result as the model saw it, its parts one a line; `None` when the file does not hold it, or only in
/// parts that are not text.
pub(super) fn output(content: Shaped<'_, ClaudeResultPart<'_>>) -> Option<String> {
    let parts = match content {
        Shaped::Nothing => return None,
        Shaped::Text(text) => return Some(text.into_owned()),
        Shaped::Object(part) => vec![part],
        Shaped::List(parts) => parts,
    };
    let is_readable = parts.is_empty() || parts.iter().any(|part| part.kind.get() == Some("text"));
    let parts: Vec<_> = parts.into_iter().map(shown).filter(|part| !part.is_empty()).collect();
    (is_readable || !parts.is_empty()).then(|| parts.join("\n"))
}

/// A part as text; of a picture a name that tells it from other pictures.
fn shown(part: ClaudeResultPart<'_>) -> Cow<'_, str> {
    if let Some(text) = part.text.take() {
        return text;
    }
    if let Some(data) = part.source.object().and_then(|source| source.data.take()) {
        return Cow::Owned(stand_in(part.kind.get().unwrap_or("data"), &data));
    }
    part.tool_name.take().unwrap_or_default()
}
