use deloop_types::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Ladder, Registry, Rules, StopEnds};

/// The configuration keys that aren't part of a profile.
pub const CONFIG_KEYS: [&str; 8] =
    ["$schema", "profile", "mode", "attended", "fail", "agent", "memory", "prices"];

/// The part of the schema that doesn't depend on the detectors.
#[derive(JsonSchema, Serialize, Deserialize)]
#[schemars(title = "deloop configuration")]
struct Shape {
    /// The JSON Schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: Option<String>,
    /// The profile that this file is based on; `default` if absent.
    profile: Option<String>,
    /// The upper limit on what deloop does.
    mode: Option<Mode>,
    /// Whether a person is there to answer questions.
    attended: Option<bool>,
    /// What happens when deloop itself fails.
    fail: Option<Fail>,
    /// The name of this profile.
    name: Option<String>,
    /// A one-sentence description.
    about: Option<String>,
    /// When a finding moves up a ladder.
    rules: Option<Rules>,
    /// What a stop ends: the session, the run or the task.
    stop_ends: Option<StopEnds>,
    /// The detectors to use. When two lead to equally strong actions, the first one wins.
    order: Option<Vec<String>>,
    /// The ladders, by name: which action to take at which count. Detectors refer to them.
    ladders: Option<std::collections::BTreeMap<String, Ladder>>,
    /// What your own tools do, by tool name.
    tools: Option<std::collections::BTreeMap<String, deloop_detect::ToolRule>>,
    /// Word lists about tools, commands and outputs: your own, and which built-in ones to turn off.
    vocabulary: Option<deloop_detect::Lists>,
    /// The `agent` block of the turn-hash profile.
    agent: Option<AgentBlock>,
    /// Where the behavioral hook writes its notes.
    memory: Option<MemoryBlock>,
    /// Model prices in dollars per million tokens, by model name.
    prices: Option<std::collections::BTreeMap<String, Price>>,
}

/// What happens when deloop itself fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fail {
    /// The agent continues, and the failure is logged.
    #[default]
    Open,
    /// The agent is stopped.
    Closed,
}

/// The `agent` block: the YAML configuration of the turn-hash profile. Other keys in it belong to other programs.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AgentBlock {
    /// The message to the agent.
    pub loop_msg: Option<Value>,
    /// Maximum number of messages per session.
    pub loop_limit: Option<u64>,
    /// Number of earlier turns that a turn is compared with.
    pub turn_hash_window: Option<u64>,
    /// Number of parts of a turn that are compared.
    pub turn_buffer_max: Option<u64>,
}

/// Where the behavioral hook writes its notes.
#[derive(Debug, Clone, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryBlock {
    /// The folder for learnings.md and issues.md.
    pub folder: Option<String>,
}

/// The price of a model, in dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Tokens read from the cache; same as `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Tokens written to the cache; same as `input` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// Returns the JSON Schema of `deloop.toml`, for profiles and configurations.
#[must_use]
pub fn config_schema(registry: &Registry) -> Value {
    let mut schema = schemars::schema_for!(Shape).to_value();
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
