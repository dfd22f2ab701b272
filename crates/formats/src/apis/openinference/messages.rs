//! The messages that a span of a model carries in its attributes. OpenInference and OpenLLMetry number them
//! (`llm.output_messages.0.message.content`); OpenTelemetry's GenAI conventions write them as JSON.

use std::collections::BTreeMap;

use deloop_types::Call;
use serde_json::Value;

use super::span::Span;

/// One message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SpanMessage {
    pub(super) role: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// The call that it is the result of.
    pub(super) answers: Option<String>,
}

/// What the model was sent.
pub(super) fn inputs(span: &Span) -> Vec<SpanMessage> {
    let listed = numbered(span, "llm.input_messages.");
    let listed = if listed.is_empty() { written(span, "gen_ai.input.messages") } else { listed };
    if listed.is_empty() { numbered(span, "gen_ai.prompt.") } else { listed }
}

/// What the model answered.
pub(super) fn outputs(span: &Span) -> Vec<SpanMessage> {
    let listed = numbered(span, "llm.output_messages.");
    let listed = if listed.is_empty() { written(span, "gen_ai.output.messages") } else { listed };
    let listed = if listed.is_empty() { numbered(span, "gen_ai.completion.") } else { listed };
    if listed.is_empty() { span.text("output.value").map(raw).into_iter().collect() } else { listed }
}

#[derive(Default)]
struct SpanMessageParts {
    said: SpanMessage,
    contents: BTreeMap<usize, (String, String)>,
    calls: BTreeMap<usize, (Option<String>, String, Value)>,
}

fn numbered(span: &Span, prefix: &str) -> Vec<SpanMessage> {
    let mut messages: BTreeMap<usize, SpanMessageParts> = BTreeMap::new();
    for (key, value) in &span.attributes {
        let Some((index, path)) = key.strip_prefix(prefix).and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        let Ok(index) = index.parse() else { continue };
        messages.entry(index).or_default().put(path, value);
    }
    messages.into_values().map(SpanMessageParts::into_message).collect()
}

impl SpanMessageParts {
    /// Takes one attribute. Both conventions have the same path once their repeated nouns are left out.
    fn put(&mut self, path: &str, value: &Value) {
        let nouns = ["message", "message_content", "tool_call", "function"];
        let path: Vec<&str> = path.split('.').filter(|part| !nouns.contains(part)).take(4).collect();
        let text = || value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match path.as_slice() {
            ["role"] => self.said.role = text(),
            ["content"] => self.said.text = text(),
            ["tool_call_id"] => self.said.answers = Some(text()),
            ["function_call_name"] => self.call("0").1 = text(),
            ["function_call_arguments_json"] => self.call("0").2 = arguments(value),
            ["contents", index, "text"] => self.content(index).1 = text(),
            ["contents", index, "type"] => self.content(index).0 = text(),
            ["tool_calls", index, "id"] => self.call(index).0 = Some(text()),
            ["tool_calls", index, "name"] => self.call(index).1 = text(),
            ["tool_calls", index, "arguments"] => self.call(index).2 = arguments(value),
            _ => {}
        }
    }

    fn call(&mut self, index: &str) -> &mut (Option<String>, String, Value) {
        self.calls.entry(index.parse().unwrap_or(usize::MAX)).or_default()
    }

    fn content(&mut self, index: &str) -> &mut (String, String) {
        self.contents.entry(index.parse().unwrap_or(usize::MAX)).or_default()
    }

    fn into_message(mut self) -> SpanMessage {
        let visible = |(kind, _): &(String, String)| kind.is_empty() || kind.ends_with("text");
        let texts: Vec<String> = self.contents.into_values().filter(visible).map(|(_, text)| text).collect();
        if self.said.text.is_empty() {
            self.said.text = texts.join("\n");
        }
        let calls = self.calls.into_values().filter(|(_, tool, _)| !tool.is_empty());
        self.said.calls = calls
            .map(|(id, tool, args)| {
                let mut made = Call::new(tool, args);
                made.id = id;
                made
            })
            .collect();
        self.said
    }
}

/// Messages as the GenAI conventions write them: `[{"role": ..., "parts": [{"type": "text", "content": ...}, ...]}]`.
fn written(span: &Span, key: &str) -> Vec<SpanMessage> {
    let parsed;
    let list = match span.attributes.get(key) {
        Some(Value::String(text)) => {
            parsed = serde_json::from_str(text).unwrap_or(Value::Null);
            &parsed
        }
        Some(value) => value,
        None => return Vec::new(),
    };
    list.as_array().into_iter().flatten().flat_map(of_parts).collect()
}

