//! Merges configuration documents and checks them against a schema.

use deloop_detect::clean;
use serde_json::Value;

/// Why a document isn't a valid profile or configuration. The message names the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError(pub String);

impl std::fmt::Display for DocumentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DocumentError {}

/// Merges `over` into `base`: tables key by key; everything else is replaced.
pub fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// Returns an error about the first unknown key of a document, with the nearest known key.
#[must_use]
pub fn unknown_key(document: &Value, schema: &Value) -> Option<DocumentError> {
    walk(document, schema, schema, &mut Vec::new())
}

fn walk(document: &Value, schema: &Value, root: &Value, path: &mut Vec<String>) -> Option<DocumentError> {
    let schema = resolve(schema, root);
    match document {
        Value::Object(map) => {
            let known = schema.get("properties").and_then(Value::as_object);
            let others = schema.get("additionalProperties");
            for (key, value) in map {
                path.push(key.clone());
                let found = match (known.and_then(|k| k.get(key)), others) {
                    (Some(inner), _) => walk(value, inner, root, path),
                    (None, Some(inner @ Value::Object(_))) => walk(value, inner, root, path),
                    (None, Some(Value::Bool(true))) => None,
                    (None, Some(Value::Bool(false))) => Some(no_such_key(key, path, known)),
                    (None, _) if known.is_some() => Some(no_such_key(key, path, known)),
                    (None, _) => None,
                };
                if found.is_some() {
                    return found;
                }
                path.pop();
            }
            None
        }
        Value::Array(items) => {
            let inner = schema.get("items")?;
            items.iter().find_map(|item| walk(item, inner, root, path))
        }
        _ => None,
    }
}

/// Returns an error about the first value of a document that isn't what the schema asks for. It names the key, what was
/// expected and what was found. Keys that the schema doesn't know are skipped.
///
/// ```
/// use deloop_policy::{Registry, config_schema, wrong_value};
/// # #[cfg(feature = "schema")] {
/// let document = serde_json::json!({"ceilings": {"usd": "fifty"}});
/// let error = wrong_value(&document, &config_schema(&Registry::default())).unwrap();
/// assert_eq!(error.0, "`ceilings.usd`: expected a number, found \"fifty\"; write a number without quotes");
/// # }
/// ```
#[must_use]
pub fn wrong_value(document: &Value, schema: &Value) -> Option<DocumentError> {
    mismatch(document, schema, schema, &mut Vec::new())
}

fn mismatch(value: &Value, schema: &Value, root: &Value, path: &mut Vec<String>) -> Option<DocumentError> {
    let schema = resolve(schema, root);
    if value.is_null() {
        return None;
    }
    if let Some(words) = words(schema) {
        let found = value.as_str().is_some_and(|word| words.contains(&word));
        let known = words.join("`, `");
        let what = match value {
            Value::String(word) => {
                format!("unknown variant `{}`, expected one of `{known}`", clean(word, QUOTED))
            }
            other => format!("expected one of `{known}`, found {}", quoted(other)),
        };
        return (!found).then(|| at(path, &what));
    }
    let types = schema
        .get("type")
        .map(|types| types.as_array().map_or_else(|| vec![types], |all| all.iter().collect()));
    let types: Vec<&str> = types.into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some((_, article, fix)) = TYPES
        .iter()
        .find(|(name, ..)| types.contains(name))
        .filter(|_| !types.iter().any(|name| is(value, name)))
    {
        return Some(at(path, &format!("expected {article}, found {}; {fix}", quoted(value))));
    }
    if value.as_f64().zip(schema.get("minimum").and_then(Value::as_f64)).is_some_and(|(n, least)| n < least) {
        let least = &schema["minimum"];
        return Some(at(path, &format!("expected {least} or more, found {}", quoted(value))));
    }
    let mut inner = |name: String, value: &Value, schema: &Value| {
        path.push(name);
        let found = mismatch(value, schema, root, path);
        path.pop();
        found
    };
    match value {
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let known = schema.get("properties").and_then(|known| known.get(key));
            let others = schema.get("additionalProperties").filter(|others| others.is_object());
            inner(key.clone(), value, known.or(others)?)
        }),
        Value::Array(items) => {
            let schema = schema.get("items")?;
            items.iter().enumerate().find_map(|(n, value)| inner(format!("[{n}]"), value, schema))
        }
        _ => None,
    }
}

/// The types of values, in words, and how to write them.
const TYPES: [(&str, &str, &str); 6] = [
    ("integer", "a whole number", "write a whole number without quotes"),
    ("number", "a number", "write a number without quotes"),
    ("boolean", "true or false", "write it without quotes"),
    ("string", "a text", "write it in quotes"),
    ("array", "a list", "write it in brackets"),
    ("object", "a table", "write its keys below a line with its name in brackets"),
];

