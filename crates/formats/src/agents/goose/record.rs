//! The lines of a session: a header, then messages.

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use crate::json::tolerant::{
    Count, Flag, Json, Number, Object, Objects, Text, Tolerant, deserialize_tolerantly,
};

/// One line: the header or a message.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GooseLine<'a> {
    #[serde(borrow)]
    pub(super) working_dir: Text<'a>,
    pub(super) accumulated_input_tokens: Count,
    pub(super) accumulated_output_tokens: Count,
    pub(super) input_tokens: Count,
    pub(super) output_tokens: Count,

    #[serde(borrow)]
    pub(super) role: Text<'a>,
    /// In seconds.
    pub(super) created: Number,
    #[serde(borrow)]
    pub(super) content: Objects<Content<'a>>,
    pub(super) metadata: Object<GooseMetadata>,
}

/// Who sees a message.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GooseMetadata {
    pub(super) user_visible: Flag,
}

/// A piece of a message.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Content<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_call: Object<GooseToolCall<'a>>,
    #[serde(borrow)]
    pub(super) tool_result: Object<GooseToolResult<'a>>,
}

/// A call, or why there is none.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GooseToolCall<'a> {
    #[serde(borrow)]
    pub(super) value: Object<GooseCall<'a>>,
    #[serde(borrow)]
    pub(super) error: Text<'a>,
}

/// A call.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GooseCall<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) arguments: Json,
}

/// What a call came back with, or why it failed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GooseToolResult<'a> {
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    #[serde(borrow)]
    pub(super) value: GooseOutput<'a>,
    #[serde(borrow)]
    pub(super) error: Text<'a>,
}

/// What a tool answered: in older versions a list of items, in newer ones an object with the list.
#[derive(Default)]
pub(super) struct GooseOutput<'a> {
    pub(super) items: Vec<GooseOutputItem<'a>>,
    pub(super) is_error: bool,
    pub(super) exit_code: Option<f64>,
    pub(super) timed_out: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GooseOutputFields<'a> {
    #[serde(borrow)]
    content: Objects<GooseOutputItem<'a>>,
    is_error: Flag,
    structured_content: Object<Structured>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Structured {
    exit_code: Number,
    timed_out: Flag,
}

impl<'de> Tolerant<'de> for GooseOutput<'de> {
    fn list<A: SeqAccess<'de>>(items: A) -> Result<Self, A::Error> {
        Objects::list(items).map(|items| Self { items: items.0, ..Self::default() })
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        let answer = Object::<GooseOutputFields<'de>>::object(fields)?.0.unwrap_or_default();
        let structured = answer.structured_content.0.unwrap_or_default();
        Ok(Self {
            items: answer.content.0,
            is_error: answer.is_error.0 == Some(true),
            exit_code: structured.exit_code.0,
            timed_out: structured.timed_out.0 == Some(true),
        })
    }
}

deserialize_tolerantly!(GooseOutput<'a>);

/// One piece of an answer.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GooseOutputItem<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    annotations: Object<Annotations>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotations {
    audience: Json,
}

impl GooseOutputItem<'_> {
    /// Returns whether the model sees it; some pieces are meant for the person only.
    pub(super) fn for_model(&self) -> bool {
        let audience = self.annotations.0.as_ref().and_then(|annotations| annotations.audience.0.as_array());
        audience.is_none_or(|roles| roles.iter().any(|role| role == "assistant"))
    }
}
