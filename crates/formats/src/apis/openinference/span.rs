use std::collections::HashMap;

use deloop_types::{Call, Millis, Outcome, Usage};
use serde_json::Value;

use crate::apis::openai_messages::message::begins_with_error;

/// One span of a trace, with the attributes of OpenInference or of OpenTelemetry's GenAI conventions.
#[derive(Debug, Default)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    /// Nanoseconds since 1970.
    pub(crate) start: i64,
    /// Nanoseconds since 1970; not before `start`.
    pub(crate) end: i64,
    pub(crate) status: Status,
    /// What went wrong: the message of the exception or of the status.
    pub(crate) error: String,
    pub(crate) attributes: HashMap<String, Value>,
}

/// How a span ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Status {
    /// Nobody said.
    #[default]
    Unset,
    Ok,
    Error,
}

/// What a span is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Agent,
    Llm,
    Tool,
    Other,
}

impl Span {
    /// Returns whether an attribute is worth keeping: tools' schemas and the like only take room.
    pub(crate) fn wants(key: &str) -> bool {
        const WANTED: &[&str] = &[
            "openinference.span.kind",
            "traceloop.span.kind",
            "input.value",
            "output.value",
            "session.id",
            "agent.name",
            "tool.name",
            "tool.id",
            "tool_call.id",
            "smolagents.managed_agents.0.name",
            "smolagents.managed_agents.1.name",
        ];
        let prefixes = ["llm.output_messages.", "llm.input_messages.", "llm.token_count.", "llm.cost."];
        WANTED.contains(&key)
            || prefixes.iter().any(|prefix| key.starts_with(prefix))
            || key.ends_with("model_name")
            || key.starts_with("gen_ai.") && !key.starts_with("gen_ai.tool.definitions")
            || key.starts_with("traceloop.entity.")
    }

    pub(crate) fn kind(&self) -> SpanKind {
        let of_openinference = self.text("openinference.span.kind");
        let operation = self.text("gen_ai.operation.name");
        match of_openinference.or(operation).or(self.text("traceloop.span.kind")).unwrap_or_default() {
            "AGENT" | "invoke_agent" | "agent" => SpanKind::Agent,
            "LLM" | "chat" | "text_completion" | "generate_content" => SpanKind::Llm,
            "TOOL" | "execute_tool" | "tool" => SpanKind::Tool,
            "" if self.attributes.contains_key("gen_ai.request.model") => SpanKind::Llm,
            _ => SpanKind::Other,
        }
    }

    /// An attribute that is a string.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.attributes.get(key)?.as_str()
    }

    /// The first of some attributes, as text.
    pub(crate) fn first(&self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| match self.attributes.get(*key)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        })
    }

    /// When it began.
    pub(crate) fn began(&self) -> Option<Millis> {
        (self.start > 0).then_some(Millis(self.start / 1_000_000))
    }

    /// When it was over.
    pub(crate) fn ended(&self) -> Option<Millis> {
        (self.end > 0).then_some(Millis(self.end / 1_000_000))
    }

    /// What it came to, and how it ended.
    pub(crate) fn result(&self) -> (String, Option<Outcome>) {
        let output = self.first(&["output.value", "gen_ai.tool.call.result", "traceloop.entity.output"]);
        let output = output.unwrap_or_default();
        match self.status {
            Status::Error => {
                (if self.error.is_empty() { output } else { self.error.clone() }, Some(Outcome::Error))
            }
            Status::Ok => (output, Some(Outcome::Ok)),
            Status::Unset => {
                let failed = begins_with_error(&output);
                (output, failed.then_some(Outcome::Error))
            }
        }
    }

    /// The call that a tool's span is of. The arguments are null when they were not recorded.
    pub(crate) fn call(&self) -> Call {
        let id = self.first(&["gen_ai.tool.call.id", "tool_call.id", "tool.id"]).filter(|id| !id.is_empty());
        let tool = self.first(&["gen_ai.tool.name", "tool.name", "traceloop.entity.name"]);
        let args = self.first(&["gen_ai.tool.call.arguments", "input.value", "traceloop.entity.input"]);
        let mut made =
            Call::new(tool.unwrap_or_else(|| self.name.clone()), args.map_or(Value::Null, arguments));
        made.id = id;
        made
    }

    /// What a request to a model used; the tokens from the cache are part of those that were read.
    pub(crate) fn usage(&self) -> Usage {
        let count = |keys: &[&str]| self.first(keys).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cast from f64 saturates"
        )]
        let tokens = |keys: &[&str]| count(keys) as u64;
        let read =
            tokens(&["llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"]);
        let cached =
            tokens(&["llm.token_count.prompt_details.cache_read", "gen_ai.usage.cache_read.input_tokens"]);
        let written = tokens(&[
            "llm.token_count.prompt_details.cache_write",
            "gen_ai.usage.cache_creation.input_tokens",
        ]);
        let mut made = Usage::default();
        made.model = self.first(&["llm.model_name", "gen_ai.response.model", "gen_ai.request.model"]);
        made.input_tokens = read.saturating_sub(cached).saturating_sub(written);
        made.output_tokens = tokens(&[
            "llm.token_count.completion",
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
        ]);
        made.cache_read_tokens = cached;
        made.cache_write_tokens = written;
        made.cost_usd = Some(count(&["llm.cost.total"])).filter(|cost| *cost > 0.0);
        made
    }
}

