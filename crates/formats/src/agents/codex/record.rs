//! One line of a rollout, as far as deloop reads it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::json::tolerant::{Flag, Number, Shaped, Text};
use crate::text::stand_in;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexLine<'a> {
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    pub(super) ordinal: Number,
    #[serde(borrow)]
    pub(super) payload: Shaped<'a, Payload<'a>>,
}

/// The fields of all kinds of payloads; which of them are there is up to `kind` and the line's.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Payload<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) record_type: Text<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,

    // Items of the conversation.
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) namespace: Text<'a>,
    pub(super) arguments: Value,
    pub(super) input: Value,
    pub(super) action: Value,
    #[serde(borrow)]
    pub(super) content: Shaped<'a, CodexPart<'a>>,
    #[serde(borrow)]
    pub(super) output: Shaped<'a, CodexPart<'a>>,
    #[serde(borrow)]
    pub(super) tools: Shaped<'a, Named<'a>>,
    #[serde(borrow, rename = "internal_chat_message_metadata_passthrough")]
    pub(super) metadata: Shaped<'a, CodexMetadata>,

    // The session.
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) parent_thread_id: Text<'a>,
    #[serde(borrow)]
    pub(super) forked_from_id: Text<'a>,
    #[serde(borrow)]
    pub(super) source: Shaped<'a, CodexSessionSource>,
    #[serde(borrow)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow)]
    pub(super) cli_version: Text<'a>,
    pub(super) subagent_history_start_ordinal: Value,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) thread_settings: Shaped<'a, CodexThreadSettings<'a>>,

    // Tokens.
    #[serde(borrow)]
    pub(super) info: Shaped<'a, CodexTokenInfo<'a>>,
    #[serde(borrow)]
    pub(super) usage: Shaped<'a, CodexTokens>,
    #[serde(borrow)]
    pub(super) response_id: Text<'a>,

    // How a call ended.
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    pub(super) exit_code: Number,
    pub(super) success: Value,
    #[serde(borrow)]
    pub(super) result: Shaped<'a, CodexMcpResult<'a>>,
    #[serde(borrow)]
    pub(super) item: Shaped<'a, Done<'a>>,
}

/// A piece of a message or of a result.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexPart<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) image_url: Text<'a>,
    /// Of the oldest results: their text.
    #[serde(borrow)]
    pub(super) content: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Named<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexMetadata {
    pub(super) content_item_kinds: Value,
}

/// What started a session that no person started.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexSessionSource {
    pub(super) subagent: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexThreadSettings<'a> {
    #[serde(borrow)]
    pub(super) model: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexTokenInfo<'a> {
    #[serde(borrow)]
    pub(super) total_token_usage: Shaped<'a, CodexTokens>,
    #[serde(borrow)]
    pub(super) last_token_usage: Shaped<'a, CodexTokens>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexTokens {
    pub(super) input_tokens: Number,
    pub(super) cached_input_tokens: Number,
    pub(super) cache_write_input_tokens: Number,
    pub(super) output_tokens: Number,
    pub(super) total_tokens: Number,
}

/// An MCP tool's answer.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexMcpResult<'a> {
    #[serde(borrow, rename = "Ok")]
    pub(super) ok: Shaped<'a, CodexMcpOutput>,
    #[serde(borrow, rename = "Err")]
    pub(super) err: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CodexMcpOutput {
    #[serde(alias = "isError")]
    pub(super) is_error: Flag,
}

/// An item that a newer version reports as completed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Done<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    pub(super) exit_code: Number,
}

/// The text of a result as the model saw it, its parts one a line; `None` when the file does not hold it.
pub(super) fn output(output: Shaped<'_, CodexPart<'_>>) -> Option<String> {
    match output {
        Shaped::Nothing => None,
        Shaped::Text(text) => Some(text.into_owned()),
        parts @ (Shaped::Object(_) | Shaped::List(_)) => {
            let parts: Vec<_> = shown_parts(parts).into_iter().filter(|part| !part.is_empty()).collect();
            Some(parts.join("\n"))
        }
    }
}

/// The parts of a result, each as the model saw it.
pub(super) fn shown_parts<'a>(output: Shaped<'a, CodexPart<'a>>) -> Vec<Cow<'a, str>> {
    match output {
        Shaped::Nothing => Vec::new(),
        Shaped::Text(text) => vec![text],
        Shaped::Object(part) => vec![shown(part)],
        Shaped::List(parts) => parts.into_iter().map(shown).collect(),
    }
}

fn shown(part: CodexPart<'_>) -> Cow<'_, str> {
    if let Some(text) = part.text.take().or_else(|| part.content.take()) {
        return text;
    }
    part.image_url.get().map(|url| stand_in("image", url)).unwrap_or_default().into()
}
