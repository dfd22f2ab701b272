use serde_json::{Value, json};

/// A parameter of an operation.
pub(crate) struct ApiParameter {
    place: &'static str,
    name: &'static str,
    about: &'static str,
    schema: Value,
    example: Value,
}

impl ApiParameter {
    /// Describes a part of the path.
    pub(crate) fn path(name: &'static str, about: &'static str, example: &str) -> Self {
        let schema = json!({"type": "string", "minLength": 1});
        Self { place: "path", name, about, schema, example: json!(example) }
    }

    /// Describes an optional parameter in the query.
    pub(crate) fn query(name: &'static str, about: &'static str, schema: Value, example: Value) -> Self {
        Self { place: "query", name, about, schema, example }
    }

    /// Describes an optional header.
    pub(crate) fn header(name: &'static str, about: &'static str, schema: Value, example: Value) -> Self {
        Self { place: "header", name, about, schema, example }
    }

    /// Returns it as a parameter object.
    pub(super) fn describe(&self) -> Value {
        let Self { place, name, about, schema, example } = self;
        let required = *place == "path";
        json!({
            "name": name, "in": place, "description": about, "required": required, "schema": schema, "example": example,
        })
    }
}
