#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Action, ControllerNotice, Finding, PatternId, Role, Rollback, SessionId};

/// The decision about a step. Every step gets one, even if it is `continue`.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub struct Decision {
    /// The session the step belongs to.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub session: SessionId,
    /// The index of the step in its session, from 0.
    pub step: u64,
    /// A stable id, unless the action is `continue`.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub id: Option<String>,
    /// What to do.
    pub action: Action,
    /// The rung of the ladder; 0 for `continue`.
    pub level: u32,
    /// The rung's name, if the profile sets one.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub rung: Option<String>,
    /// The message: for the model on a nudge or a block, for people otherwise.
    pub message: Option<String>,
    /// One line for the user: what deloop did and why.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub user_message: Option<String>,
    /// The role under which the message is added to the conversation.
    pub role: Option<Role>,
    /// The ids of the calls to refuse or to ask about. `#N` is the Nth call of a turn without ids.
    pub calls: Vec<String>,
    /// The repeated steps to take out of the conversation, if the caller said that it can and two nudges were ignored.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub rollback: Option<Rollback>,
    /// How the run ended, on `stop`.
    pub status: Option<String>,
    /// All findings at this step.
    pub findings: Vec<Finding>,
    /// The finding that decided, unless the action is `continue`.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub by: Option<DecidedBy>,
    /// Messages for this agent about agents that it started.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub notices: Vec<ControllerNotice>,
    /// The decision before the mode capped it.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub would: Option<Box<Decision>>,
    /// Fields that the profile adds, such as `task_update`, and the answer to a `state` step.
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub extra: Map<String, Value>,
}

/// Which finding a decision rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DecidedBy {
    /// See [`Finding::detector`].
    pub detector: String,
    /// See [`Finding::rule`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// See [`Finding::pattern`].
    #[serde(default, skip_serializing_if = "PatternId::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub pattern: PatternId,
}

impl From<&Finding> for DecidedBy {
    fn from(finding: &Finding) -> Self {
        Self { detector: finding.detector.clone(), rule: finding.rule.clone(), pattern: finding.pattern }
    }
}

impl Decision {
    /// Creates the decision to do nothing about this step.
    #[must_use]
    pub fn go_on(session: SessionId, step: u64) -> Self {
        Self { session, step, ..Self::default() }
    }

    /// Returns the finding that decided. A stop that still applies may rest on one of an earlier step, which isn't listed.
    #[must_use]
    pub fn deciding(&self) -> Option<&Finding> {
        let by = self.uncapped().by.as_ref()?;
        self.findings.iter().find(|f| f.detector == by.detector && f.pattern == by.pattern)
    }

    /// Returns the finding to name if only one is named: the one that decided, else the first listed.
    #[must_use]
    pub fn main_finding(&self) -> Option<&Finding> {
        self.deciding().or_else(|| self.findings.first())
    }

    /// Returns the decision before the mode capped it.
    #[must_use]
    pub fn uncapped(&self) -> &Self {
        self.would.as_deref().unwrap_or(self)
    }
}

impl Serialize for Decision {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let mut map = ser.serialize_map(None)?;
        map.serialize_entry("session", &self.session)?;
        map.serialize_entry("step", &self.step)?;
        if let Some(id) = &self.id {
            map.serialize_entry("id", id)?;
        }
        map.serialize_entry("action", &self.action)?;
        map.serialize_entry("level", &self.level)?;
        if let Some(rung) = &self.rung {
            map.serialize_entry("rung", rung)?;
        }
        map.serialize_entry("message", &self.message)?;
        if let Some(message) = &self.user_message {
            map.serialize_entry("user_message", message)?;
        }
        map.serialize_entry("role", &self.role)?;
        map.serialize_entry("calls", &self.calls)?;
        if let Some(rollback) = &self.rollback {
            map.serialize_entry("rollback", rollback)?;
        }
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("findings", &self.findings)?;
        if let Some(by) = &self.by {
            map.serialize_entry("by", by)?;
        }
        if !self.notices.is_empty() {
            map.serialize_entry("notices", &self.notices)?;
        }
        if let Some(would) = &self.would {
            map.serialize_entry("would", would)?;
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Decision {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        let mut map = Map::deserialize(de)?;
        Ok(Self {
            session: take(&mut map, "session")?,
            step: take(&mut map, "step")?,
            id: take(&mut map, "id")?,
            action: take(&mut map, "action")?,
            level: take(&mut map, "level")?,
            rung: take(&mut map, "rung")?,
            message: take(&mut map, "message")?,
            user_message: take(&mut map, "user_message")?,
            role: take(&mut map, "role")?,
            calls: take(&mut map, "calls")?,
            rollback: take(&mut map, "rollback")?,
            status: take(&mut map, "status")?,
            findings: take(&mut map, "findings")?,
            by: take(&mut map, "by")?,
            notices: take(&mut map, "notices")?,
            would: take(&mut map, "would")?,
            extra: map,
        })
    }
}

/// Removes a field. A missing or null field yields the default.
fn take<T: DeserializeOwned + Default, E: Error>(map: &mut Map<String, Value>, key: &str) -> Result<T, E> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => {
            serde_json::from_value(value).map_err(|error| E::custom(format_args!("`{key}`: {error}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_profile_adds_stands_beside_the_known_fields() {
        let line = r#"{"session":"s1","step":7,"action":"stop","level":3,"message":null,"role":null,"calls":["c1"],"status":"FORCE_DONE","findings":[],"task_update":{"status":"completed"}}"#;
        let decision: Decision = serde_json::from_str(line).unwrap();
        assert_eq!(decision.extra["task_update"]["status"], "completed");
        assert_eq!(serde_json::to_string(&decision).unwrap(), line);
    }
}
