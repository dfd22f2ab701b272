//! One line of a session, as far as deloop reads it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::json::tolerant::{Flag, Number, Shaped, Text};
use crate::text::stand_in;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Entry<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) parent_id: Text<'a>,
    #[serde(borrow)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow)]
    pub(super) message: Shaped<'a, PiMessage<'a>>,
    /// Of what an extension says to the agent.
    #[serde(borrow)]
    pub(super) content: Shaped<'a, PiBlock<'a>>,
}

/// The fields of messages in all roles.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PiMessage<'a> {
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Shaped<'a, PiBlock<'a>>,
    pub(super) timestamp: Number,

    // Of a message to the agent, in OpenClaw.
    #[serde(borrow)]
    pub(super) provenance: Shaped<'a, OpenClawProvenance<'a>>,

    // Of the model.
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    #[serde(borrow)]
    pub(super) response_id: Text<'a>,
    #[serde(borrow)]
    pub(super) usage: Shaped<'a, PiTokens<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,

    // Of a result.
    #[serde(borrow)]
    pub(super) tool_call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_name: Text<'a>,
    pub(super) is_error: Flag,

    // Of a command that the user ran.
    #[serde(borrow)]
    pub(super) command: Text<'a>,
    #[serde(borrow)]
    pub(super) output: Text<'a>,
    pub(super) exclude_from_context: Flag,
}

/// Who sent a message, as OpenClaw declares it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct OpenClawProvenance<'a> {
    #[serde(borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) source_tool: Text<'a>,
}

/// A piece of a message.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PiBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) data: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) arguments: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PiTokens<'a> {
    pub(super) input: Number,
    pub(super) output: Number,
    pub(super) cache_read: Number,
    pub(super) cache_write: Number,
    #[serde(borrow)]
    pub(super) cost: Shaped<'a, Cost>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Cost {
    pub(super) total: Number,
}

/// The texts of a message, one a line, with a name for each picture.
pub(super) fn text(content: Shaped<'_, PiBlock<'_>>) -> String {
    match content {
        Shaped::Nothing => String::new(),
        Shaped::Text(text) => text.into_owned(),
        Shaped::Object(block) => shown(block).into_owned(),
        Shaped::List(blocks) => {
            let texts: Vec<_> = blocks.into_iter().map(shown).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
    }
}

fn shown(block: PiBlock<'_>) -> Cow<'_, str> {
    match block.data.get() {
        Some(data) if block.kind.get() == Some("image") => stand_in("image", data).into(),
        _ => block.text.take().unwrap_or_default(),
    }
}
