//! The messages of a task.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use crate::json::tolerant::{
    Count, Flag, Json, Number, Object, Objects, Prose, Text, Timestamp, Tolerant, deserialize_tolerantly,
};

/// A document: a list of messages, or an object with one.
#[derive(Default)]
pub(super) struct ClineDocument<'a> {
    pub(super) session: Option<String>,
    pub(super) messages: Vec<ClineMessage<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClineSession<'a> {
    #[serde(borrow)]
    session_id: Text<'a>,
    #[serde(borrow)]
    messages: Objects<ClineMessage<'a>>,
}

impl<'de> Tolerant<'de> for ClineDocument<'de> {
    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error> {
        Objects::list(items).map(|messages| Self { session: None, messages: messages.0 })
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        let session = Object::<ClineSession<'de>>::object(fields)?.0.unwrap_or_default();
        Ok(Self { session: session.session_id.owned(), messages: session.messages.0 })
    }
}

deserialize_tolerantly!(ClineDocument<'a>, ClineContent<'a>);

/// One message.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClineMessage<'a> {
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) content: ClineContent<'a>,
    pub(super) ts: Timestamp,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model_info: Object<ModelInfo<'a>>,
    pub(super) metrics: Object<ClineMetrics>,
    /// Whether it is the summary that replaces what was before it.
    pub(super) is_summary: Flag,
}

/// Which model wrote it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelInfo<'a> {
    #[serde(borrow)]
    pub(super) model_id: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
}

/// What it used, in one of two shapes.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClineMetrics {
    pub(super) tokens: Object<ClineTokens>,
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_tokens: Count,
    pub(super) cache_write_tokens: Count,
    pub(super) cost: Number,
}

/// Tokens, in the older shape.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClineTokens {
    pub(super) prompt: Count,
    pub(super) completion: Count,
    pub(super) cached: Count,
}

/// Content: a string, or a list of blocks.
#[derive(Default)]
pub(super) struct ClineContent<'a>(pub(super) Vec<ClineBlock<'a>>);

impl<'de> Tolerant<'de> for ClineContent<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        let kind = Text(Some(Cow::Borrowed("text")));
        Self(vec![ClineBlock { kind, text: Text(Some(text)), ..ClineBlock::default() }])
    }

    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error> {
        Objects::list(items).map(|blocks| Self(blocks.0))
    }
}

/// A piece of a message.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClineBlock<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) input: Json,
    #[serde(borrow)]
    pub(super) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Prose<'a>,
    pub(super) is_error: Flag,
}
