//! A call, in each of the ways in which it is written.

use deloop_types::Call;
use serde_json::Value;

use crate::json::tolerant;

use super::record::Payload;

/// The code of a code mode's call.
pub(super) fn code<'a>(item: &'a Payload<'_>) -> Option<&'a str> {
    let is_exec = item.kind.get() == Some("custom_tool_call")
        && item.name.get() == Some("exec")
        && matches!(item.namespace.get(), None | Some("functions"));
    item.input.as_str().filter(|_| is_exec)
}

/// The call that an item is.
pub(super) fn call(item: Payload<'_>) -> Call {
    let tool = match item.kind.as_str() {
        "function_call" | "custom_tool_call" => item.name.as_str(),
        kind => kind.strip_suffix("_call").unwrap_or(kind),
    };
    let tool = match item.namespace.get() {
        None | Some("functions") => tool.to_owned(),
        Some(namespace) => format!("{namespace}.{tool}"),
    };
    let args = [item.arguments, item.input, item.action].into_iter().find(|args| !args.is_null());
    let mut made = Call::new(tool, args.map(parsed).unwrap_or_default());
    made.id = item.call_id.take().or_else(|| item.id.take()).map(Into::into);
    made
}

/// Arguments are JSON in a string.
fn parsed(args: Value) -> Value {
    match args {
        Value::String(text) => match tolerant::read(text.as_bytes()) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => json,
            _ => Value::String(text),
        },
        args => args,
    }
}
