//! A run that deloop stops and starts again: the first session loops, the second reads why and does something else.

use std::fs;

use serde_json::Value;

use super::model::script::{Act, Script};
use super::place::Place;
use super::seen::Seen;

/// How the message about the stopped attempt begins.
const TOLD: &str = "[deloop] An earlier attempt at this task was stopped";
/// What the command fails with. It must not be part of that message.
const OUTPUT: &str = "no target named widget";

/// A model that repeats these acts until it reads the message.
pub(super) fn script(acts: Vec<Act>) -> Script {
    let shell = |command: &str| Act::Shell(command.to_owned());
    Script::UntilTold { acts, told: TOLD, instead: shell("sh note.sh other"), done: "noted other" }
}

/// `deloop run` as a pipeline starts it.
pub(super) fn launcher(place: &Place) -> Vec<String> {
    let result = place.root.join("result.json");
    let words = ["run", "--on-stop", "retry", "--grace", "0.3", "--json", &result.to_string_lossy(), "--"];
    words.map(str::to_owned).to_vec()
}

/// Whether the second session got the message at once and ended by itself, and the result tells of both.
pub(super) fn judge(seen: &Seen<'_>) -> Result<String, String> {
    seen.expect(seen.ended.code == Some(0), "the exit code is not 0")?;
    let result = fs::read(seen.place.root.join("result.json")).unwrap_or_default();
    let result: Value = serde_json::from_slice(&result).unwrap_or_default();
    let attempts = result["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let [first, second] = attempts else { return Err(format!("not two attempts: {result}")) };
    let expected = [
        (&result["outcome"], Value::from("retried")),
        (&result["exit_code"], 0.into()),
        (&first["stopped"], true.into()),
        (&first["status"], "LOOP_DETECTED".into()),
        (&second["stopped"], false.into()),
        (&second["status"], Value::Null),
        (&second["exit_code"], 0.into()),
    ];
    let wrong = expected.iter().find(|(found, wanted)| *found != wanted);
    seen.expect(wrong.is_none(), &format!("the result is {result}, expected {wrong:?}"))?;
    seen.expect(first["session"] != second["session"], "both attempts are one session")?;
    let told = seen.record.session.iter().position(|asked| asked.text().contains(TOLD));
    let Some(told) = told else { return Err("the model never read the hand-off".to_owned()) };
    let request = seen.record.session[told].text();
    let first_request = told - usize::from(seen.hears_late);
    let is_first = !seen.record.session[first_request].text().contains(OUTPUT);
    seen.expect(is_first, "the hand-off is not in the first request of the session that can hold it")?;
    let handoff = first["handoff"].as_str().unwrap_or_default();
    let named = !handoff.is_empty() && request.contains(handoff) && fs::exists(handoff).unwrap_or(false);
    seen.expect(named, "the hand-off file is not named")?;
    let times = |asked: &super::model::Asked| asked.text().matches(TOLD).count();
    let once = seen.record.session[told..].iter().all(|asked| times(asked) == 1);
    seen.expect(once, "the model was told more than once")?;
    seen.expect(seen.place.ran("other") == 1, "the second session did nothing else")?;
    Ok(format!("stopped after {told} requests, the second session ended after {}", seen.requests() - told))
}
