use deloop_bind::{BoundGuard, GuardSettings};
use napi::{Error, Result, Status};
use napi_derive::napi;
use serde_json::{Value, json};

use crate::answer::{answer, json, refusal};

/// A guard, as JavaScript holds it.
#[napi(js_name = "Guard")]
pub struct NodeGuard {
    guard: BoundGuard,
}

#[napi]
impl NodeGuard {
    /// Creates a guard from its settings as JSON, whose types the JavaScript side has checked.
    #[napi(constructor, catch_unwind)]
    pub fn new(settings: String) -> Result<Self> {
        let mut settings: Value = serde_json::from_str(&settings).map_err(|error| invalid(&error))?;
        let defaults = GuardSettings::default();
        let text = |name: &str| settings[name].as_str().map(str::to_owned);
        let flag = |name: &str| settings[name].as_bool().unwrap_or_default();
        let places = settings["deliver"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let most = settings["max_sessions"].as_u64().map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let settings = GuardSettings {
            profile: text("profile").unwrap_or(defaults.profile),
            mode: text("mode").unwrap_or(defaults.mode),
            attended: flag("attended"),
            deliver: places.map(str::to_owned).collect(),
            rollback: flag("rollback"),
            max_sessions: most,
            config: settings["config"].take(),
        };
        Ok(Self { guard: settings.guard().map_err(|error| invalid(&error))? })
    }

    /// Adds a step and returns the decision as `answer` writes it, or `!` and why it isn't a Step.
    #[napi(catch_unwind)]
    pub fn observe(&self, step: String) -> String {
        match self.guard.observe_json(step.as_bytes()) {
            Ok(observed) => answer(&observed.decision),
            Err(error) => refusal(&error),
        }
    }

    /// Adds a step and returns the JSON of the decision and the events, or `!` and why it isn't a Step.
    #[napi(catch_unwind)]
    pub fn observe_all(&self, step: String) -> String {
        match self.guard.observe_json(step.as_bytes()) {
            Ok(observed) => json(&json!({"decision": observed.decision, "events": observed.events})),
            Err(error) => refusal(&error),
        }
    }

    /// Returns the state of a session as JSON.
    #[napi(catch_unwind)]
    pub fn checkpoint(&self, session: String) -> Result<Option<String>> {
        self.guard.checkpoint(&session).map_err(|error| invalid(&error))
    }

    /// Restores a session from its checkpoint.
    #[napi(catch_unwind)]
    pub fn restore(&self, session: String, text: String) -> Result<()> {
        self.guard.restore(&session, &text).map_err(|error| invalid(&error))
    }

    /// Deletes the state of a session.
    #[napi(catch_unwind)]
    pub fn reset(&self, session: String) {
        self.guard.reset(&session);
    }

    /// Returns the number of sessions in memory.
    #[napi(catch_unwind)]
    pub fn session_count(&self) -> u32 {
        u32::try_from(self.guard.sessions()).unwrap_or(u32::MAX)
    }
}

fn invalid(why: &dyn std::fmt::Display) -> Error {
    Error::new(Status::InvalidArg, why.to_string())
}
