//! Looks into JSON that may be cut short, as the first bytes of a file are.

use crate::json::scan::{after_nested, after_string};

/// The fields of an object, each key with the bytes of its value; the last value may be cut short. Nothing if the
/// bytes do not begin with an object.
pub(crate) fn fields(json: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = json.trim_ascii_start().strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || {
        let (key, after_key) = value(rest.trim_ascii_start())?;
        let key = key.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let (value, after_value) =
            value(after_key.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start())?;
        let after_value = after_value.trim_ascii_start();
        rest = after_value.strip_prefix(b",").unwrap_or_default();
        Some((key, value))
    })
}

/// The elements of an array; the last may be cut short. Nothing if the bytes do not begin with an array.
pub(crate) fn elements(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = json.trim_ascii_start().strip_prefix(b"[").unwrap_or_default();
    std::iter::from_fn(move || {
        let (value, after) = value(rest.trim_ascii_start())?;
        rest = after.trim_ascii_start().strip_prefix(b",").unwrap_or_default();
        Some(value)
    })
}

/// The value of this field.
pub(crate) fn field<'a>(json: &'a [u8], name: &str) -> Option<&'a [u8]> {
    fields(json).find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value)
}

/// Returns whether the object has all these fields.
pub(crate) fn has(json: &[u8], names: &[&str]) -> bool {
    names.iter().all(|name| field(json, name).is_some())
}

/// The text of this field, if it is a plain string without escapes.
pub(crate) fn text<'a>(json: &'a [u8], name: &str) -> Option<&'a str> {
    let inside = field(json, name)?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    std::str::from_utf8(inside).ok().filter(|text| !text.contains('\\'))
}

/// The first line that is not blank.
pub(crate) fn first_line(head: &[u8]) -> &[u8] {
    head.split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
}

/// Cuts one value off the front; `None` at the end of the bytes or of the object or array.
pub(crate) fn value(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = match json.first()? {
        b'"' => after_string(&json[1..]),
        b'{' | b'[' => after_nested(json, 0).unwrap_or_default(),
        b'}' | b']' | b',' | b':' => return None,
        _ => {
            let end = json.iter().position(|b| b",]}:".contains(b) || b.is_ascii_whitespace());
            &json[end.unwrap_or(json.len())..]
        }
    };
    Some(json.split_at(json.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_elements_of_whole_and_of_cut_values() {
        let json = br#" {"a" : 1, "b":{"c":["}\"",2]},"d":"x" , "e":[1,"cu"#;
        let keys: Vec<&[u8]> = fields(json).map(|(key, _)| key).collect();
        assert_eq!(keys, [b"a", b"b", b"d", b"e"]);
        assert!(has(json, &["a", "e"]) && !has(json, &["c"]));
        assert_eq!(text(json, "d"), Some("x"));
        let list: Vec<&[u8]> = elements(br#"[1, {"a":[]},"b"]"#).collect();
        assert_eq!(list, [&b"1"[..], br#"{"a":[]}"#, br#""b""#]);
    }

    #[test]
    fn other_things_have_neither() {
        for json in
            [&b""[..], b"{", b"[", b"{}", b"[]", b"7", b"\"a\"", b"{1:2}", b"{\"a\"}", b"]", b"{,", b"[,"]
        {
            assert_eq!((fields(json).count(), elements(json).count().min(1)), (0, 0), "{json:?}");
        }
        assert_eq!(first_line(b"\n \n {} \nx"), b"{}");
    }
}
