//! A run that hangs, because the model never answers or because a tool never returns: `deloop run` ends it, and nothing is
//! left of it.

use std::fs;

use serde_json::Value;

use super::cases::Case;
use super::model::script::{Act, Script, Turn};
use super::place::Place;
use super::seen::Seen;

/// The limit, in seconds.
const LIMIT: u64 = 8;

/// A model that never answers, or that starts a tool that never returns.
pub(super) fn script(case: Case) -> Script {
    match case {
        Case::SilentModel => Script::Silent,
        _ => Script::Turns(vec![Turn::Acts(vec![Act::Shell("sh hang.sh".to_owned())])]),
    }
}

/// `deloop run` with a limit that a test can wait for.
pub(super) fn launcher(place: &Place) -> Vec<String> {
    let file = |name: &str| place.root.join(name).to_string_lossy().into_owned();
    let limit = format!("{LIMIT}s");
    let words = [
        "run",
        "--stall",
        &limit,
        "--grace",
        "0.5",
        "--json",
        &file("result.json"),
        "--handoff",
        &file("handoff.md"),
        "--",
    ];
    words.map(str::to_owned).to_vec()
}

/// Whether the run ended at the limit, with its own exit code and a hand-off, and nothing is left running.
pub(super) fn judge(case: Case, seen: &Seen<'_>) -> Result<String, String> {
    seen.expect(seen.ended.code == Some(88), "the exit code is not that of a stall")?;
    let result = fs::read(seen.place.root.join("result.json")).unwrap_or_default();
    let result: Value = serde_json::from_slice(&result).unwrap_or_default();
    let attempt = &result["attempts"][0];
    let is_stall = result["outcome"] == "stalled" && attempt["status"] == "STALLED";
    seen.expect(is_stall && attempt["session"].is_string(), &format!("the result is {result}"))?;
    let summary = attempt["summary"].as_str().unwrap_or_default();
    let doing = if case == Case::SilentModel { "the agent waited for its model" } else { "sh hang.sh" };
    seen.expect(summary.contains(doing), &format!("the summary is {summary:?}"))?;
    let took = seen.ended.took.as_secs();
    seen.expect(took >= LIMIT, &format!("it ended after {took} s"))?;
    let handoff = fs::read_to_string(seen.place.root.join("handoff.md")).unwrap_or_default();
    seen.expect(handoff.contains("## Where it stalled"), "there is no hand-off")?;
    if case == Case::EndlessCall {
        seen.expect(seen.place.ran("hang") == 1, "the tool did not run")?;
    }
    let left = fs::read_to_string(seen.place.left()).unwrap_or_default();
    seen.expect(left.is_empty(), &format!("left running: {left}"))?;
    Ok(format!("{summary}, nothing left"))
}
