//! Applies the `agent` block and its environment variables to the detector they configure.

use serde_json::{Value, json};

use crate::{AgentBlock, DocumentError};

/// The detector that the block configures.
const DETECTOR: &str = "duplicate-turn";

/// The key of the block that each environment variable sets.
pub const AGENT_VARIABLES: [&str; 4] =
    ["AGENT_LOOP_MSG", "AGENT_LOOP_LIMIT", "AGENT_TURN_HASH_WINDOW", "AGENT_TURN_BUFFER_MAX"];

impl AgentBlock {
    /// Reads the block from the environment, using `get` to look up variables. An empty variable counts as unset.
    ///
    /// # Errors
    /// When a variable that must be a number isn't one.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<Self, DocumentError> {
        let get = |name: &str| get(name).filter(|text| !text.is_empty());
        let number = |name: &str| match get(name) {
            None => Ok(None),
            Some(text) => text.trim().parse::<u64>().map(Some).map_err(|_| {
                DocumentError(format!("the environment variable {name} must be a whole number, not `{text}`"))
            }),
        };
        let [message, limit, window, parts] = AGENT_VARIABLES;
        Ok(Self {
            loop_msg: get(message).map(Value::String),
            loop_limit: number(limit)?,
            turn_hash_window: number(window)?,
            turn_buffer_max: number(parts)?,
        })
    }

    /// Returns this block, with anything it doesn't set taken from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            loop_msg: self.loop_msg.or(other.loop_msg),
            loop_limit: self.loop_limit.or(other.loop_limit),
            turn_hash_window: self.turn_hash_window.or(other.turn_hash_window),
            turn_buffer_max: self.turn_buffer_max.or(other.turn_buffer_max),
        }
    }

    /// Merges the block into a profile's document, if the profile uses the detector.
    pub fn apply(&self, document: &mut Value) {
        let Some(detector) = document.pointer_mut(&format!("/detectors/{DETECTOR}")) else { return };
        if let Some(window) = self.turn_hash_window {
            detector["window"] = json!(window);
        }
        if let Some(parts) = self.turn_buffer_max {
            detector["parts"] = json!(parts);
        }
        let Some(ladder) = detector["ladder"].as_str().map(|l| format!("/ladders/{l}")) else { return };
        let Some(ladder) = document.pointer_mut(&ladder) else { return };
        if let Some(limit) = self.loop_limit {
            ladder["limit"] = json!(limit);
            // A ladder takes 0 for "no limit". Here it is a maximum of none: loops are found, and nothing is sent.
            for rung in ladder["rungs"].as_array_mut().into_iter().flatten().filter(|_| limit == 0) {
                rung["action"] = json!("continue");
            }
        }
        // An empty message would be a nudge that says nothing: the profile's own stays.
        if let Some(message) = self.loop_msg.as_ref().filter(|message| message.as_str() != Some("")) {
            // A message that looks like a number is still a message.
            let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
            for rung in ladder["rungs"].as_array_mut().into_iter().flatten() {
                rung["message"] = Value::String(text.replace('{', "{{"));
            }
        }
    }
}
