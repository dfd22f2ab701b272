use deloop_types::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Ladder, Registry, Rules, StopEnds};

/// The keys of a configuration that a profile does not have.
pub const CONFIG_KEYS: [&str; 8] =
    ["$schema", "profile", "mode", "attended", "fail", "agent", "memory", "prices"];

/// The part of the schema that is the same whatever detectors there are.
#[derive(JsonSchema, Serialize, Deserialize)]
#[schemars(title = "deloop configuration")]
struct ConfigShape {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// The profile that this file is laid over; `default` if none is named.
    profile: Option<String>,
    /// How far deloop may go.
    mode: Option<Mode>,
    /// Whether a person is there to be asked.
    attended: Option<bool>,
    /// What happens when deloop itself fails.
    fail: Option<Fail>,
    /// A name for this set of rules.
    name: Option<String>,
    /// What it is for, in a sentence.
    about: Option<String>,
    /// How the ladders are climbed.
    rules: Option<Rules>,
    /// What a stop ends: the session, the run or the task.
    stop_ends: Option<StopEnds>,
    /// The detectors that watch, the first winning ties.
    order: Option<Vec<String>>,
    /// What is done about what a detector finds, by the name that detectors refer to.
    ladders: Option<std::collections::BTreeMap<String, Ladder>>,
    /// What your own tools do, by tool name.
    tools: Option<std::collections::BTreeMap<String, deloop_detect::ToolRule>>,
    /// What deloop knows about tools, commands and outputs: your lists, and which of its own to leave out.
    vocabulary: Option<deloop_detect::Lists>,
    /// The `agent` block of the turn-hash profile.
    agent: Option<AgentBlock>,
    /// Where the behavioral hook keeps its notes.
    memory: Option<MemoryBlock>,
    /// Prices of models in dollars per million tokens, by model name.
    prices: Option<std::collections::BTreeMap<String, Price>>,
}

/// What happens when deloop itself fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fail {
    /// The agent goes on, and the failure is logged.
    #[default]
    Open,
    /// The agent is stopped.
    Closed,
}

/// The `agent` block: how the turn-hash profile is configured in YAML. Other keys of it are another program's.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentBlock {
    /// What the agent is told.
    pub loop_msg: Option<Value>,
    /// How often it is told at most.
    pub loop_limit: Option<u64>,
    /// With how many turns before it a turn is compared.
    pub turn_hash_window: Option<u64>,
    /// How many parts of a turn are compared.
    pub turn_buffer_max: Option<u64>,
}

/// Where the behavioral hook keeps its notes.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryBlock {
    /// The folder of learnings.md and issues.md.
    pub folder: Option<String>,
}

/// What a model costs, in dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from the cache; as `input` if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Tokens written to the cache; as `input` if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// The JSON Schema of `deloop.toml`: of profiles and of what is laid over them.
#[must_use]
pub fn config_schema(registry: &Registry) -> Value {
    let mut schema = schemars::schema_for!(ConfigShape).to_value();
    let mut detectors = serde_json::Map::new();
    for detector in registry.iter() {
        let mut one = detector.schema();
        if let Some(table) = one.as_object_mut() {
            table.remove("$schema");
            table.remove("title");
        }
        if let Some(properties) = one["properties"].as_object_mut() {
            properties.insert(
                "ladder".to_owned(),
                json!({"type": "string", "description": "The ladder that its findings climb."}),
            );
        } else {
            one["properties"] = json!({"ladder": {"type": "string"}});
        }
        detectors.insert(detector.name().to_owned(), one);
    }
    schema["properties"]["detectors"] = json!({
        "type": "object",
        "description": "How the detectors are tuned, by detector name.",
        "additionalProperties": false,
        "properties": detectors,
    });
    schema["additionalProperties"] = false.into();
    // The agent block belongs to another program, which has keys of its own there.
    schema["$defs"]["AgentBlock"]["additionalProperties"] = json!({});
    schema
}
