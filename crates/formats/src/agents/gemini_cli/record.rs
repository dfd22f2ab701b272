//! The records of a session, as they are in either shape of file.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess};

use crate::json::tolerant::{
    Count, Json, Object, Objects, Text, Timestamp, Tolerant, deserialize_tolerantly,
};

/// One line, or one element of a document's `messages`: a header, a patch, a rewind or a message.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GeminiRecord<'a> {
    #[serde(borrow)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) directories: Texts<'a>,
    #[serde(borrow)]
    pub(super) messages: Objects<GeminiMessage<'a>>,
    #[serde(borrow, rename = "$set")]
    pub(super) patch: Object<Patch<'a>>,
    #[serde(borrow, rename = "$rewindTo")]
    pub(super) rewind_to: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) role: Text<'a>,
    pub(super) timestamp: Timestamp,
    #[serde(borrow)]
    pub(super) content: GeminiContent<'a>,
    #[serde(borrow)]
    pub(super) display_content: GeminiContent<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Objects<GeminiToolCall<'a>>,
    pub(super) tokens: Object<GeminiTokens>,
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
    pub(super) messages: Option<Objects<GeminiMessage<'a>>>,
}

/// A message of the user or of the model, or a note of the program.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct GeminiMessage<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow, rename = "type")]
    pub(super) role: Text<'a>,
    pub(super) timestamp: Timestamp,
    #[serde(borrow)]
    pub(super) content: GeminiContent<'a>,
    #[serde(borrow)]
    pub(super) display_content: GeminiContent<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Objects<GeminiToolCall<'a>>,
    pub(super) tokens: Object<GeminiTokens>,
    #[serde(borrow)]
    pub(super) model: Text<'a>,
}

impl<'a> GeminiRecord<'a> {
    /// The message it is, if it is neither a header nor a patch nor a rewind.
    pub(super) fn into_message(self) -> GeminiMessage<'a> {
        GeminiMessage {
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
pub(super) struct GeminiToolCall<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) args: Json,
    #[serde(borrow)]
    pub(super) result: GeminiContent<'a>,
    #[serde(borrow)]
    pub(super) status: Text<'a>,
    pub(super) timestamp: Timestamp,
    #[serde(borrow)]
    pub(super) result_display: Text<'a>,
}

/// What the vendor counted; `input` includes `cached`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GeminiTokens {
    pub(super) input: Count,
    pub(super) output: Count,
    pub(super) cached: Count,
    pub(super) thoughts: Count,
    pub(super) tool: Count,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    thought: Json,
    #[serde(borrow)]
    function_call: Object<GeminiFunctionCall<'a>>,
    #[serde(borrow)]
    function_response: Object<GeminiFunctionResponse<'a>>,
}

/// A call as the vendor's API writes it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GeminiFunctionCall<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) args: Json,
}

/// A result as the vendor's API writes it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GeminiFunctionResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) response: Json,
}

/// Content: a string, a part, or a list of both. Thoughts are left out.
#[derive(Default)]
pub(super) struct GeminiContent<'a> {
    texts: Vec<Cow<'a, str>>,
    pub(super) calls: Vec<GeminiFunctionCall<'a>>,
    pub(super) responses: Vec<GeminiFunctionResponse<'a>>,
}

impl<'de> Tolerant<'de> for GeminiContent<'de> {
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

impl<'a> GeminiContent<'a> {
    fn add(&mut self, part: GeminiPart<'a>) {
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
struct OnePart<'a>(GeminiPart<'a>);

impl<'de> Tolerant<'de> for OnePart<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(GeminiPart { text: Text(Some(text)), ..GeminiPart::default() })
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        Object::object(fields).map(|part: Object<GeminiPart<'de>>| Self(part.0.unwrap_or_default()))
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

deserialize_tolerantly!(GeminiContent<'a>, OnePart<'a>, Texts<'a>);
