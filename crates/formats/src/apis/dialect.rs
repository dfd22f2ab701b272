//! Which vendor's dialect a file of messages is in. They look alike: a list of objects with roles.

use serde_json::Value;

use crate::json::document;

/// The API whose messages a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI's Chat Completions, which many speak.
    Chat,
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
}

/// The dialect of a file that begins with these bytes, if they are messages at all. A conversation without any tool
/// may be of more than one; it is taken for Chat Completions.
pub(crate) fn of(head: &[u8]) -> Option<Dialect> {
    let value = document::head(head)?;
    let MessageList { document, key, list } = messages(&value, 0)?;
    let first = list.first()?;
    if !is_message(first) || is_of_an_agent(&value, first) {
        return None;
    }
    let items = matches!(key, "input" | "output") && !list.iter().any(uses_chat_tools);
    if items || list.iter().any(is_item) {
        return Some(Dialect::Responses);
    }
    if list.iter().any(has_blocks) || is_anthropic(document) && !list.iter().any(is_chat_only) {
        return Some(Dialect::Messages);
    }
    Some(Dialect::Chat)
}

/// Whether an agent with a format of its own wrote this: mini-SWE-agent, or Cline and its kin, whose first message
/// has the task in a tag.
fn is_of_an_agent(value: &Value, first: &Value) -> bool {
    let tagged = |text: &str| {
        let text = text.trim_start();
        text.starts_with("<task>")
            || text.starts_with("<user_message>")
            || text.contains("<environment_details>")
    };
    let task = first["content"].as_str().is_some_and(tagged)
        || parts(first).any(|part| part["text"].as_str().is_some_and(tagged));
    value["info"].get("mini_version").is_some()
        || value.is_array() && first["role"] == "user" && task
        || value.get("sessionId").is_some() && value.get("version").is_some()
}

/// A list of messages, the object that it stands in, and under which key.
struct MessageList<'a> {
    document: &'a Value,
    key: &'a str,
    list: &'a Vec<Value>,
}

/// The first list of messages in a value.
fn messages(value: &Value, depth: u8) -> Option<MessageList<'_>> {
    if depth > 3 {
        return None;
    }
    match value {
        Value::Array(list) if is_message(list.first()?) => {
            Some(MessageList { document: &Value::Null, key: "", list })
        }
        Value::Array(list) => messages(list.first()?, depth + 1),
        Value::Object(object) => {
            let list = |key| Some(MessageList { document: value, key, list: object.get(key)?.as_array()? });
            let found = ["messages", "traj", "input", "output"].into_iter().find_map(list);
            found.or_else(|| messages(object.get("request")?, depth + 1))
        }
        _ => None,
    }
}

/// Returns whether a value is a message or an item; of one that is cut off, only the role may be there.
fn is_message(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    let role = value["role"].as_str().unwrap_or_default();
    let known = matches!(role, "system" | "developer" | "user" | "assistant" | "tool" | "function");
    let says = ["content", "tool_calls", "function_call"].iter().any(|key| object.contains_key(*key));
    is_item(value) || known && (says || object.len() == 1)
}

/// Returns whether a value can only be an item of the Responses API.
fn is_item(value: &Value) -> bool {
    let kind = value["type"].as_str().unwrap_or_default();
    let call = kind.ends_with("_call") || kind.ends_with("_call_output");
    let names_it = value.get("call_id").is_some() || value.get("id").is_some();
    call && names_it
        || kind == "reasoning" && value.get("summary").is_some()
        || parts(value).any(|part| matches!(part["type"].as_str(), Some("input_text" | "output_text")))
}

/// Returns whether a message has content that only Anthropic's have.
fn has_blocks(message: &Value) -> bool {
    let kinds = ["tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"];
    parts(message).any(|part| part["type"].as_str().is_some_and(|kind| kinds.contains(&kind)))
}

/// Returns whether a message is one that Anthropic's API does not know.
fn is_chat_only(message: &Value) -> bool {
    !matches!(message["role"].as_str(), Some("user" | "assistant")) || uses_chat_tools(message)
}

/// Returns whether a message calls a tool, or answers a call, as only Chat Completions does.
fn uses_chat_tools(message: &Value) -> bool {
    matches!(message["role"].as_str(), Some("tool" | "function"))
        || message.get("tool_calls").is_some()
        || message.get("function_call").is_some()
}

/// Returns whether a request is to Anthropic's API.
fn is_anthropic(document: &Value) -> bool {
    let claude = document["model"].as_str().is_some_and(|model| model.starts_with("claude"));
    document.get("system").is_some()
        || document.get("anthropic_version").is_some()
        || document.get("stop_reason").is_some()
        || claude && document.get("max_tokens").is_some()
}

fn parts(message: &Value) -> impl Iterator<Item = &Value> {
    message["content"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_by_what_only_it_has() {
        for (head, dialect) in [
            (r#"[{"role":"user","content":"hi"}]"#, Some(Dialect::Chat)),
            (r#"{"messages":[{"role":"system","content":"cut he"#, Some(Dialect::Chat)),
            (r#"[{"task_id":0,"traj":[{"role":"user","content":"hi"}]}]"#, Some(Dialect::Chat)),
            (r#"[[{"role":"user","content":"hi"}]]"#, Some(Dialect::Chat)),
            (r#"{"request":{"messages":[{"role":"user","content":"hi"}]}}"#, Some(Dialect::Chat)),
            (
                r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]"#,
                Some(Dialect::Messages),
            ),
            (r#"{"system":"x","messages":[{"role":"user","content":"hi"}]}"#, Some(Dialect::Messages)),
            (
                r#"{"model":"claude-x","max_tokens":9,"messages":[{"role":"system","content":"hi"}]}"#,
                Some(Dialect::Chat),
            ),
            (
                r#"[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c"}]"#,
                Some(Dialect::Responses),
            ),
            (r#"{"input":"hi","output":[{"type":"reasoning","summary":[]}]}"#, Some(Dialect::Responses)),
            (
                r#"[{"type":"message","role":"user","content":[{"type":"input_text"}]}]"#,
                Some(Dialect::Responses),
            ),
            (r#"{"request":{"input":[{"role":"user","content":"hi"}]}}"#, Some(Dialect::Responses)),
            (r#"{"input":[{"role":"assistant","content":"hi","tool_calls":[]}]}"#, Some(Dialect::Chat)),
            (r#"{"input":"hi","output":"ho"}"#, None),
            (r#"[{"role":"user","content":[{"type":"text","text":"<task>\nhi\n</task>"}]}]"#, None),
            (r#"{"version":1,"sessionId":"s","messages":[{"role":"user","content":"hi"}]}"#, None),
            (r#"{"messages":[{"type":"user","content":"hi"}]}"#, None),
            (r#"{"messages":[{"info":{"role":"user"},"parts":[]}]}"#, None),
            (r#"{"messages":[{"role":"user","parts":[],"id":"m"}]}"#, None),
            (r#"{"type":"message","role":"user","content":"hi"}"#, None),
            (r#"{"type":"turn","session":"s","text":"hi"}"#, None),
            (r#"{"name":"shop","version":"1.0.0"}"#, None),
            ("[]", None),
            ("nonsense", None),
        ] {
            assert_eq!(of(head.as_bytes()), dialect, "{head}");
        }
    }
}
