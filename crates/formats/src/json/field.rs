//! Fields of varying shape: kept as the JSON they are, then read as what is wanted of them, so that a field of an
//! unexpected type is only missing and never costs the record around it.
//!
//! `RawValue` skips what it holds without recursion, so deep nesting in hostile input is harmless here.

use std::borrow::Cow;

use deloop_types::Millis;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::repair::repair;
use crate::json::tolerant::Object;

/// A field, whatever it holds; `None` when it is missing or null.
pub(crate) type Field<'a> = Option<&'a RawValue>;

/// A string.
pub(crate) fn text(field: Field<'_>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

    let raw = field?.get();
    if !raw.starts_with('"') {
        return None;
    }
    match serde_json::from_str::<JsonText<'_>>(raw) {
        Ok(JsonText(text)) => Some(text),
        Err(_) => serde_json::from_slice::<String>(&repair(raw.as_bytes()).bytes).ok().map(Cow::Owned),
    }
}

/// A string, empty when there is none.
pub(crate) fn string(field: Field<'_>) -> String {
    text(field).unwrap_or_default().into_owned()
}

/// The text of a message's content: a string, or parts, of which those that are text count, joined by newlines.
/// Thinking is no text.
pub(crate) fn content(field: Field<'_>) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Part<'a> {
        #[serde(borrow, rename = "type")]
        kind: Field<'a>,
        #[serde(borrow)]
        text: Field<'a>,
        #[serde(borrow)]
        refusal: Field<'a>,
    }

    fn part(raw: &RawValue) -> Option<Cow<'_, str>> {
        if let Some(text) = text(Some(raw)) {
            return Some(text);
        }
        let part: Part<'_> = object(Some(raw))?;
        let visible = text(part.kind).is_none_or(|kind| kind.ends_with("text") || kind == "refusal");
        visible.then(|| text(part.text.or(part.refusal))).flatten()
    }

    match text(field) {
        Some(text) => text.into_owned(),
        None => items(field).into_iter().filter_map(part).collect::<Vec<_>>().join("\n"),
    }
}

/// A name or id: a string that is not empty, or a number.
pub(crate) fn name(field: Field<'_>) -> Option<String> {
    let raw = field?.get();
    if raw.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return Some(raw.to_owned());
    }
    text(field).filter(|t| !t.is_empty()).map(Cow::into_owned)
}

/// An object, read into a struct of [`Field`]s.
pub(crate) fn object<'a, T: Deserialize<'a>>(field: Field<'a>) -> Option<T> {
    let raw = field?.get();
    if raw.starts_with('{') { serde_json::from_str(raw).ok() } else { None }
}

/// The elements of an array; none when it is something else.
pub(crate) fn items(field: Field<'_>) -> Vec<&RawValue> {
    let Some(raw) = field.map(RawValue::get).filter(|raw| raw.starts_with('[')) else { return Vec::new() };
    serde_json::from_str(raw).unwrap_or_default()
}

/// The elements of an array, each read into a struct of [`Field`]s; `None` for one that is no object.
pub(crate) fn list<'a, T: Deserialize<'a>>(field: Field<'a>) -> Vec<Option<T>> {
    let Some(raw) = field.map(RawValue::get).filter(|raw| raw.starts_with('[')) else { return Vec::new() };
    match serde_json::from_str::<Vec<Object<T>>>(raw) {
        Ok(elements) => elements.into_iter().map(|element| element.0).collect(),
        // One of them has a key twice; the others need not suffer.
        Err(_) => items(field).into_iter().map(|raw| object(Some(raw))).collect(),
    }
}

/// Any value; one that is nested too deep is the text that it is written as.
pub(crate) fn json(field: Field<'_>) -> Value {
    let Some(raw) = field.map(RawValue::get) else { return Value::Null };
    serde_json::from_str(raw)
        .or_else(|_| serde_json::from_slice(&repair(raw.as_bytes()).bytes))
        .unwrap_or_else(|_| Value::String(raw.to_owned()))
}

