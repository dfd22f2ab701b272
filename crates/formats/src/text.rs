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

/// Returns whether a text is nothing but an element of this name, or several: `<name>…</name>`.
pub(crate) fn is_element(text: &str, name: &str) -> bool {
    let inside = |tag: &str| tag.strip_suffix('>').is_some_and(|tag| tag == name);
    let text = text.trim();
    let open = text.strip_prefix('<').and_then(|rest| rest.get(..=name.len()));
    let close = text.rfind("</").and_then(|at| text.get(at + 2..));
    open.is_some_and(inside) && close.is_some_and(inside)
}

/// Returns the placeholder for a picture or other data. Different data gets a different placeholder.
pub(crate) fn stand_in(kind: &str, data: &str) -> String {
    format!("[{kind} {:016x}]", xxh3_64(data.as_bytes()))
}
