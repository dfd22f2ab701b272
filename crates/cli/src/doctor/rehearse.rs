//! Replays a stuck session as the agent would send it.

use deloop_formats::hooks::{HookLine, Installable, Settings, hook_agent};
use deloop_types::{Action, Step};
use serde_json::{Value, json};

use super::probe::{self, Home};

/// More laps than any built-in ladder has rungs.
const LAPS: u32 = 12;

/// The result of a rehearsal.
#[derive(Debug, Default)]
pub(super) struct Came {
    pub(super) nudge: bool,
    pub(super) block: bool,
    pub(super) stop: bool,
    pub(super) calls: usize,
    pub(super) median_ms: f64,
    /// The last failure that a hook logged.
    pub(super) log: Option<String>,
}

/// Replays the session; with `enforce`, as if `deloop run` had started the agent.
pub(super) fn play(agent: &Installable, line: &HookLine, home: &Home, enforce: bool) -> Result<Came, String> {
    let mut came = Came::default();
    let mut times = Vec::new();
    let session = if enforce { "doctor-enforced" } else { "doctor" };
    match &agent.wiring.file {
        Settings::Plugin(_) => {
            let (text, took) = probe::stream(line, agent.name, &steps(session), home, enforce)?;
            times.push(took / f64::from(2 * LAPS));
            for decision in text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()) {
                let action = decision["action"].as_str().unwrap_or_default();
                came.nudge |= action == Action::Nudge.as_str();
                came.block |= action == Action::Block.as_str();
                came.stop |= action == Action::Stop.as_str();
            }
        }
        Settings::Json(_) => {
            let hook = hook_agent(agent.name).ok_or("it has no hook")?;
            'laps: for lap in 1..=LAPS {
                for event in hook.rehearsal(session, lap) {
                    let (reply, took) = probe::hook(line, agent.name, &event.to_string(), home, enforce)?;
                    times.push(took);
                    let (denied, stopped) = said(&reply);
                    came.nudge |= reply.contains("[deloop]") && !denied && !stopped;
                    came.block |= denied && !stopped;
                    came.stop |= stopped;
                    if stopped {
                        break 'laps;
                    }
                    if denied {
                        break;
                    }
                }
            }
            // Some agents can't be stopped, so all later calls are refused.
            came.stop |= home.refuses_all();
        }
    }
    times.sort_by(f64::total_cmp);
    came.calls = times.len();
    came.median_ms = times.get(times.len() / 2).copied().unwrap_or(0.0);
    came.log = home.last_failure();
    Ok(came)
}

/// Returns whether a reply refuses the call, and whether it stops the run.
fn said(reply: &str) -> (bool, bool) {
    let reply: Value = serde_json::from_str(reply).unwrap_or_default();
    let is = |value: &Value, word: &str| value.as_str() == Some(word);
    let denied = is(&reply["hookSpecificOutput"]["permissionDecision"], "deny")
        || ["permissionDecision", "decision", "permission"].iter().any(|key| is(&reply[*key], "deny"));
    let stopped = reply["continue"] == false || reply["interrupt"] == true;
    (denied, stopped)
}

/// Returns the session as Steps, for a plugin that uses `deloop stream`.
fn steps(session: &str) -> String {
    let mut text = String::new();
    for _ in 0..LAPS {
        let call = Step::call(session, "bash", json!({"command": "make check"}));
        for step in [call, Step::result(session, false, "make: *** No rule to make target")] {
            text.push_str(&serde_json::to_string(&step).unwrap_or_default());
            text.push('\n');
        }
    }
    text
}