/// A count, 0 when there is none; some write it as a string.
pub(crate) fn count(field: Field<'_>) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast from f64 saturates")]
    number(field).map_or(0, |n| n as u64)
}

/// A number, or a string that is one.
pub(crate) fn number(field: Field<'_>) -> Option<f64> {
    let raw = field?.get();
    raw.trim_matches('"').parse().ok().filter(|n: &f64| n.is_finite())
}

/// A truth value.
pub(crate) fn flag(field: Field<'_>) -> Option<bool> {
    field?.get().parse().ok()
}

/// A time in seconds since 1970.
pub(crate) fn seconds(field: Field<'_>) -> Option<Millis> {
    #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
    number(field).map(|s| Millis((s * 1000.0) as i64))
}

/// A time as RFC 3339, or in seconds, milli-, micro- or nanoseconds since 1970: whichever puts it in our days.
pub(crate) fn time(field: Field<'_>) -> Option<Millis> {
    if let Some(text) = text(field)
        && !text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        return Millis::parse(&text).or_else(|| Millis::parse(&format!("{}Z", text.replacen(' ', "T", 1))));
    }
    let number = number(field)?;
    let per_milli = match number {
        n if n < 1e11 => 1e-3,
        n if n < 1e14 => 1.0,
        n if n < 1e17 => 1e3,
        _ => 1e6,
    };
    #[expect(clippy::cast_possible_truncation, reason = "a cast from f64 saturates")]
    Some(Millis((number / per_milli) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_field_of_another_type_is_missing() {
        let number = raw("12");
        assert_eq!((text(Some(&number)), count(Some(&number)), flag(Some(&number))), (None, 12, None));
        assert!(items(Some(&number)).is_empty());
        assert!(object::<Text>(Some(&raw("[1]"))).is_none());
        assert_eq!(name(Some(&number)).as_deref(), Some("12"));
        assert_eq!(count(Some(&raw("\"7\""))), 7);
        assert_eq!(count(Some(&raw("-7"))), 0);
        assert_eq!(flag(Some(&raw("true"))), Some(true));
    }

    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Text {
        a: u8,
    }

    #[test]
    fn what_is_no_object_is_none_in_a_list() {
        let read = |json: &str| {
            list::<Text>(Some(&raw(json))).into_iter().map(|t| t.map(|t| t.a)).collect::<Vec<_>>()
        };
        let mixed = r#"[{"a":1},2,-2,2.5,"x",null,true,[[3]],{}]"#;
        assert_eq!(read(mixed), [Some(1), None, None, None, None, None, None, None, Some(0)]);
        assert_eq!(read(r#"[{"a":1,"a":2},{"a":3}]"#), [None, Some(3)]);
        assert_eq!(read("{}"), []);
    }

    #[test]
    fn half_a_surrogate_pair_is_no_reason_to_lose_the_text() {
        assert_eq!(text(Some(&raw(r#""a\ud83d""#))).as_deref(), Some("a\u{fffd}"));
        assert_eq!(json(Some(&raw(r#"{"a":"\ud83d"}"#))), serde_json::json!({"a": "\u{fffd}"}));
    }

    #[test]
    fn times_of_all_kinds() {
        for json in [
            "1500000000",
            "1500000000000",
            "\"1500000000000000000\"",
            "\"2017-07-14T02:40:00Z\"",
            "1500000000.0",
            "\"2017-07-14 02:40:00\"",
        ] {
            assert_eq!(time(Some(&raw(json))), Some(Millis(1_500_000_000_000)), "{json}");
        }
        assert_eq!(time(Some(&raw("\"noon\""))), None);
        assert_eq!(time(Some(&raw("\"\""))), None);
    }

    #[test]
    fn deep_nesting_is_kept_as_text() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(json(Some(&raw(&deep))), Value::String(deep));
    }
}