fn is(value: &Value, name: &str) -> bool {
    match name {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// Returns the words that a schema allows, if it allows nothing else.
fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().map(Value::as_str).collect();
    }
    let any = schema.get("oneOf").and_then(Value::as_array)?;
    let mut words = Vec::new();
    for schema in any {
        match schema.get("enum").and_then(Value::as_array) {
            Some(several) => words.extend(several.iter().filter_map(Value::as_str)),
            None => words.push(schema.get("const")?.as_str()?),
        }
    }
    Some(words)
}

/// Maximum length of a value in an error, in characters.
const QUOTED: usize = 40;

fn quoted(value: &Value) -> String {
    let text = match value {
        Value::Object(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::String(text) => format!("\"{}\"", clean(&deloop_detect::redact(text), QUOTED)),
        other => other.to_string(),
    };
    clean(&text, QUOTED + 2)
}

fn at(path: &[String], what: &str) -> DocumentError {
    let mut place = String::new();
    for name in path {
        if !name.starts_with('[') && !place.is_empty() {
            place.push('.');
        }
        place.push_str(name);
    }
    DocumentError(format!("`{}`: {what}", clean(&place, 200)))
}

fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#'));
    if let Some(target) = reference.and_then(|r| root.pointer(r)) {
        return target;
    }
    // An optional table is written as "this or null".
    let table = |s: &&Value| s.get("$ref").is_some() || s.get("properties").is_some();
    match schema.get("anyOf").and_then(Value::as_array).and_then(|any| any.iter().find(table)) {
        Some(inner) => resolve_once(inner, root),
        None => schema,
    }
}

fn resolve_once<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#'));
    reference.and_then(|r| root.pointer(r)).unwrap_or(schema)
}

fn no_such_key(key: &str, path: &[String], known: Option<&serde_json::Map<String, Value>>) -> DocumentError {
    let place = path.join(".");
    let names = known.into_iter().flat_map(|k| k.keys());
    let near = names.clone().map(|n| (strsim::jaro_winkler(key, n), n)).max_by(|a, b| a.0.total_cmp(&b.0));
    DocumentError(match near {
        Some((score, name)) if score > 0.6 => format!("unknown key `{place}`; did you mean `{name}`?"),
        _ => {
            let mut names: Vec<&str> = names.map(String::as_str).collect();
            names.sort_unstable();
            format!("unknown key `{place}`; known keys here: {}", names.join(", "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[cfg(feature = "schema")]
    #[test]
    fn a_wrong_value_is_named_with_what_was_expected() {
        let schema = crate::config_schema(&crate::Registry::default());
        let error =
            |document: Value| wrong_value(&document, &schema).map(|error| error.0).unwrap_or_default();
        assert_eq!(
            error(json!({"ceilings": {"turns": 1.5}})),
            "`ceilings.turns`: expected a whole number, found 1.5; write a whole number without quotes"
        );
        assert_eq!(
            error(json!({"ceilings": {"turns": -1}})),
            "`ceilings.turns`: expected 0 or more, found -1"
        );
        assert_eq!(
            error(json!({"mode": 7})),
            "`mode`: expected one of `shadow`, `nudge`, `enforce`, found 7"
        );
        assert!(
            error(json!({"order": "talk-only"}))
                .starts_with("`order`: expected a list, found \"talk-only\";")
        );
        assert!(
            error(json!({"detectors": {"talk-only": {"at": "x"}}}))
                .starts_with("`detectors.talk-only.at`: expected")
        );
        let rungs = json!({"ladders": {"a": {"rungs": [{"at": 1}, {"at": "two"}]}}});
        assert!(error(rungs).starts_with("`ladders.a.rungs[1].at`: expected a whole number"));
        assert!(
            error(json!({"serve": {"tls": {"key": true}}})).starts_with("`serve.tls.key`: expected a text")
        );
        for (name, _) in crate::PROFILES {
            assert_eq!(error(crate::profile_document(name).unwrap()), "", "{name}");
        }
        let fine =
            json!({"run": {"recover": {"model": "m"}, "stall": "3h"}, "agent": {"loopMsg": 7, "other": [1]}});
        assert_eq!(error(fine), "");
    }

    #[test]
    fn tables_merge_and_lists_are_replaced() {
        let mut base = json!({"a": {"x": 1, "y": 2}, "l": [1, 2]});
        merge(&mut base, json!({"a": {"y": 3}, "l": [9], "n": true}));
        assert_eq!(base, json!({"a": {"x": 1, "y": 3}, "l": [9], "n": true}));
    }
}
