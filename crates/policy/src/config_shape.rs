use deloop_types::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentBlock, Fail, Ladder, MemoryBlock, Price, Rules, StopEnds};

/// The part of the schema that is the same whatever detectors there are.
#[derive(JsonSchema, Serialize, Deserialize)]
#[schemars(title = "deloop configuration")]
pub(crate) struct ConfigShape {
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