/// One message, or one for each result in it.
fn of_parts(message: &Value) -> Vec<SpanMessage> {
    let role = message["role"].as_str().unwrap_or_default().to_owned();
    let mut said = SpanMessage { role, ..SpanMessage::default() };
    let mut texts = Vec::new();
    let mut results = Vec::new();
    for part in message["parts"].as_array().into_iter().flatten() {
        match part["type"].as_str().unwrap_or_default() {
            "text" => texts.extend(part["content"].as_str().or(part["text"].as_str())),
            "tool_call" => said.calls.push({
                let mut made = Call::new(
                    part["name"].as_str().unwrap_or_default().to_owned(),
                    arguments(&part["arguments"]),
                );
                made.id = part["id"].as_str().map(str::to_owned);
                made
            }),
            "tool_call_response" => results.push(SpanMessage {
                role: "tool".to_owned(),
                text: as_text(part.get("response").or(part.get("result")).unwrap_or(&Value::Null)),
                answers: part["id"].as_str().map(str::to_owned),
                ..SpanMessage::default()
            }),
            _ => {}
        }
    }
    texts.extend(message["content"].as_str());
    said.text = texts.join("\n");
    if !said.text.is_empty() || !said.calls.is_empty() || results.is_empty() {
        results.push(said);
    }
    results
}

/// The model's answer as it came: a message, a response with choices, or text.
fn raw(output: &str) -> SpanMessage {
    let value: Value = serde_json::from_str(output).unwrap_or(Value::Null);
    let message = value.pointer("/choices/0/message").unwrap_or(&value);
    if !message.is_object() {
        return SpanMessage {
            role: "assistant".to_owned(),
            text: output.to_owned(),
            ..SpanMessage::default()
        };
    }
    let calls = message["tool_calls"].as_array().into_iter().flatten().filter_map(|call| {
        Some({
            let mut made = Call::new(
                call["function"]["name"].as_str()?.to_owned(),
                arguments(&call["function"]["arguments"]),
            );
            made.id = call["id"].as_str().map(str::to_owned);
            made
        })
    });
    SpanMessage {
        role: "assistant".to_owned(),
        text: message["content"].as_str().unwrap_or_default().to_owned(),
        calls: calls.collect(),
        answers: None,
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Arguments are JSON, mostly in a string.
fn arguments(value: &Value) -> Value {
    match value {
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| value.clone()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn span(attributes: Value) -> Span {
        let Value::Object(attributes) = attributes else { unreachable!() };
        Span { attributes: attributes.into_iter().collect(), ..Span::default() }
    }

    fn expected() -> Vec<SpanMessage> {
        let call = |id: &str| Call::new("ls", json!({"a": 1})).with_id(id.to_owned());
        let calls = vec![call("c1"), call("c2")];
        vec![SpanMessage { role: "assistant".to_owned(), text: "Hm.".to_owned(), calls, answers: None }]
    }

    #[test]
    fn numbered_messages() {
        let openinference = span(json!({
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
            "llm.output_messages.0.message.contents.0.message_content.text": "secret",
            "llm.output_messages.0.message.contents.1.message_content.type": "text",
            "llm.output_messages.0.message.contents.1.message_content.text": "Hm.",
            "llm.output_messages.0.message.tool_calls.1.tool_call.id": "c2",
            "llm.output_messages.0.message.tool_calls.1.tool_call.function.name": "ls",
            "llm.output_messages.0.message.tool_calls.1.tool_call.function.arguments": "{\"a\":1}",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "ls",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{\"a\":1}",
            "llm.output_messages.x.message.content": "not numbered",
        }));
        assert_eq!(outputs(&openinference), expected());
        let openllmetry = span(json!({
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "Hm.",
            "gen_ai.completion.0.tool_calls.0.id": "c1",
            "gen_ai.completion.0.tool_calls.0.name": "ls",
            "gen_ai.completion.0.tool_calls.0.arguments": "{\"a\":1}",
            "gen_ai.completion.0.tool_calls.1.id": "c2",
            "gen_ai.completion.0.tool_calls.1.name": "ls",
            "gen_ai.completion.0.tool_calls.1.arguments": "{\"a\":1}",
        }));
        assert_eq!(outputs(&openllmetry), expected());
    }

    #[test]
    fn written_messages() {
        let message = json!([{"role": "assistant", "parts": [
            {"type": "reasoning", "content": "secret"},
            {"type": "text", "content": "Hm."},
            {"type": "tool_call", "id": "c1", "name": "ls", "arguments": {"a": 1}},
            {"type": "tool_call", "id": "c2", "name": "ls", "arguments": "{\"a\":1}"},
        ]}]);
        assert_eq!(outputs(&span(json!({"gen_ai.output.messages": message.to_string()}))), expected());
        assert_eq!(outputs(&span(json!({"gen_ai.output.messages": message}))), expected());
        let results = json!([{"role": "tool", "parts": [
            {"type": "tool_call_response", "id": "c1", "response": "x"},
            {"type": "tool_call_response", "id": "c2", "result": {"y": 1}},
        ]}]);
        let results = inputs(&span(json!({"gen_ai.input.messages": results})));
        let texts: Vec<_> =
            results.iter().map(|said| (said.answers.as_deref(), said.text.as_str())).collect();
        assert_eq!(texts, [(Some("c1"), "x"), (Some("c2"), "{\"y\":1}")]);
    }

    #[test]
    fn raw_answers() {
        assert_eq!(outputs(&span(json!({"output.value": "Hm."})))[0].text, "Hm.");
        let message = r#"{"choices":[{"message":{"content":"Hm.","tool_calls":[{"id":"c","function":{"name":"ls"}}]}}]}"#;
        let said = outputs(&span(json!({"output.value": message})));
        assert_eq!((said[0].text.as_str(), said[0].calls.len()), ("Hm.", 1));
    }
}
