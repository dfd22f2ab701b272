use std::borrow::Cow;

use deloop_types::{Call, Outcome};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::field::{self, Field};

/// One message of a Chat Completions conversation, and what people add to it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChatMessage<'a> {
    #[serde(borrow)]
    role: Field<'a>,
    #[serde(borrow)]
    content: Field<'a>,
    #[serde(borrow)]
    refusal: Field<'a>,
    #[serde(borrow)]
    tool_calls: Field<'a>,
    #[serde(borrow)]
    function_call: Field<'a>,
    #[serde(borrow)]
    tool_call_id: Field<'a>,
    #[serde(borrow)]
    is_error: Field<'a>,
    #[serde(borrow)]
    timestamp: Field<'a>,
    #[serde(borrow)]
    created_at: Field<'a>,
    #[serde(borrow)]
    pub(crate) model: Field<'a>,
    #[serde(borrow)]
    pub(crate) usage: Field<'a>,
    /// What mini-SWE-agent knows beside the message.
    #[serde(borrow)]
    pub(crate) extra: Field<'a>,
}

impl<'a> ChatMessage<'a> {
    /// Reads a message; `None` when it is no object.
    pub(crate) fn read(message: &'a RawValue) -> Option<Self> {
        field::object(Some(message))
    }

    /// When, where somebody noted it.
    pub(crate) fn time(&self) -> Field<'a> {
        self.timestamp.or(self.created_at)
    }

    /// Who speaks.
    pub(crate) fn role(&self) -> Cow<'a, str> {
        field::text(self.role).unwrap_or_default()
    }

    /// What it says, without the thinking that some models write before it.
    pub(crate) fn said(&self) -> String {
        let text = field::content(self.content);
        let text = if text.is_empty() { field::content(self.refusal) } else { text };
        without_thinking(text)
    }

    /// The calls of a model's message.
    pub(crate) fn calls(&self) -> Vec<Call> {
        let calls = field::items(self.tool_calls).into_iter().filter_map(call);
        let old = self.function_call.and_then(|raw| Function::read(raw)?.call(None));
        calls.chain(old).collect()
    }

    /// The id of the call that a tool's message answers.
    pub(crate) fn answers(&self) -> Option<String> {
        field::name(self.tool_call_id)
    }

    /// Returns whether a tool's message says that the call failed.
    pub(crate) fn outcome(&self, output: &str) -> Option<Outcome> {
        match field::flag(self.is_error) {
            Some(true) => Some(Outcome::Error),
            Some(false) => Some(Outcome::Ok),
            None => begins_with_error(output).then_some(Outcome::Error),
        }
    }
}

/// Returns whether a tool's output begins with the word "Error".
pub(crate) fn begins_with_error(output: &str) -> bool {
    output.trim_start().strip_prefix("Error").is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Arguments as models write them: JSON in a string. What is not JSON stays a string.
pub(crate) fn arguments(field: Field<'_>) -> Value {
    let Some(text) = field::text(field) else { return field::json(field) };
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ChatToolCall<'a> {
    #[serde(borrow)]
    id: Field<'a>,
    #[serde(borrow)]
    function: Field<'a>,
    #[serde(borrow)]
    custom: Field<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Field<'a>,
    #[serde(borrow)]
    arguments: Field<'a>,
    #[serde(borrow)]
    args: Field<'a>,
    #[serde(borrow)]
    input: Field<'a>,
}

/// A call names its tool under `function`, under `custom`, or (in the files of some frameworks) beside its id.
fn call(raw: &RawValue) -> Option<Call> {
    let call: ChatToolCall<'_> = field::object(Some(raw))?;
    Function::read(call.function.or(call.custom).unwrap_or(raw))?.call(field::name(call.id))
}

impl<'a> Function<'a> {
    fn read(raw: &'a RawValue) -> Option<Self> {
        field::object(Some(raw))
    }

    fn call(&self, id: Option<String>) -> Option<Call> {
        let args = self.arguments.or(self.args).or(self.input);
        Some({
            let mut made = Call::new(field::name(self.name)?, arguments(args));
            made.id = id;
            made
        })
    }
}

/// Open models write their thinking into the text.
fn without_thinking(text: String) -> String {
    let Some(rest) = text.trim_start().strip_prefix("<think>") else { return text };
    rest.split_once("</think>").map(|(_, said)| said.trim_start().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn calls(json: &str) -> Vec<Call> {
        serde_json::from_str::<ChatMessage<'_>>(json).unwrap().calls()
    }

    #[test]
    fn calls_of_all_ages() {
        let call = |id: Option<&str>, args| {
            vec![{
                let mut made = Call::new("ls", args);
                made.id = id.map(str::to_owned);
                made
            }]
        };
        let json = r#"{"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\"a\":1}"}}]}"#;
        assert_eq!(calls(json), call(Some("c1"), json!({"a": 1})));
        assert_eq!(calls(r#"{"function_call":{"name":"ls","arguments":""}}"#), call(None, json!({})));
        assert_eq!(
            calls(r#"{"tool_calls":[{"id":7,"name":"ls","args":{"a":1}}]}"#),
            call(Some("7"), json!({"a": 1}))
        );
        assert_eq!(
            calls(r#"{"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"ls","input":"-a"}},{},3]}"#),
            call(Some("c1"), json!("-a"))
        );
        assert_eq!(calls(r#"{"tool_calls":null,"function_call":3}"#), []);
    }

    #[test]
    fn thinking_is_not_said() {
        let said = |json: &str| serde_json::from_str::<ChatMessage<'_>>(json).unwrap().said();
        assert_eq!(said(r#"{"content":"<think>hm</think>\n\nDone."}"#), "Done.");
        assert_eq!(said(r#"{"content":"<think>for ever"}"#), "");
        assert_eq!(
            said(r#"{"content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"Done."}]}"#),
            "Done."
        );
        assert_eq!(said(r#"{"content":null,"refusal":"I cannot."}"#), "I cannot.");
    }

    #[test]
    fn errors_begin_with_the_word() {
        assert!(begins_with_error("Error: no seats"));
        assert!(begins_with_error("Error"));
        assert!(!begins_with_error("ErrorHandler.java"));
        assert!(!begins_with_error("No error"));
    }
}
