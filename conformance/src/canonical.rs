//! JSON as a string that does not depend on the order of keys.

use serde_json::Value;

use crate::step::Call;

/// Compact JSON with the keys of every object sorted.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            // The map may or may not be sorted already: a feature of serde_json decides that.
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort();
            let members: Vec<String> = keys
                .into_iter()
                .map(|key| {
                    let name = Value::String(key.clone());
                    format!("{name}:{}", canonical(&object[key]))
                })
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        plain => plain.to_string(),
    }
}

/// A call as its tool and its canonical arguments.
pub(crate) fn signature(call: &Call) -> String {
    format!("{} {}", call.tool, canonical(&call.args))
}
