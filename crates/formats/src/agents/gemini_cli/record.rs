//! The records of a session, as they are in either shape of file.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use crate::json::tolerant::{Count, Json, Object, Objects, Text, Time, Tolerant, deserialize_tolerantly};

/// One line, or one element of a document's `messages`: a header, a patch, a rewind or a message.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Record<'a> {
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) directories: Texts<'a>,
    #[serde(borrow)]
    pub(super) messages: Objects<Message<'a>>,
    #[serde(borrow, rename = "$set")]
    pub(super) patch: Object<Patch<'a>>,
    #[serde(borrow, rename = "$rewindTo")]
    pub(super) rewind_to: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) role: Text<'a>,
    pub(super) timestamp: Time,
    #[serde(borrow)]
    pub(super) content: Parts<'a>,
    #[serde(borrow)]
    pub(super) display_content: Parts<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Objects<ToolCall<'a>>,
    pub(super) tokens: Object<Tokens>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
}

/// What a `$set` line changes.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Patch<'a> {
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) directories: Texts<'a>,
    /// The history that replaces all messages so far.
    #[serde(borrow)]
    pub(super) messages: Option<Objects<Message<'a>>>,
}

/// A message of the user or of the model, or a note of the program.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) role: Text<'a>,
    pub(super) timestamp: Time,
    #[serde(borrow)]
    pub(super) content: Parts<'a>,
    #[serde(borrow)]
    pub(super) display_content: Parts<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Objects<ToolCall<'a>>,
    pub(super) tokens: Object<Tokens>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
}

impl<'a> Record<'a> {
    /// The message it is, if it is neither a header nor a patch nor a rewind.
    pub(super) fn into_message(self) -> Message<'a> {
        Message {
            id: self.id,
            role: self.role,
            timestamp: self.timestamp,
            content: self.content,
            display_content: self.display_content,
            tool_calls: self.tool_calls,
            tokens: self.tokens,
            model: self.model,
        }
    }
}

/// A call that was run, with its result.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolCall<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) args: Json,
    #[serde(borrow)]
    pub(super) result: Parts<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    pub(super) timestamp: Time,
    #[serde(borrow)]
    pub(super) result_display: Text<'a>,
}

/// What the vendor counted; `input` includes `cached`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input: Count,
    pub(super) output: Count,
    pub(super) cached: Count,
    pub(super) thoughts: Count,
    pub(super) tool: Count,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    thought: Json,
    #[serde(borrow)]
    function_call: Object<FunctionCall<'a>>,
    #[serde(borrow)]
    function_response: Object<FunctionResponse<'a>>,
}

/// A call as the vendor's API writes it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) args: Json,
}

/// A result as the vendor's API writes it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) response: Json,
}

/// Content: a string, a part, or a list of both. Thoughts are left out.
#[derive(Default)]
pub(super) struct Parts<'a> {
    texts: Vec<Cow<'a, str>>,
    pub(super) calls: Vec<FunctionCall<'a>>,
    pub(super) responses: Vec<FunctionResponse<'a>>,
}

impl<'de> Tolerant<'de> for Parts<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self { texts: vec![text], ..Self::default() }
    }

    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut parts = Self::default();
        while let Some(item) = items.next_element::<OnePart<'de>>()? {
            parts.add(item.0);
        }
        Ok(parts)
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        let mut parts = Self::default();
        parts.add(OnePart::object(fields)?.0);
        Ok(parts)
    }
}

impl<'a> Parts<'a> {
    fn add(&mut self, part: Part<'a>) {
        let thinking = !matches!(part.thought.0, serde_json::Value::Null | serde_json::Value::Bool(false));
        self.texts.extend(part.text.0.filter(|_| !thinking));
        self.calls.extend(part.function_call.0);
        self.responses.extend(part.function_response.0);
    }

    /// The texts, joined.
    pub(super) fn text(&self) -> String {
        self.texts.join("\n")
    }
}

/// A part, or a string that stands for one.
#[derive(Default)]
struct OnePart<'a>(Part<'a>);

impl<'de> Tolerant<'de> for OnePart<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Part { text: Text(Some(text)), ..Part::default() })
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        Object::object(fields).map(|part: Object<Part<'de>>| Self(part.0.unwrap_or_default()))
    }
}

/// The strings of a list.
#[derive(Default)]
pub(super) struct Texts<'a>(pub(super) Vec<Cow<'a, str>>);

impl<'de> Tolerant<'de> for Texts<'de> {
    fn list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut texts = Vec::new();
        while let Some(item) = items.next_element::<Text<'de>>()? {
            texts.extend(item.0);
        }
        Ok(Self(texts))
    }
}

deserialize_tolerantly!(Parts<'a>, OnePart<'a>, Texts<'a>);
