//! What deloop does after two ignored nudges: a fresh session with another model, or turns taken out of the conversation.

use std::fs;

use serde_json::Value;

use super::agents::{Agent, OTHER_MODEL};
use super::model::Asked;
use super::place::{Place, STUCK};
use super::seen::Seen;

/// How the message about the earlier attempt begins.
const TOLD: &str = "[deloop] An earlier attempt at this task was stopped";
/// Part of the line that takes the place of the repeated turns.
const FOLDED: &str = "were removed from this conversation";

/// `deloop run` with another model for an agent that ignores messages.
pub(super) fn launcher(agent: &dyn Agent, place: &Place) -> Vec<String> {
    let result = place.root.join("result.json");
    let model = format!("model={}", agent.other_model());
    let words = ["run", "--recover", &model, "--grace", "0.3", "--json", &result.to_string_lossy(), "--"];
    words.map(str::to_owned).to_vec()
}

/// Whether the second session got the hand-off and the other model, and ended by itself.
pub(super) fn judge_fresh(seen: &Seen<'_>) -> Result<String, String> {
    seen.expect(seen.ended.code == Some(0), "the exit code is not 0")?;
    let result = fs::read(seen.place.root.join("result.json")).unwrap_or_default();
    let result: Value = serde_json::from_slice(&result).unwrap_or_default();
    let attempts = result["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let [first, second] = attempts else { return Err(format!("not two attempts: {result}")) };
    let fits = result["outcome"] == "retried"
        && first["status"] == "NUDGES_IGNORED"
        && second["model"].as_str().is_some_and(names_other)
        && first["session"] != second["session"];
    seen.expect(fits, &format!("the result is {result}"))?;
    let told = seen.first_with(TOLD);
    let Some(told) = told else { return Err("the model never read the hand-off".to_owned()) };
    // Gemini's requests name the model in their address.
    let own = |asked: &Asked| asked.body["model"].as_str().is_none_or(|name| !names_other(name));
    let other = |asked: &Asked| asked.body["model"].as_str().is_none_or(names_other);
    seen.expect(seen.record.session[told..].iter().all(other), "the second session has the same model")?;
    let before = told - usize::from(seen.hears_late);
    seen.expect(seen.record.session[..before].iter().all(own), "the first session has the other model")?;
    let asked = seen.record.all.iter().any(|request| names_other(&request.to_string()));
    seen.expect(asked, "nobody asked the other model")?;
    seen.expect(seen.place.ran("other") == 1, "the second session did nothing else")?;
    Ok(format!("{} requests, then {} for the other model", told, seen.requests() - told))
}

/// Whether the repeated calls are gone from the request after the first block, and the line is there, once.
pub(super) fn judge_rollback(seen: &Seen<'_>) -> Result<String, String> {
    let Some(folded) = seen.first_with(FOLDED) else { return Err("no request has the line".to_owned()) };
    let calls = |asked: &Asked| {
        let messages = asked.body["messages"].as_array().into_iter().flatten();
        let calls = messages.flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
        calls.filter(|call| call.to_string().contains(STUCK)).count()
    };
    let results = |asked: &Asked| {
        asked.body["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|message| message["role"] == "tool")
            .count()
    };
    let (before, after) = (&seen.record.session[folded - 1], &seen.record.session[folded]);
    seen.expect(calls(before) >= 5, "the repeated calls were never there")?;
    seen.expect(calls(after) == 1 && results(after) == 1, &format!("{} calls are left", calls(after)))?;
    let later = &seen.record.session[folded..];
    let once = later.iter().all(|asked| asked.text().matches(FOLDED).count() == 1);
    seen.expect(once, "the line is there more than once, or gone again")?;
    Ok(format!("{} calls in request {}, {} in the next", calls(before), folded, calls(after)))
}

fn names_other(name: &str) -> bool {
    name.contains(OTHER_MODEL)
}
