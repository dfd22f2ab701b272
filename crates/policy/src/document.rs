//! Merges configuration documents and checks them against a schema.

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

    #[test]
    fn tables_merge_and_lists_are_replaced() {
        let mut base = json!({"a": {"x": 1, "y": 2}, "l": [1, 2]});
        merge(&mut base, json!({"a": {"y": 3}, "l": [9], "n": true}));
        assert_eq!(base, json!({"a": {"x": 1, "y": 3}, "l": [9], "n": true}));
    }
}
