//! Events of both generations: V0 has `action` or `observation` by name, V1 has `kind`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::MapAccess;

use crate::json::tolerant::{
    Count, Flag, Json, Number, Object, Prose, Text, Timestamp, Tolerant, deserialize_tolerantly,
};

/// One event.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenhandsEvent<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    pub(super) timestamp: Timestamp,
    #[serde(borrow)]
    pub(super) source: Text<'a>,

    /// V0: the name of the action. V1: its fields.
    pub(super) action: Json,
    /// V0: the name of the observation. V1: its fields.
    #[serde(borrow)]
    pub(super) observation: Observation<'a>,

    // V0.
    pub(super) args: Json,
    #[serde(borrow)]
    pub(super) cause: Text<'a>,
    #[serde(borrow)]
    pub(super) content: Prose<'a>,
    #[serde(borrow)]
    pub(super) extras: Object<Extras<'a>>,
    #[serde(borrow)]
    pub(super) tool_call_metadata: Object<ToolCallMetadata<'a>>,
    #[serde(borrow)]
    pub(super) llm_metrics: Object<OpenhandsMetrics<'a>>,

    // V1.
    #[serde(borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) thought: Prose<'a>,
    #[serde(borrow)]
    pub(super) tool_name: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_call_id: Text<'a>,
    pub(super) tool_call: Object<OpenhandsToolCall>,
    #[serde(borrow)]
    pub(super) llm_response_id: Text<'a>,
    #[serde(borrow)]
    pub(super) llm_message: Object<OpenhandsMessage<'a>>,
    #[serde(borrow)]
    pub(super) sender: Text<'a>,
    #[serde(borrow)]
    pub(super) rejection_reason: Text<'a>,
    #[serde(borrow)]
    pub(super) error: Text<'a>,
    #[serde(borrow)]
    pub(super) value: Object<OpenhandsState<'a>>,
}

/// An observation: its name (V0) or its fields (V1).
#[derive(Default)]
pub(super) struct Observation<'a> {
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) fields: Option<Fields<'a>>,
}

impl<'de> Tolerant<'de> for Observation<'de> {
    fn text(text: Cow<'de, str>) -> Self {
        Self { name: Some(text), fields: None }
    }

    fn object<A: MapAccess<'de>>(fields: A) -> Result<Self, A::Error> {
        Object::object(fields).map(|fields: Object<Fields<'de>>| Self { name: None, fields: fields.0 })
    }
}

deserialize_tolerantly!(Observation<'a>);

/// What a V1 tool came back with.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Fields<'a> {
    #[serde(borrow)]
    pub(super) content: Prose<'a>,
    pub(super) is_error: Flag,
    pub(super) exit_code: Number,
    pub(super) timeout: Flag,
    #[serde(borrow)]
    pub(super) metadata: Object<Terminal<'a>>,
}

/// What a V0 observation says beside its content.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Extras<'a> {
    #[serde(borrow)]
    pub(super) metadata: Object<Terminal<'a>>,
    pub(super) exit_code: Number,
    pub(super) error: Flag,
}

/// What the terminal says about a command.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Terminal<'a> {
    pub(super) exit_code: Number,
    #[serde(borrow)]
    pub(super) working_dir: Text<'a>,
    #[serde(borrow)]
    pub(super) py_interpreter_path: Text<'a>,
    #[serde(borrow)]
    pub(super) prefix: Text<'a>,
    #[serde(borrow)]
    pub(super) suffix: Text<'a>,
}

impl Terminal<'_> {
    /// What the model saw of a command's output.
    pub(super) fn shown(&self, output: &str) -> String {
        let mut shown = format!("{}{output}{}", self.prefix.as_str(), self.suffix.as_str());
        if let Some(folder) = self.working_dir.get() {
            shown.push_str(&format!("\n[Current working directory: {folder}]"));
        }
        if let Some(python) = self.py_interpreter_path.get() {
            shown.push_str(&format!("\n[Python interpreter: {python}]"));
        }
        if let Some(code) = self.exit_code.0.filter(|code| *code != -1.0) {
            shown.push_str(&format!("\n[Command finished with exit code {code}]"));
        }
        shown
    }
}

/// Which call of which response a V0 action is.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolCallMetadata<'a> {
    #[serde(borrow)]
    pub(super) function_name: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_call_id: Text<'a>,
    #[serde(borrow)]
    pub(super) model_response: Object<OpenhandsResponse<'a>>,
    pub(super) total_calls_in_response: Count,
}

/// The response of the model that an action came from.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenhandsResponse<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
}

/// A V1 call as the model wrote it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenhandsToolCall {
    pub(super) arguments: Json,
}

/// A V1 message.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenhandsMessage<'a> {
    #[serde(borrow)]
    pub(super) content: Prose<'a>,
}

/// A part of a V1 conversation's state: its statistics, alone or in all of it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenhandsState<'a> {
    #[serde(borrow)]
    pub(super) usage_to_metrics: Object<BTreeMap<String, Object<OpenhandsMetrics<'a>>>>,
    #[serde(borrow)]
    pub(super) stats: Object<OpenhandsStats<'a>>,
}

/// What each model was used for.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenhandsStats<'a> {
    #[serde(borrow)]
    pub(super) usage_to_metrics: Object<BTreeMap<String, Object<OpenhandsMetrics<'a>>>>,
}

/// What was used since the conversation began.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenhandsMetrics<'a> {
    pub(super) accumulated_cost: Number,
    #[serde(borrow)]
    pub(super) accumulated_token_usage: Object<OpenhandsTokens<'a>>,
}

/// Tokens; those of the prompt include those of the cache.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenhandsTokens<'a> {
    #[serde(borrow)]
    pub(super) model: Text<'a>,
    pub(super) prompt_tokens: Count,
    pub(super) completion_tokens: Count,
    pub(super) cache_read_tokens: Count,
    pub(super) cache_write_tokens: Count,
}
