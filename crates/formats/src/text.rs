//! Handles texts that come in parts.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

/// Appends text on a new line.
pub(crate) fn append(text: &mut String, more: Cow<'_, str>) {
    if text.is_empty() {
        *text = more.into_owned();
    } else {
        text.push('\n');
        text.push_str(&more);
    }
}

/// Returns the placeholder for a picture or other data. Different data gets a different placeholder.
pub(crate) fn stand_in(kind: &str, data: &str) -> String {
    format!("[{kind} {:016x}]", xxh3_64(data.as_bytes()))
}
