use serde_json::Value;

use super::scan::bytes_before;

/// Writes JSON with sorted keys and no spaces, so that equal values give equal text.
pub fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            out.push('{');
            let sorted = map.keys().zip(map.keys().skip(1)).all(|(a, b)| a < b);
            if sorted {
                write_entries(map.iter(), out);
            } else {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                write_entries(entries.into_iter(), out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::String(text) => write_string(text, out),
        Value::Number(number) => {
            use std::fmt::Write;
            let _ = write!(out, "{number}");
        }
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Null => out.push_str("null"),
    }
}

/// Writes some entries of an object as [`write_canonical`] writes the whole object.
pub(crate) fn write_canonical_entries(entries: &mut [(&String, &Value)], out: &mut String) {
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.push('{');
    write_entries(entries.iter().copied(), out);
    out.push('}');
}

fn write_entries<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>, out: &mut String) {
    for (i, (key, value)) in entries.enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(key, out);
        out.push(':');
        write_canonical(value, out);
    }
}

/// Writes a JSON string, copying parts that need no escape in one piece.
pub(crate) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    loop {
        let at = bytes_before(rest.as_bytes(), |b| (b < 0x20) | (b == b'"') | (b == b'\\'));
        out.push_str(&rest[..at]);
        let Some(byte) = rest.as_bytes().get(at) else { break };
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            control => {
                use std::fmt::Write;
                let _ = write!(out, "\\u{control:04x}");
            }
        }
        rest = &rest[at + 1..];
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn is_json_that_reads_back_the_same(text in ".{0,40}", key in "\\PC{0,8}") {
            let value = serde_json::json!({"b": [text, null, 1.5, -3], key: {"z": true, "a": false}});
            let mut out = String::new();
            write_canonical(&value, &mut out);
            proptest::prop_assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), value);
        }
    }

    #[test]
    fn writes_what_serde_json_writes() {
        let value =
            serde_json::json!({"a": "tab\t nl\n quote\" back\\ bell\u{7} é", "b": {"c": [1, 2.5, "x"]}});
        let mut out = String::new();
        write_canonical(&value, &mut out);
        assert_eq!(out, value.to_string());
    }
}
