#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Registry;

/// The configuration keys that aren't part of a profile.
pub const CONFIG_KEYS: [&str; 14] = [
    "$schema",
    "profile",
    "mode",
    "attended",
    "fail",
    "agent",
    "memory",
    "prices",
    "embeddings",
    "events",
    "swarm",
    "run",
    "serve",
    "server",
];

/// The keys of a profile.
#[cfg(not(feature = "schema"))]
const PROFILE_KEYS: [&str; 11] = [
    "name",
    "about",
    "rules",
    "stop_ends",
    "tell_controller",
    "order",
    "ladders",
    "tools",
    "vocabulary",
    "ceilings",
    "holdout",
];

/// What happens when deloop itself fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Fail {
    /// The agent continues, and the failure is logged.
    #[default]
    Open,
    /// The agent is stopped.
    Closed,
}

/// The `agent` block: the YAML configuration of the turn-hash profile. Other keys in it belong to other programs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct MemoryBlock {
    /// The folder for learnings.md and issues.md.
    pub folder: Option<String>,
}

/// Where embeddings come from, for detectors with `by = "embeddings"`. Name a model's folder or an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct EmbeddingsBlock {
    /// A folder with a static model in model2vec's format.
    pub model: Option<String>,
    /// The URL of an OpenAI-compatible endpoint, such as `http://127.0.0.1:11434/v1/embeddings`. The text of turns is
    /// sent to it, with secrets masked.
    pub endpoint: Option<String>,
    /// The model's name at the endpoint.
    pub name: Option<String>,
    /// The environment variable that holds the endpoint's API key.
    pub key_variable: Option<String>,
    /// How long a request to the endpoint may take, in milliseconds. deloop never waits for it before it answers an
    /// agent.
    pub timeout_ms: Option<u64>,
}

/// Where hooks write events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct EventsBlock {
    /// The file to append to, one event per line.
    pub file: Option<String>,
}

/// The server that hooks and plugins report to, and that decides in their place. Only your own configuration can set it:
/// the steps of your sessions are sent there, with the text, arguments and outputs in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ServerBlock {
    /// The address of a `deloop serve`, such as `https://deloop.example.com`. Without `https`, it must be on this machine.
    pub url: Option<String>,
    /// The environment variable that holds the API key; `DELOOP_SERVER_KEY` if absent.
    pub key_env: Option<String>,
    /// The file that holds the API key.
    pub key_file: Option<String>,
    /// The project that your sessions belong to, if the key doesn't determine it.
    pub project: Option<String>,
    /// How long one event may wait for the server, in milliseconds; 300 if absent. Then deloop decides on this machine.
    pub timeout_ms: Option<u64>,
    /// A file with the certificates (PEM) to trust in place of the public ones.
    pub ca_file: Option<String>,
    /// Allows `http` to other machines. Anyone on the way can read and change what is sent.
    pub allow_http: bool,
}

/// The swarm of the sessions that deloop's hooks and plugins guard.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SwarmBlock {
    /// The swarm that every session belongs to. `DELOOP_SWARM` in the environment overrides it. In a project's
    /// configuration, it names a swarm of that project only.
    pub name: Option<String>,
    /// Whether the subagents of a session form a swarm of their own, unless the session is in a named one.
    pub subagents: bool,
}

/// Returns the JSON Schema of `deloop.toml`: of a profile, and of what a configuration adds to it. Without the feature
/// `schema` it has the names of the keys and little else.
#[must_use]
pub fn config_schema(registry: &Registry) -> Value {
    #[cfg(feature = "schema")]
    let mut schema = schemars::schema_for!(crate::config_shape::ConfigShape).to_value();
    #[cfg(not(feature = "schema"))]
    let mut schema = {
        let known: serde_json::Map<String, Value> =
            CONFIG_KEYS.iter().chain(&PROFILE_KEYS).map(|key| ((*key).to_owned(), json!({}))).collect();
        json!({"type": "object", "properties": known})
    };
    let mut detectors = serde_json::Map::new();
    for detector in registry.iter() {
        let mut one = detector.schema();
        if let Some(table) = one.as_object_mut() {
            // A reference in the parameters of a detector starts at the whole document.
            if let Some(Value::Object(types)) = table.remove("$defs") {
                types.into_iter().for_each(|(name, of)| schema["$defs"][name] = of);
            }
            table.remove("$schema");
            table.remove("title");
        }
        if let Some(properties) = one["properties"].as_object_mut() {
            properties.insert(
                "ladder".to_owned(),
                json!({"type": "string", "description": "The ladder for its findings."}),
            );
        } else {
            one["properties"] = json!({"ladder": {"type": "string"}});
        }
        detectors.insert(detector.name().to_owned(), one);
    }
    schema["properties"]["detectors"] = json!({
        "type": "object",
        "description": "The parameters of the detectors, by detector name.",
        "additionalProperties": false,
        "properties": detectors,
    });
    schema["additionalProperties"] = false.into();
    // The agent block belongs to another program, which has keys of its own there.
    if cfg!(feature = "schema") {
        schema["$defs"]["AgentBlock"]["additionalProperties"] = json!({});
    }
    schema
}
