//! The JSON Schema of a Step.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::read::Line;
use crate::Step;

/// The type of a Step.
#[derive(JsonSchema)]
#[schemars(rename = "StepType", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum Kind {
    Turn,
    Call,
    Result,
    User,
    Usage,
    Chunk,
    Compact,
    Delivery,
    Embedding,
    Intervention,
    End,
    SwarmEnd,
    State,
}

/// A time: RFC 3339, or milliseconds since 1970.
pub(super) struct TimeText;

impl JsonSchema for TimeText {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}]})
    }
}

/// An id: a string or a number.
pub(super) struct IdText;

impl JsonSchema for IdText {
    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number"]})
    }
}

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Line::json_schema(generator);
        schema.insert("required".to_owned(), json!(["type"]));
        schema.insert("anyOf".to_owned(), required_fields());
        if let Some(kind) = schema.pointer_mut("/properties/type").and_then(Value::as_object_mut) {
            kind.remove("default");
        }
        schema
    }
}

impl Step {
    /// Returns the JSON Schema of a Step.
    #[must_use]
    pub fn schema() -> Value {
        schemars::schema_for!(Self).to_value()
    }
}

/// Returns which fields each type needs. A field that is null is missing.
fn required_fields() -> Value {
    json!([
        {"properties": {"type": {"enum": ["turn", "result", "user", "usage", "compact", "intervention", "end", "state"]}}},
        {"properties": {"type": {"const": "call"}, "tool": {"type": "string"}}, "required": ["tool"]},
        {"properties": {"type": {"const": "chunk"}, "text": {"type": "string"}}, "required": ["text"]},
        {
            "properties": {"type": {"const": "delivery"}, "step": {"type": "integer"}, "ok": {"type": "boolean"}},
            "required": ["step", "ok"]
        },
        {
            "properties": {"type": {"const": "embedding"}, "step": {"type": "integer"}, "embedding": {"type": "array"}},
            "required": ["step", "embedding"]
        },
        {"properties": {"type": {"const": "swarm_end"}, "swarm": {"type": "string"}}, "required": ["swarm"]}
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step with the fields that its schema needs can be read, and without one of them it can't.
    #[test]
    fn the_schema_requires_what_reading_requires() {
        let value = |field: &str| match field {
            "step" => json!(1),
            "ok" => json!(true),
            "embedding" => json!([0.5]),
            _ => json!("x"),
        };
        for kind in required_fields().as_array().unwrap() {
            let name = &kind["properties"]["type"];
            let names = name["enum"].as_array().cloned().unwrap_or_else(|| vec![name["const"].clone()]);
            let required: Vec<&str> =
                kind["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            for name in names {
                let mut step = json!({"type": name});
                for field in &required {
                    assert!(serde_json::from_value::<Step>(step.clone()).is_err(), "{step} lacks {field}");
                    step[*field] = value(field);
                }
                assert!(serde_json::from_value::<Step>(step.clone()).is_ok(), "{step}");
            }
        }
    }
}
