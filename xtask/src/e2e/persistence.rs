//! An agent that says it is done, and a hook that doesn't let it end.

use std::{fs, io};

use serde_json::{Value, json};

use super::agents::EndHook;
use super::cases::Case;
use super::place::{self, Place};
use super::seen::Seen;

/// How often the hook keeps the agent going before it gives in.
const BOUND: usize = 20;
/// What it says, with a number.
const REQUEST: &str = "The task is not complete, continue";

/// Adds the hook to the agent's settings, beside those that are there.
pub(super) fn install(hook: &EndHook, place: &Place) -> io::Result<()> {
    let program = place.bin.join("keep-going");
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\necho asked >> \"$E2E_COUNTER\"\nasked=$(grep -c asked \"$E2E_COUNTER\")\n\
         if [ \"$asked\" -le {BOUND} ]; then\n\
         printf '{{\"decision\":\"block\",\"reason\":\"{REQUEST} (%s).\"}}\\n' \"$asked\"\nfi\n"
    );
    place::write_program(&program, &script)?;
    let path = place.home.join(hook.settings);
    let mut settings: Value = match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text)?,
        Err(_) => json!({}),
    };
    let mut group = json!({"hooks": [{"type": "command", "command": program, "name": "keep-going"}]});
    if hook.event == "Stop" {
        group["hooks"][0].as_object_mut().map(|handler| handler.remove("name"));
    }
    if let Some(matcher) = hook.matcher {
        group["matcher"] = matcher.into();
    }
    let groups = &mut settings["hooks"][hook.event];
    match groups.as_array_mut() {
        Some(groups) => groups.push(group),
        None => *groups = json!([group]),
    }
    place::write(&path, &format!("{settings:#}\n"))
}

/// Without deloop the model is asked as long as the hook says; with it, the run ends before that.
pub(super) fn judge(case: Case, seen: &Seen<'_>) -> Result<String, String> {
    let (requests, asked) = (seen.requests(), seen.place.ran("asked"));
    seen.expect(seen.first_with(REQUEST).is_some(), "the other hook never kept it going")?;
    if case == Case::Persistent {
        seen.expect(requests == BOUND + 1, "it didn't go on to the bound")?;
        return Ok(format!("{requests} requests, {asked} times kept going"));
    }
    seen.expect(requests < BOUND, "deloop didn't end it")?;
    seen.expect(requests > 3, "it ended before it could be a loop")?;
    Ok(format!("ended after {requests} requests"))
}
