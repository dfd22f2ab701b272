//! The messages of a task.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use crate::json::tolerant::{
    Count, Flag, Json, Number, Object, Objects, Prose, Text, Time, Tolerant, deserialize_tolerantly,
};

/// A document: a list of messages, or an object with one.
#[derive(Default)]
pub(super) struct Document<'a> {
    pub(super) session: Option<String>,
    pub(super) messages: Vec<Message<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Session<'a> {
    #[serde(borrow)]
    session_id: Text<'a>,
    #[serde(borrow)]
    messages: Objects<Message<'a>>,
}

impl<'de> Tolerant<'de> for Document<'de> {
    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error> {
        Objects::list(items).map(|messages| Self { session: None, messages: messages.0 })
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        let session = Object::<Session<'de>>::object(fields)?.0.unwrap_or_default();
        Ok(Self { session: session.session_id.owned(), messages: session.messages.0 })
    }
}

deserialize_tolerantly!(Document<'a>, Blocks<'a>);

/// One message.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) role: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Blocks<'a>,
    pub(super) ts: Time,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) model_info: Object<ModelInfo<'a>>,
    pub(super) metrics: Object<Metrics>,
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
pub(super) struct Metrics {
    pub(super) tokens: Object<Tokens>,
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) cache_read_tokens: Count,
    pub(super) cache_write_tokens: Count,
    pub(super) cost: Number,
}

/// Tokens, in the older shape.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) prompt: Count,
    pub(super) completion: Count,
    pub(super) cached: Count,
}

/// Content: a string, or a list of blocks.
#[derive(Default)]
pub(super) struct Blocks<'a>(pub(super) Vec<Block<'a>>);

impl<'de> Tolerant<'de> for Blocks<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        let kind = Text(Some(Cow::Borrowed("text")));
        Self(vec![Block { kind, text: Text(Some(text)), ..Block::default() }])
    }

    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error> {
        Objects::list(items).map(|blocks| Self(blocks.0))
    }
}

/// A piece of a message.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
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
