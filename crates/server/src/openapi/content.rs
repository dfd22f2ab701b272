use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A body in one media type, with its schema and examples.
pub(crate) struct ApiContent {
    pub(super) media_type: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    examples: Vec<(&'static str, Value)>,
}

impl ApiContent {
    /// Describes JSON of this type by an example.
    pub(crate) fn json<T: JsonSchema + Serialize>(example: &T) -> Self {
        Self::json_like::<T>(serde_json::to_value(example).unwrap_or_default())
    }

    /// Describes JSON of this type by an example that is written as JSON.
    pub(crate) fn json_like<T: JsonSchema>(example: Value) -> Self {
        let schema = SchemaGenerator::subschema_for::<T>;
        Self { media_type: "application/json", schema, examples: vec![("example", example)] }
    }

    /// Describes text that isn't one JSON value.
    pub(crate) fn text(media_type: &'static str, example: &str) -> Self {
        let schema = |_: &mut SchemaGenerator| json_schema!({"type": "string"});
        Self { media_type, schema, examples: vec![("example", json!(example))] }
    }

    /// Describes lines of which each is answered, whatever it is.
    pub(crate) fn lines(media_type: &'static str, example: &str) -> Self {
        let schema = |_: &mut SchemaGenerator| json_schema!({"description": "One JSON value per line."});
        Self { schema, ..Self::text(media_type, example) }
    }

    /// Adds an example.
    pub(crate) fn or(mut self, name: &'static str, example: Value) -> Self {
        self.examples.push((name, example));
        self
    }

    /// Returns it as a media type object.
    pub(super) fn describe(&self, generator: &mut SchemaGenerator) -> Value {
        let examples: Map<String, Value> =
            self.examples.iter().map(|(name, value)| ((*name).to_owned(), json!({"value": value}))).collect();
        json!({"schema": (self.schema)(generator), "examples": examples})
    }
}

/// Makes every field of an answer required: fields without a value are null, not absent.
pub(crate) fn all_required(schema: &mut Schema) {
    let names = schema.get("properties").and_then(Value::as_object).map(|fields| fields.keys().cloned());
    if let Some(names) = names.map(Iterator::collect::<Vec<String>>) {
        schema.insert("required".to_owned(), json!(names));
    }
}
