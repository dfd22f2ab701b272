use deloop_types::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentBlock, CeilingsBlock, EmbeddingsBlock, EventsBlock, Fail, Ladder, MemoryBlock, Price, Rules,
    RunBlock, ServeBlock, ServerBlock, StopEnds, SwarmBlock,
};

/// The part of the schema that doesn't depend on the detectors.
#[derive(JsonSchema, Serialize, Deserialize)]
#[schemars(title = "deloop configuration")]
pub(crate) struct ConfigShape {
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
    /// Report warnings and stops to the agent that started the session.
    tell_controller: Option<bool>,
    /// The detectors to use. When two lead to equally strong actions, the first one wins.
    order: Option<Vec<String>>,
    /// The ladders, by name: which action to take at which count. Detectors refer to them.
    ladders: Option<std::collections::BTreeMap<String, Ladder>>,
    /// What your own tools do, by tool name.
    tools: Option<std::collections::BTreeMap<String, deloop_detect::ToolRule>>,
    /// Word lists about tools, commands and outputs: your own, and which built-in ones to turn off.
    vocabulary: Option<deloop_detect::Lists>,
    /// How much one session, and one project per day, may use.
    ceilings: Option<CeilingsBlock>,
    /// The share of episodes, 0 to 1, in which hooks and plugins stay silent and only record, so that you can measure
    /// whether messages help; 0 if absent. Only your own configuration can set it.
    holdout: Option<f64>,
    /// The `agent` block of the turn-hash profile.
    agent: Option<AgentBlock>,
    /// Where the behavioral hook writes its notes.
    memory: Option<MemoryBlock>,
    /// Model prices in dollars per million tokens, by model name.
    prices: Option<std::collections::BTreeMap<String, Price>>,
    /// Where embeddings come from, for detectors with `by = "embeddings"`.
    embeddings: Option<EmbeddingsBlock>,
    /// Where hooks write events.
    events: Option<EventsBlock>,
    /// The swarm of the sessions that deloop's hooks and plugins guard.
    swarm: Option<SwarmBlock>,
    /// The settings of `deloop run`. Only your own configuration can have them.
    run: Option<RunBlock>,
    /// The settings of `deloop serve`. Only your own configuration can have them.
    serve: Option<ServeBlock>,
    /// The server that hooks and plugins report to.
    server: Option<ServerBlock>,
}
