//! The calls of an agent that have no result yet, and how long the agent itself lets each of them take.

use deloop_detect::{quote, short_call, short_hash};
use deloop_types::{Body, Call, Millis, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Number of calls kept.
const MOST: usize = 16;
/// The longest time limit that counts, in milliseconds: an agent can't give itself more than a day.
const LONGEST: u64 = 24 * 60 * 60 * 1000;
/// A bare `timeout` below this is in seconds: no tool gets less than a second.
const LEAST_MILLIS: f64 = 1000.0;

/// A call without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCall {
    /// The tool.
    pub tool: String,
    /// The short form of the call.
    pub call: String,
    /// The time limit in its arguments, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// When it began.
    pub began: Millis,
    /// Hash of the id that its result refers to.
    id: u64,
    /// Hash of its turn's id; 0 if the turn has none.
    #[serde(default)]
    turn: u64,
}

/// Adds a step: a new turn begins a new list, unless it continues the turn of the calls in it, and a result ends its call.
pub(crate) fn enter(running: &mut Vec<RunningCall>, step: &Step, now: Millis) {
    match &step.body {
        Body::Turn(turn) => {
            let id = hash(turn.id.as_deref());
            running.retain(|call| id != 0 && call.turn == id);
            running.extend(turn.calls.iter().map(|call| RunningCall {
                tool: quote(&call.tool, 40),
                call: short_call(&call.tool, &call.args).to_string(),
                limit_ms: limit(call),
                began: now,
                id: hash(call.id.as_deref()),
                turn: id,
            }));
            let over = running.len().saturating_sub(MOST);
            running.drain(..over);
        }
        Body::Result(result) => {
            let id = hash(result.id.as_deref());
            if let Some(index) = running.iter().position(|call| call.id == id) {
                running.remove(index);
            }
        }
        Body::User(_) | Body::End => running.clear(),
        _ => {}
    }
}

/// Returns the time limit that the agent gave a call, in milliseconds.
fn limit(call: &Call) -> Option<u64> {
    let named = call.args.as_object()?.iter().filter_map(|(key, value)| millis(key, value));
    named.fold(None, |most: Option<f64>, one| Some(most.map_or(one, |most| most.max(one)))).map(capped)
}

fn millis(key: &str, value: &Value) -> Option<f64> {
    let number = value.as_f64().filter(|number| *number > 0.0)?;
    let plain: String =
        key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    match plain.as_str() {
        "timeoutms" | "timeoutmillis" | "timeoutmilliseconds" | "yieldtimems" | "waitms" => Some(number),
        "timeoutsec" | "timeoutsecs" | "timeouts" | "timeoutseconds" => Some(number * 1000.0),
        "timeout" if number < LEAST_MILLIS => Some(number * 1000.0),
        "timeout" => Some(number),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and a cast from a float saturates"
)]
fn capped(millis: f64) -> u64 {
    (millis as u64).min(LONGEST)
}

fn hash(id: Option<&str>) -> u64 {
    id.map_or(0, |id| short_hash(id.as_bytes()))
}

#[cfg(test)]
mod tests {
    use deloop_types::{ToolResult, Turn};
    use serde_json::json;

    use super::*;

    fn turn(ids: &[&str], turn_id: Option<&str>) -> Step {
        let calls = ids.iter().map(|id| Call::new("Bash", json!({"command": id})).with_id(*id)).collect();
        let mut turn = Turn::new("", calls);
        turn.id = turn_id.map(str::to_owned);
        Step::new("s", Body::Turn(turn))
    }

    fn result(id: &str) -> Step {
        let mut result = ToolResult::default();
        result.id = Some(id.to_owned());
        Step::new("s", Body::Result(result))
    }

    #[test]
    fn parallel_calls_run_until_each_has_its_result_or_the_next_turn_comes() {
        let mut running = Vec::new();
        let names = |running: &[RunningCall]| running.iter().map(|r| r.call.clone()).collect::<Vec<_>>();
        for step in [turn(&["a"], Some("t1")), turn(&["b"], Some("t1")), result("b")] {
            enter(&mut running, &step, Millis(7));
        }
        assert_eq!(names(&running), ["Bash(a)"]);
        enter(&mut running, &turn(&["c"], None), Millis(8));
        assert_eq!(names(&running), ["Bash(c)"], "a result that was lost");
        assert_eq!(running[0].began, Millis(8));
        enter(&mut running, &result("c"), Millis(9));
        assert_eq!(running, []);
    }

    #[test]
    fn a_time_limit_is_read_in_its_unit_and_capped() {
        let read = |args: Value| limit(&Call::new("Bash", args));
        assert_eq!(read(json!({"command": "make", "timeout": 600_000})), Some(600_000));
        assert_eq!(read(json!({"timeout": 90})), Some(90_000));
        assert_eq!(read(json!({"timeout_ms": 5, "yield_time_ms": 7})), Some(7));
        assert_eq!(read(json!({"timeoutSeconds": 2.5})), Some(2500));
        assert_eq!(read(json!({"timeout": 1e18})), Some(LONGEST));
        assert_eq!(read(json!({"timeout": -1, "time": 5})), None);
        assert_eq!(read(json!("make")), None);
    }
}
