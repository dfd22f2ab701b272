use std::borrow::Cow;
use std::collections::BTreeMap;

use deloop_engine::{Checkpoint, Guard, Observed, Options};
use deloop_policy::{Price, Prices, Profile, name_task};
use deloop_store::Limits;
use deloop_types::{Body, Decision, Millis, Step, limits};

use crate::BindError;

/// A guard that decides as `deloop stream` does: a request without a cost gets the one of its model, and task updates
/// name the step's task.
///
/// Share it between threads by reference or in an `Arc`.
pub struct BoundGuard {
    guard: Guard,
    prices: Prices,
    /// Whether the environment had `DELOOP=off` when the guard was created.
    off: bool,
}

impl BoundGuard {
    pub(crate) fn new(
        profile: Profile,
        options: Options,
        limits: Limits,
        own_prices: BTreeMap<String, Price>,
    ) -> Self {
        Self {
            guard: Guard::with(profile, options, limits).with_clock(now),
            prices: Prices::new(own_prices),
            off: std::env::var("DELOOP").is_ok_and(|value| value.eq_ignore_ascii_case("off")),
        }
    }

    /// Adds a step to its session and returns the decision and the events.
    pub fn observe(&self, step: &Step) -> Observed {
        let step = self.priced(step);
        let mut observed = self.guard.observe_all(&step);
        if let Some(task) = &step.task {
            name_task(task, &mut observed.decision, &mut observed.events);
        }
        if self.off {
            return Observed::elsewhere(Decision::go_on(observed.decision.session, observed.decision.step));
        }
        observed
    }

    /// Does the same for a step that is given as JSON, with the limits and repairs of `deloop stream`.
    ///
    /// # Errors
    /// When the text isn't a Step. The message names the field.
    pub fn observe_json(&self, json: &[u8]) -> Result<Observed, BindError> {
        Ok(self.observe(&read_step(json)?))
    }

    /// Returns the state of a session as JSON; `None` when there is no such session.
    ///
    /// # Errors
    /// When the state can't be written.
    pub fn checkpoint(&self, session: &str) -> Result<Option<String>, BindError> {
        let told = |e: &dyn std::fmt::Display| BindError(e.to_string());
        let checkpoint = self.guard.checkpoint(&session.into()).map_err(|e| told(&e))?;
        checkpoint.map(|state| serde_json::to_string(&state).map_err(|e| told(&e))).transpose()
    }

    /// Restores a session from the text of a checkpoint and replaces any state it has.
    ///
    /// # Errors
    /// When the text isn't a checkpoint, or one of another release or profile that this guard can't read.
    pub fn restore(&self, session: &str, text: &str) -> Result<(), BindError> {
        let checkpoint: Checkpoint =
            serde_json::from_str(text).map_err(|e| BindError(format!("not a checkpoint: {e}")))?;
        self.guard.restore(&session.into(), checkpoint).map_err(|e| BindError(e.to_string()))
    }

    /// Deletes the state of a session.
    pub fn reset(&self, session: &str) {
        self.guard.reset(&session.into());
    }

    /// Returns the number of sessions in memory.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.guard.sessions().len()
    }

    fn priced<'a>(&self, step: &'a Step) -> Cow<'a, Step> {
        if !matches!(step.body, Body::Usage(_)) {
            return Cow::Borrowed(step);
        }
        let mut step = step.clone();
        if let Body::Usage(usage) = &mut step.body {
            self.prices.complete(usage);
        }
        Cow::Owned(step)
    }
}

/// Reads a step from JSON, with the limits and repairs of `deloop stream`.
///
/// # Errors
/// When the text isn't a Step, or is longer than 64 MiB.
pub fn read_step(json: &[u8]) -> Result<Step, BindError> {
    if json.len() > limits::EVENT {
        return Err(BindError(format!("the step is longer than {} MiB", limits::EVENT >> 20)));
    }
    deloop_formats::read_step(json).map_err(BindError)
}

#[expect(clippy::disallowed_methods, reason = "a program's steps may have no time of their own")]
fn now() -> Millis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use crate::GuardSettings;

    #[test]
    fn a_checkpoint_continues_elsewhere() {
        let guard =
            || GuardSettings { profile: "turn-hash".into(), ..GuardSettings::default() }.guard().unwrap();
        let (one, two) = (guard(), guard());
        let line = br#"{"type":"turn","session":"s","text":"Again."}"#;
        one.observe_json(line).unwrap();
        assert_eq!(one.checkpoint("t").unwrap(), None);
        two.restore("s", &one.checkpoint("s").unwrap().unwrap()).unwrap();
        assert_eq!((one.sessions(), two.sessions()), (1, 1));
        assert_eq!(two.observe_json(line).unwrap().decision.action.as_str(), "nudge");
        one.reset("s");
        assert_eq!(one.sessions(), 0);
        assert!(two.restore("s", "{}").unwrap_err().0.starts_with("not a checkpoint"));
    }

    #[test]
    fn a_request_without_a_cost_gets_the_price_of_its_model() {
        let config = serde_json::json!({"prices": {"mine": {"input": 2.0, "output": 4.0}}});
        let guard = GuardSettings { config, ..GuardSettings::default() }.guard().unwrap();
        let cost = |model: &str| {
            let line = format!(r#"{{"type":"usage","model":"{model}","input_tokens":1000000}}"#);
            guard.observe_json(line.as_bytes()).unwrap().events[0].cost_usd
        };
        assert_eq!((cost("mine"), cost("claude-sonnet-4-5"), cost("unknown")), (Some(2.0), Some(3.0), None));
    }
}
