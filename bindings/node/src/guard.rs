//! The guard, as functions on a handle: a method of a native class costs a quarter of a microsecond more per call.

use std::cell::RefCell;

use deloop_bind::{BindError, BoundGuard, GuardSettings};
use deloop_engine::Observed;
use deloop_types::SessionId;
use napi::bindgen_prelude::{External, Uint8Array};
use napi::{Either, Error, Result, Status};
use napi_derive::napi;
use serde_json::{Value, json};

use crate::answer::{is_bare, json, refusal};

/// A guard, as JavaScript holds it.
pub struct NodeGuard {
    guard: BoundGuard,
    /// Where JavaScript writes the JSON of short steps.
    bytes: Uint8Array,
    /// The session that JavaScript was told last.
    session: RefCell<Option<SessionId>>,
}

/// Creates a guard from its settings as JSON, whose types the JavaScript side has checked. It reads steps from `bytes`.
#[napi(catch_unwind)]
pub fn create_guard(settings: String, bytes: Uint8Array) -> Result<External<NodeGuard>> {
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
    let guard = settings.guard().map_err(|error| invalid(&error))?;
    Ok(External::new(NodeGuard { guard, bytes, session: RefCell::new(None) }))
}

/// Adds a step, given as the first `length` of the guard's bytes, and returns the decision. If it is nothing but `continue`, as
/// almost all are, that is its step as a number, or `STEP SESSION` if the session isn't that of the last such answer.
/// Otherwise it is JSON, or `!` and why the text isn't a Step.
#[napi(catch_unwind)]
pub fn observe_bytes(guard: &External<NodeGuard>, length: u32) -> Either<f64, String> {
    guard.answer(guard.bytes.get(..length as usize).unwrap_or_default())
}

/// Does the same as `observe_bytes` for a text of any length.
#[napi(catch_unwind)]
pub fn observe_text(guard: &External<NodeGuard>, step: String) -> Either<f64, String> {
    guard.answer(step.as_bytes())
}

/// Adds a step and returns the JSON of the decision and the events, or `!` and why it isn't a Step.
#[napi(catch_unwind)]
pub fn observe_all(guard: &External<NodeGuard>, step: String) -> String {
    match guard.observed(step.as_bytes()) {
        Ok(observed) => json(&json!({"decision": observed.decision, "events": observed.events})),
        Err(error) => refusal(&error),
    }
}

/// Returns the state of a session as JSON; null when there is no such session.
#[napi(catch_unwind)]
pub fn checkpoint(guard: &External<NodeGuard>, session: String) -> Result<Option<String>> {
    guard.guard.checkpoint(&session).map_err(|error| invalid(&error))
}

/// Restores a session from its checkpoint.
#[napi(catch_unwind)]
pub fn restore(guard: &External<NodeGuard>, session: String, text: String) -> Result<()> {
    guard.guard.restore(&session, &text).map_err(|error| invalid(&error))
}

/// Deletes the state of a session.
#[napi(catch_unwind)]
pub fn reset(guard: &External<NodeGuard>, session: String) {
    guard.guard.reset(&session);
}

/// Returns the number of sessions in memory.
#[napi(catch_unwind)]
pub fn session_count(guard: &External<NodeGuard>) -> u32 {
    u32::try_from(guard.guard.sessions()).unwrap_or(u32::MAX)
}

impl NodeGuard {
    fn observed(&self, step: &[u8]) -> std::result::Result<Observed, BindError> {
        self.guard.observe_json(step)
    }

    fn answer(&self, step: &[u8]) -> Either<f64, String> {
        let decision = match self.observed(step) {
            Ok(observed) => observed.decision,
            Err(error) => return Either::B(refusal(&error)),
        };
        if !is_bare(&decision) {
            return Either::B(json(&decision));
        }
        let mut last = self.session.borrow_mut();
        if last.as_ref() == Some(&decision.session) {
            #[expect(clippy::cast_precision_loss, reason = "no session has 2^53 steps")]
            return Either::A(decision.step as f64);
        }
        let answer = format!("{} {}", decision.step, decision.session.as_str());
        *last = Some(decision.session);
        Either::B(answer)
    }
}

fn invalid(why: &dyn std::fmt::Display) -> Error {
    Error::new(Status::InvalidArg, why.to_string())
}
