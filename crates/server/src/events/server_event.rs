use deloop_types::{Event, Millis};
use serde_json::{Map, Value, json};

use crate::project::Project;

/// Something that happened, with the project it belongs to.
pub(crate) struct ServerEvent {
    fields: Map<String, Value>,
}

impl ServerEvent {
    /// Creates an event of this kind.
    pub(crate) fn new(kind: &str, project: &Project, now: Millis) -> Self {
        let mut fields = Map::new();
        fields.insert("event".to_owned(), json!(kind));
        fields.insert("project".to_owned(), json!(project.as_str()));
        fields.insert("ts".to_owned(), json!(now.0));
        Self { fields }
    }

    /// Creates one from an event of the engine.
    pub(crate) fn of(event: &Event, project: &Project) -> Self {
        let fields = match serde_json::to_value(event) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        Self { fields }.with("project", json!(project.as_str()))
    }

    /// Sets a field.
    pub(crate) fn with(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// Returns the event as JSON.
    pub(crate) fn text(self) -> String {
        Value::Object(self.fields).to_string()
    }
}
