//! What formats put together alike: texts that come in parts, pictures, and results from how they ended.

use std::borrow::Cow;

use deloop_types::{Outcome, ToolResult};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

/// Adds a line or lines to a text.
pub(crate) fn append(text: &mut String, more: Cow<'_, str>) {
    if text.is_empty() {
        *text = more.into_owned();
    } else {
        text.push('\n');
        text.push_str(&more);
    }
}

/// What stands in a text for a picture or other data, so that other data is other text.
pub(crate) fn stand_in(kind: &str, data: &str) -> String {
    format!("[{kind} {:016x}]", xxh3_64(data.as_bytes()))
}

/// The result of a call, from how it ended where the format says so, and what came back where the file holds it.
pub(crate) fn result(
    id: Option<String>,
    ended: Option<Outcome>,
    output: impl Into<Option<String>>,
) -> ToolResult {
    let (ok, outcome) = match ended {
        Some(Outcome::Ok) => (Some(true), None),
        Some(Outcome::Error) => (Some(false), None),
        other => (None, other),
    };
    {
        let mut made = ToolResult::default();
        made.id = id;
        made.ok = ok;
        made.outcome = outcome;
        made.output = output.into().map_or(Value::Null, Value::String);
        made
    }
}