/// A tool's arguments. smolagents wraps them.
fn arguments(text: String) -> Value {
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return Value::String(text) };
    let Some(object) = value.as_object_mut() else { return value };
    if !object.contains_key("sanitize_inputs_outputs") {
        return value;
    }
    let named = object.remove("kwargs").unwrap_or_default();
    let listed = object.remove("args").unwrap_or_default();
    match listed.as_array().is_some_and(|args| !args.is_empty()) {
        true => listed,
        false => named,
    }
}

/// Nanoseconds since 1970 from RFC 3339.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    let text = if text.ends_with('Z') || text.contains('+') { text.to_owned() } else { format!("{text}Z") };
    let millis = Millis::parse(&text)?.0;
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).chain(std::iter::repeat(b'0'));
    let below = digits.skip(3).take(6).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    millis.checked_mul(1_000_000)?.checked_add(below)
}

/// Nanoseconds from a duration as ISO 8601 writes it: `PT1M14.358741S`.
pub(crate) fn duration(text: &str) -> Option<i64> {
    let mut rest = text.strip_prefix("PT")?;
    let mut seconds = 0.0;
    while let Some(at) = rest.find(['H', 'M', 'S']) {
        let (number, unit) = rest.split_at(at);
        let number: f64 = number.parse().ok()?;
        seconds += number
            * match unit.as_bytes().first() {
                Some(b'H') => 3600.0,
                Some(b'M') => 60.0,
                _ => 1.0,
            };
        rest = unit.get(1..)?;
    }
    #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
    rest.is_empty().then_some((seconds * 1e9) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(nanoseconds("1970-01-01T00:00:01.002003Z"), Some(1_002_003_000));
        assert_eq!(nanoseconds("1970-01-01T00:00:01.5"), Some(1_500_000_000));
        assert_eq!(nanoseconds("1970-01-01T00:00:01"), Some(1_000_000_000));
        assert_eq!(nanoseconds("noon"), None);
        assert_eq!(duration("PT1M14.5S"), Some(74_500_000_000));
        assert_eq!(duration("PT1H"), Some(3_600_000_000_000));
        assert_eq!(duration("PT"), Some(0));
        assert_eq!(duration("PTxS"), None);
        assert_eq!(duration("1 s"), None);
    }

    #[test]
    fn arguments_of_smolagents_are_unwrapped() {
        let read = |text: &str| arguments(text.to_owned()).to_string();
        assert_eq!(read(r#"{"args":[],"sanitize_inputs_outputs":true,"kwargs":{"a":1}}"#), r#"{"a":1}"#);
        assert_eq!(read(r#"{"args":["x"],"sanitize_inputs_outputs":true,"kwargs":{}}"#), r#"["x"]"#);
        assert_eq!(read(r#"{"kwargs":1}"#), r#"{"kwargs":1}"#);
        assert_eq!(read("ls -a"), "\"ls -a\"");
    }
}
